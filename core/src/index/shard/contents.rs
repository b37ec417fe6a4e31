//! Everything that a store has of a shard, value by value, for whoever checks or counts it.

use super::checksum::{hex, verify_checksum};
use super::keys::{self, GROWN, Place, number_in};
use super::layout::{number_before, unpack_bucket};
use super::memtable::unpack_added;
use super::record_pages::RecordPage;
use super::run::{Page, Posting};
use super::run_list::RunList;
use crate::index::reader::{Bucket, Damaged};

/// The list of a shard's runs, by which all else is read.
pub struct Contents {
    list: RunList,
    inserted: u64,
}

/// Postings of one value, without marks.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct StoredPostings {
    /// The columns' numbers.
    pub columns: Vec<u8>,
    pub hashes: Vec<u64>,
    pub documents: Vec<u64>,
    /// How many more are marks.
    pub marks: usize,
}

/// What a bucket has grown to in a time slice.
#[derive(Debug, PartialEq, Eq)]
pub struct StoredBucket {
    pub slice: u32,
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

    /// The postings in a page of a run, or in a write of the memtable.
    pub fn postings(&self, key: &[u8], value: &[u8]) -> Result<StoredPostings, Damaged> {
        match key.first() {
            Some(&keys::PAGES) => self.of_page(Place::of(key)?, value),
            Some(&keys::MEMTABLE) => self.of_write(key, value),
            _ => Err(Damaged(format!("key {} has no postings", hex(key)))),
        }
    }

    fn of_page(&self, place: Place, value: &[u8]) -> Result<StoredPostings, Damaged> {
        let none = || Damaged(format!("there is no run {}", place.run));
        let run = self.list.run(place.run).ok_or_else(none)?;
        let page = Page::unpack(place, self.list.shape(run.level), value)?;
        let mut found = StoredPostings::default();
        for posting in page.postings() {
            self.add(&mut found, place.slot, posting, run.first, run.end)?;
        }
        Ok(found)
    }

    fn of_write(&self, key: &[u8], value: &[u8]) -> Result<StoredPostings, Damaged> {
        number_in(key)?;
        let first = self.list.end();
        let end = self.inserted.max(first.saturating_add(1));
        let mut found = StoredPostings::default();
        for one in unpack_added(verify_checksum(key, value)?, self.list.columns.len())? {
            self.add(&mut found, one.slot, one.posting, first, end)?;
        }
        Ok(found)
    }

    fn add(
        &self,
        found: &mut StoredPostings,
        slot: u8,
        posting: Posting,
        first: u64,
        end: u64,
    ) -> Result<(), Damaged> {
        if posting.is_mark() {
            found.marks += 1;
            return Ok(());
        }
        let number = number_before(posting.document, end).filter(|&number| number >= first);
        let named = posting.document;
        let number = number.ok_or_else(|| {
            Damaged(format!(
                "a posting names document {named}, and its run has {first} to before {end}"
            ))
        })?;
        let column = self.list.columns.get(usize::from(slot)).copied();
        let column = column.ok_or_else(|| Damaged(format!("there is no column {slot}")))?;
        found.columns.push(column);
        found.hashes.push(posting.hash);
        found.documents.push(number);
        Ok(())
    }

    /// What a bucket has grown to in a time slice.
    pub fn bucket(&self, key: &[u8], value: &[u8]) -> Result<StoredBucket, Damaged> {
        let &[GROWN, a, b, c, d, column, e, f, g, h, i, j, k, l] = key else {
            return Err(Damaged(format!("{} is not the key of a grown bucket", hex(key))));
        };
        Ok(StoredBucket {
            slice: u32::from_be_bytes([a, b, c, d]),
            column,
            hash: u64::from_be_bytes([e, f, g, h, i, j, k, l]),
            bucket: unpack_bucket(verify_checksum(key, value)?, self.inserted)?,
        })
    }

    /// The records of a page.
    pub fn records(&self, key: &[u8], value: &[u8]) -> Result<RecordPage, Damaged> {
        RecordPage::unpack(number_in(key)?, value)
    }
}
