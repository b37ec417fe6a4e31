//! What a shard has in memory, between two writes.

use std::collections::BTreeMap;

use super::filter::Filters;
use super::layout::unpack_bucket;
use super::memtable::Memtable;
use super::merge::Merge;
use super::recent::{Age, Recent};
use super::record_pages::{DOCUMENTS_A_PAGE, page_of};
use super::run_list::RunList;
use crate::index::reader::Bucket;

/// What a shard is made for. It is the same whenever it is opened, but for `run_documents`, which
/// counts for a new one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// How many documents a run of level 0 has; at least one.
    pub run_documents: u32,
    /// How long entries live, in ms; none: for ever.
    pub window: Option<i64>,
}

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

/// A shard, between two writes.
pub struct Shard {
    pub(super) settings: Settings,
    pub(super) list: RunList,
    pub(super) merges: Vec<Merge>,
    pub(super) filters: Filters,
    pub(super) memtable: Memtable,
    /// How many writes have added to the memtable.
    pub(super) memtable_writes: u64,
    /// The number that the next document gets.
    pub(super) inserted: u64,
    /// Whether no document was ever forgotten.
    pub(super) all_kept: bool,
    /// The records after the last full page.
    pub(super) last_page: Vec<Vec<u8>>,
    pub(super) recent_records: Recent<u64>,
    /// By column and key: the time slice, then the bucket's bytes.
    pub(super) recent_buckets: Recent<(u8, u64)>,
    /// How much the judge holds of what documents are compared with.
    pub(super) candidate_bytes: usize,
}

/// Threads may read a shard at the same time.
const _: fn() = || {
    fn shared<T: Send + Sync>() {}
    shared::<Shard>();
};

/// What a shard keeps of records, and of grown buckets, until `Shard::limit` says otherwise.
pub(super) const RECENT_BYTES: usize = 8 << 20;
/// The same for what the judge holds of what documents are compared with.
pub const CANDIDATE_BYTES: usize = 24 << 20;

impl Shard {
    /// What a bucket has grown to, and in which time slice, if that is in memory and kept.
    pub(super) fn recent_bucket(&self, key: (u8, u64)) -> Option<(u32, Bucket, Age)> {
        let (found, age) = self.recent_buckets.get(&key)?;
        let (slice, packed) = found.split_first_chunk::<4>()?;
        let slice = u32::from_le_bytes(*slice);
        let bucket = unpack_bucket(packed, self.inserted).ok()?;
        (slice >= self.list.slices.kept()[0].number).then_some((slice, bucket, age))
    }

    /// The record of a document, if it is in memory.
    pub(super) fn find_record(&self, number: u64) -> Option<(&[u8], Age)> {
        let (page, place) = page_of(number);
        if page == self.inserted / DOCUMENTS_A_PAGE as u64 {
            return self.last_page.get(place).map(|record| (record.as_slice(), Age::Young));
        }
        self.recent_records.get(&number)
    }

    /// The number that the next document gets.
    pub fn inserted(&self) -> u64 {
        self.inserted
    }

    /// The runs and the time slices.
    pub fn list(&self) -> &RunList {
        &self.list
    }

    /// Keep about so many bytes of records and of grown buckets that were read or written lately, and
    /// of what the documents of a batch are compared with.
    pub fn limit(&mut self, records: usize, buckets: usize, candidates: usize) {
        self.recent_records.limit(records);
        self.recent_buckets.limit(buckets);
        self.candidate_bytes = candidates;
    }

    /// How large it is.
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
