//! Everything that a store has of a shard, value by value, for whoever checks or counts it.

use super::cells::{Cell, Page};
use super::keyspace::{self, GROWN, Place, number_in};
use super::layout::{number_before, unpack_bucket};
use super::open_run::unpack_added;
use super::record_pages::RecordPage;
use super::run_list::RunList;
use super::seal::{hex, unseal};
use crate::index::sight::{Bucket, Damaged};

/// The list of a shard's runs, by which all else is read.
pub struct Contents {
    list: RunList,
    inserted: u64,
}

/// Cells of one value, without marks.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct StoredCells {
    /// The columns' numbers.
    pub columns: Vec<u8>,
    pub hashes: Vec<u64>,
    pub documents: Vec<u64>,
    /// How many more are marks.
    pub marks: usize,
}

/// What a bucket has grown to in an era.
#[derive(Debug, PartialEq, Eq)]
pub struct StoredBucket {
    pub era: u32,
    pub column: u8,
    pub hash: u64,
    pub bucket: Bucket,
}

impl Contents {
    /// Take the value of the key `RUNS`, and how many documents were inserted so far.
    pub fn new(runs: Option<&[u8]>, inserted: u64) -> Result<Self, Damaged> {
        // A shard keeps the size of its runs in its list, and without one it has no runs.
        let list = runs.map_or_else(|| Ok(RunList::new(1)), RunList::unpack)?;
        Ok(Self { list, inserted })
    }

    pub fn list(&self) -> &RunList {
        &self.list
    }

    /// The cells in a page of a run, or in a write of the open run.
    pub fn cells(&self, key: &[u8], value: &[u8]) -> Result<StoredCells, Damaged> {
        match key.first() {
            Some(&keyspace::CELLS) => self.of_page(Place::of(key)?, value),
            Some(&keyspace::OPEN_RUN) => self.of_write(key, value),
            _ => Err(Damaged(format!("key {} has no cells", hex(key)))),
        }
    }

    fn of_page(&self, place: Place, value: &[u8]) -> Result<StoredCells, Damaged> {
        let none = || Damaged(format!("there is no run {}", place.run));
        let run = self.list.run(place.run).ok_or_else(none)?;
        let page = Page::unpack(place, self.list.shape(run.tier), value)?;
        let mut found = StoredCells::default();
        for cell in page.cells() {
            self.add(&mut found, place.slot, cell, run.first, run.end)?;
        }
        Ok(found)
    }

    fn of_write(&self, key: &[u8], value: &[u8]) -> Result<StoredCells, Damaged> {
        number_in(key)?;
        let first = self.list.end();
        let end = self.inserted.max(first.saturating_add(1));
        let mut found = StoredCells::default();
        for one in unpack_added(unseal(key, value)?, self.list.columns.len())? {
            self.add(&mut found, one.slot, one.cell, first, end)?;
        }
        Ok(found)
    }

    fn add(
        &self,
        found: &mut StoredCells,
        slot: u8,
        cell: Cell,
        first: u64,
        end: u64,
    ) -> Result<(), Damaged> {
        if cell.is_mark() {
            found.marks += 1;
            return Ok(());
        }
        let number = number_before(cell.document, end).filter(|&number| number >= first);
        let named = cell.document;
        let number = number.ok_or_else(|| {
            Damaged(format!(
                "a cell names document {named}, and its run has {first} to before {end}"
            ))
        })?;
        let column = self.list.columns.get(usize::from(slot)).copied();
        let column = column.ok_or_else(|| Damaged(format!("there is no column {slot}")))?;
        found.columns.push(column);
        found.hashes.push(cell.hash);
        found.documents.push(number);
        Ok(())
    }

    /// What a bucket has grown to in an era.
    pub fn bucket(&self, key: &[u8], value: &[u8]) -> Result<StoredBucket, Damaged> {
        let &[GROWN, a, b, c, d, column, e, f, g, h, i, j, k, l] = key else {
            return Err(Damaged(format!("{} is not the key of a grown bucket", hex(key))));
        };
        Ok(StoredBucket {
            era: u32::from_be_bytes([a, b, c, d]),
            column,
            hash: u64::from_be_bytes([e, f, g, h, i, j, k, l]),
            bucket: unpack_bucket(unseal(key, value)?, self.inserted)?,
        })
    }

    /// The records of a page.
    pub fn records(&self, key: &[u8], value: &[u8]) -> Result<RecordPage, Damaged> {
        RecordPage::unpack(number_in(key)?, value)
    }
}
