//! What judgements see of an index in memory: everything, at once.

use super::super::config::IndexConfig;
use super::super::reader::{Bucket, IndexReader, Poll, Polled, Posting};
use super::super::record::Record;
use super::MemoryIndex;
use super::column::{Column, NONE, singleton_of};

/// What the tables have of the postings of n documents, one column after the other.
pub struct Looked {
    count: usize,
    values: Vec<u32>,
}

impl Looked {
    /// Look up all keys of n documents in the columns of a config, one column after the other: so
    /// much of a table stays in the processor's cache.
    pub fn up(index: &MemoryIndex, config: &IndexConfig, keys: &[u64], count: usize) -> Self {
        let mut values = Vec::with_capacity(keys.len());
        for (place, &column) in config.columns.iter().enumerate() {
            let own = &keys[place * count..(place + 1) * count];
            index.columns[usize::from(column)].find_all(own, &mut values);
        }
        Self { count, values }
    }
}

pub struct InMemory<'a> {
    index: &'a MemoryIndex,
    config: &'a IndexConfig,
    looked: &'a Looked,
    first: usize,
    /// The record that was asked for last.
    record: Vec<u8>,
}

impl<'a> InMemory<'a> {
    /// `config` may have some of the index's columns. The batch has documents of `looked`; `first`
    /// is the place of the first one there.
    pub fn new(
        index: &'a MemoryIndex,
        config: &'a IndexConfig,
        looked: &'a Looked,
        first: usize,
    ) -> Self {
        Self { index, config, looked, first, record: Vec::new() }
    }

    fn column(&self, place: usize) -> &Column {
        &self.index.columns[usize::from(self.config.columns[place])]
    }

    fn found(&self, posting: Posting) -> u32 {
        self.looked.values[posting.column * self.looked.count + self.first + posting.row]
    }
}

impl IndexReader for InMemory<'_> {
    fn may_exist(&mut self, posting: Posting) -> bool {
        self.found(posting) != NONE
    }

    fn singleton(&mut self, posting: Posting) -> Option<u64> {
        singleton_of(self.found(posting))
    }

    fn bucket(&mut self, posting: Posting) -> Polled<Bucket> {
        Ok(Poll::Ready(self.column(posting.column).bucket_of(self.found(posting))))
    }

    fn overflow(&mut self, column: usize, hash: u64) -> Polled<Bucket> {
        Ok(Poll::Ready(self.column(column).bucket(hash)))
    }

    fn record(&mut self, number: u64) -> Polled<&[u8]> {
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
        Ok(Poll::Ready(&self.record))
    }

    fn renewals(&mut self, _number: u64) -> Polled<Vec<(u8, i64)>> {
        Ok(Poll::Ready(Vec::new()))
    }

    fn identified(&mut self, _id: &[u8]) -> Polled<Vec<u64>> {
        Ok(Poll::Ready(Vec::new()))
    }

    fn verdict(&mut self, _number: u64) -> Polled<Option<Vec<u8>>> {
        Ok(Poll::Ready(None))
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
