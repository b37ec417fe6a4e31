//! How large a shard is.

use std::collections::BTreeMap;

use super::Shard;

/// What a shard has, and the bytes that it keeps in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sizes {
    /// The documents that are kept.
    pub documents: u64,
    pub eras: usize,
    /// How many eras were given back since the shard was made.
    pub expired_eras: u32,
    /// What was now when the oldest era that is kept began, in ms.
    pub oldest_since: Option<i64>,
    pub open_cells: usize,
    /// How many runs, and cells in them, there are by tier.
    pub tiers: BTreeMap<u8, (usize, u64)>,
    pub open_bytes: usize,
    /// Of all filters, also of those that merges are making.
    pub filter_bytes: usize,
    pub record_bytes: usize,
    pub bucket_bytes: usize,
}

impl Sizes {
    /// All bytes in memory.
    pub fn bytes(&self) -> usize {
        self.open_bytes + self.filter_bytes + self.record_bytes + self.bucket_bytes
    }
}

impl Shard {
    pub fn sizes(&self) -> Sizes {
        let mut tiers = BTreeMap::<u8, (usize, u64)>::new();
        for run in &self.list.runs {
            let tier = tiers.entry(run.tier).or_default();
            *tier = (tier.0 + 1, tier.1 + run.cells);
        }
        let oldest = self.list.eras.kept()[0];
        Sizes {
            documents: self.inserted - self.list.eras.first(),
            eras: self.list.eras.kept().len(),
            expired_eras: oldest.number,
            oldest_since: oldest.since,
            open_cells: self.open.cells(),
            tiers,
            open_bytes: self.open.size_bytes(),
            filter_bytes: self.filters.size_bytes(),
            record_bytes: self.recent_records.size_bytes(),
            bucket_bytes: self.recent_buckets.size_bytes(),
        }
    }
}
