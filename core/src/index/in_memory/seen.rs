//! What judgements see of an index in memory: everything, at once.

use super::super::court::Court;
use super::super::record::Record;
use super::super::sight::{Bucket, Cell, Damaged, Seen, Sight};
use super::MemoryIndex;
use super::column::{Column, NONE, sole_of};

/// What the tables have of the cells of n documents, one column after the other.
pub struct Looked {
    count: usize,
    values: Vec<u32>,
}

impl Looked {
    /// Look up all keys of n documents in the columns of a court, one column after the other: so
    /// much of a table stays in the processor's cache.
    pub fn up(index: &MemoryIndex, court: &Court, keys: &[u64], count: usize) -> Self {
        let mut values = Vec::with_capacity(keys.len());
        for (place, &column) in court.columns.iter().enumerate() {
            let own = &keys[place * count..(place + 1) * count];
            index.columns[usize::from(column)].find_all(own, &mut values);
        }
        Self { count, values }
    }
}

pub struct InMemory<'a> {
    index: &'a MemoryIndex,
    court: &'a Court,
    looked: &'a Looked,
    first: usize,
    /// The record that was asked for last.
    record: Vec<u8>,
}

impl<'a> InMemory<'a> {
    /// `court` may have some of the index's columns. The batch has documents of `looked`; `first`
    /// is the place of the first one there.
    pub fn new(index: &'a MemoryIndex, court: &'a Court, looked: &'a Looked, first: usize) -> Self {
        Self { index, court, looked, first, record: Vec::new() }
    }

    fn column(&self, place: usize) -> &Column {
        &self.index.columns[usize::from(self.court.columns[place])]
    }

    fn found(&self, cell: Cell) -> u32 {
        self.looked.values[cell.column * self.looked.count + self.first + cell.row]
    }
}

impl Sight for InMemory<'_> {
    fn may_exist(&mut self, cell: Cell) -> bool {
        self.found(cell) != NONE
    }

    fn sole(&mut self, cell: Cell) -> Option<u64> {
        sole_of(self.found(cell))
    }

    fn bucket(&mut self, cell: Cell) -> Result<Seen<Bucket>, Damaged> {
        Ok(Seen::Here(self.column(cell.column).bucket_of(self.found(cell))))
    }

    fn finer(&mut self, column: usize, hash: u64) -> Result<Seen<Bucket>, Damaged> {
        Ok(Seen::Here(self.column(column).bucket(hash)))
    }

    fn record(&mut self, number: u64) -> Result<Seen<&[u8]>, Damaged> {
        let row = number as usize;
        let record = Record {
            sequence: number,
            time: 0,
            shingles: self.index.shingles[row],
            sketch: self.index.sketch(row),
            new: &[],
            id: &[],
        };
        self.record.clear();
        record.pack_into(&mut self.record);
        Ok(Seen::Here(&self.record))
    }

    fn renewals(&mut self, _number: u64) -> Result<Seen<Vec<(u8, i64)>>, Damaged> {
        Ok(Seen::Here(Vec::new()))
    }

    fn identified(&mut self, _id: &[u8]) -> Result<Seen<Vec<u64>>, Damaged> {
        Ok(Seen::Here(Vec::new()))
    }

    fn verdict(&mut self, _number: u64) -> Result<Seen<Option<Vec<u8>>>, Damaged> {
        Ok(Seen::Here(None))
    }

    fn inserted(&self) -> u64 {
        self.index.len() as u64
    }

    fn moved_below(&self) -> u64 {
        0
    }

    fn all_kept(&self) -> bool {
        true
    }
}
