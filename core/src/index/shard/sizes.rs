//! How large a shard is.

use std::collections::BTreeMap;

use super::Shard;

/// What a shard has, and the bytes that it keeps in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sizes {
    /// The documents that are kept.
    pub documents: u64,
    pub slices: usize,
    /// How many time slices were given back since the shard was made.
    pub expired_slices: u32,
    /// What was now when the oldest time slice that is kept began, in ms.
    pub oldest_since: Option<i64>,
    pub memtable_postings: usize,
    /// How many runs, and postings in them, there are by level.
    pub levels: BTreeMap<u8, (usize, u64)>,
    pub memtable_bytes: usize,
    /// Of all filters, also of those that merges are making.
    pub filter_bytes: usize,
    pub record_bytes: usize,
    pub bucket_bytes: usize,
}

impl Sizes {
    /// All bytes in memory.
    pub fn bytes(&self) -> usize {
        self.memtable_bytes + self.filter_bytes + self.record_bytes + self.bucket_bytes
    }
}

impl Shard {
    pub fn sizes(&self) -> Sizes {
        let mut levels = BTreeMap::<u8, (usize, u64)>::new();
        for run in &self.list.runs {
            let level = levels.entry(run.level).or_default();
            *level = (level.0 + 1, level.1 + run.postings);
        }
        let oldest = self.list.slices.kept()[0];
        Sizes {
            documents: self.inserted - self.list.slices.first(),
            slices: self.list.slices.kept().len(),
            expired_slices: oldest.number,
            oldest_since: oldest.since,
            memtable_postings: self.memtable.postings(),
            levels,
            memtable_bytes: self.memtable.size_bytes(),
            filter_bytes: self.filters.size_bytes(),
            record_bytes: self.recent_records.size_bytes(),
            bucket_bytes: self.recent_buckets.size_bytes(),
        }
    }
}
