//! What judgements see of an index in memory: everything, at once.

use super::super::batch::Batch;
use super::super::court::Court;
use super::super::record::Record;
use super::super::sight::{Bucket, Cell, Damaged, Seen, Sight};
use super::MemoryIndex;
use super::column::{Column, NONE};

pub struct InMemory<'a> {
    index: &'a MemoryIndex,
    court: &'a Court,
    rows: usize,
    /// What the tables have of the batch's cells, one column after the other.
    found: Vec<u32>,
    /// The record that was asked for last.
    record: Vec<u8>,
}

impl<'a> InMemory<'a> {
    /// Look up all cells of a batch. `court` may have some of the index's columns.
    pub fn new(index: &'a MemoryIndex, court: &'a Court, batch: &Batch) -> Self {
        let rows = batch.len();
        let mut found = Vec::with_capacity(court.columns.len() * rows);
        for (place, &column) in court.columns.iter().enumerate() {
            let keys = &batch.keys[place * rows..(place + 1) * rows];
            index.columns[usize::from(column)].find_all(keys, &mut found);
        }
        Self { index, court, rows, found, record: Vec::new() }
    }

    fn column(&self, place: usize) -> &Column {
        &self.index.columns[usize::from(self.court.columns[place])]
    }

    fn found(&self, cell: Cell) -> u32 {
        self.found[cell.column * self.rows + cell.row]
    }
}

impl Sight for InMemory<'_> {
    fn may_exist(&mut self, cell: Cell) -> bool {
        self.found(cell) != NONE
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
