//! One shard of the index: where everything is that the judge reads, and what a decision writes.
//!
//! A shard does no I/O. It names keys of its store, takes their values, and returns writes. In
//! memory it has the newest postings (`memtable`), the filters of all runs (`filters`), the list of
//! runs (`run_list`) with the time slices, and what was read or written lately (`recent`). All else is in
//! the store, under the keys of `keys`.
//!
//! A new bucket has one document, and most keep only that one. Such a posting is no key of the store,
//! which would cost sorting it several times over. Postings are gathered in the memtable, which is
//! written as a sorted run when it has enough documents. Runs of a level are merged into one of the
//! next, a little with every write (`merge`). So each posting is written about once for every
//! eightfold growth of the shard, and a look-up asks as many filters as there are levels. A bucket
//! keeps its posting when it grows. The grown bucket is a key of its own, which stands above the posting,
//! and another posting marks that there is one: so a look-up asks for that key only if it exists.
//!
//! # How a shard is driven
//!
//! To open one, read what it names:
//!
//! ```text
//! opening = Opening::new(settings, inserted)       inserted: how many documents were inserted
//! opening.handle_values(values of opening.keys())
//! for range in opening.ranges(): opening.take(key, value) for each of its keys, ascending
//! shard = opening.finish()
//! ```
//!
//! To judge a batch and write the decision, plan, read in rounds, judge, prepare in rounds, write,
//! and apply. Several threads may read at once, also queries. Nothing may be read during `apply`.
//!
//! ```text
//! reading = Fetcher::new(shard, asked)             looks up all postings in memory
//! loop
//!     reading.handle_values(values of reading.poll_reads())     until nothing is wanted
//!     decision = judge(ShardReader::new(shard, asked, reading))     until nothing is unread
//! preparing = Commit::new(shard, decided)       a query ends before this
//! preparing.handle_values(values of preparing.poll_reads())     until nothing is wanted
//! (writes, prepared) = preparing.finish(shard, reading, decided)
//! put writes.tables into files, then the rest into the store, in one atomic write
//! shard.apply(reading, prepared)                   once that write is in the store
//! ```
//!
//! `Writes` says in which order its parts are written. If a write fails, drop the shard, and open
//! it again.
//!
//! `Plan` leads a batch all this way, and `Inquiry` leads queries to their answers.

mod bucket;
pub mod checksum;
pub mod commit;
pub mod contents;

pub mod fetch;
mod filter;
mod huge;
mod id_chains;
pub mod id_list;
mod implied;
pub mod keys;
pub mod layout;

pub mod memory;
pub mod memtable;
mod merge;
pub mod open;
pub mod plan;
mod prefetch;
pub mod reader;
pub mod reads;
mod recent;
pub mod record_pages;
pub mod run;
pub mod run_list;
mod search;
mod sizes;
pub mod slices;
#[cfg(test)]
mod tests;
mod write;

use keys::{Key, Range};

use self::fetch::Fetcher;
use self::filter::Filters;
use self::layout::{pack_bucket, unpack_bucket};
use self::memtable::Memtable;
use self::merge::Merge;
use self::recent::{Age, Recent};
use self::record_pages::{DOCUMENTS_A_PAGE, page_of};
use self::run_list::RunList;
use self::write::{Changed, PendingWrite};
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

/// What is written, in this order: the tables, then in one atomic write the ranges, the deletes and
/// the puts. What was replaced is dropped once that write is on disk.
#[derive(Debug, Clone, Default)]
pub struct Writes {
    pub tables: Vec<TableWrite>,
    /// Ranges of keys that are deleted.
    pub ranges: Vec<Range>,
    pub deletes: Vec<Key>,
    pub puts: Vec<(Key, Vec<u8>)>,
    /// The runs whose tables no list of runs names any more.
    pub replaced: Vec<u32>,
    /// The pages of records whose former bytes have to leave the files of the store.
    pub erased: Vec<u64>,
    /// How many documents were inserted so far, these included.
    pub inserted: u64,
}

/// Pages of a run. They follow those of earlier writes: a merge makes a run little by little.
#[derive(Debug, Clone)]
pub struct TableWrite {
    pub run: u32,
    /// By key, ascending.
    pub pages: Vec<(Key, Vec<u8>)>,
    /// Whether the file is finished with them. The write names its pages, so they must be on disk.
    pub finished: bool,
    /// Whether it is the last file of the run.
    pub last: bool,
}

/// A shard, between two writes.
pub struct Shard {
    settings: Settings,
    list: RunList,
    merges: Vec<Merge>,
    filters: Filters,
    memtable: Memtable,
    /// How many writes have added to the memtable.
    memtable_writes: u64,
    /// The number that the next document gets.
    inserted: u64,
    /// Whether no document was ever forgotten.
    all_kept: bool,
    /// The records after the last full page.
    last_page: Vec<Vec<u8>>,
    recent_records: Recent<u64>,
    /// By column and key: the time slice, then the bucket's bytes.
    recent_buckets: Recent<(u8, u64)>,
    /// How much the judge holds of what documents are compared with.
    candidate_bytes: usize,
}

/// Threads may read a shard at the same time.
const _: fn() = || {
    fn shared<T: Send + Sync>() {}
    shared::<Shard>();
};

/// What a shard keeps of records, and of grown buckets, until `Shard::limit` says otherwise.
const RECENT_BYTES: usize = 8 << 20;
/// The same for what the judge holds of what documents are compared with.
pub const CANDIDATE_BYTES: usize = 24 << 20;

impl Shard {
    /// Continue with what a write that is in the store has changed.
    ///
    /// `reading` and `prepared` must be those of the last decision, and of this state.
    pub fn apply(&mut self, fetcher: Fetcher, prepared: PendingWrite) {
        self.remember(&fetcher);
        if let Some(list) = prepared.list {
            if self.list.columns.is_empty() && !list.columns.is_empty() {
                self.filters = Filters::new(list.columns.len(), list.run_documents);
                self.memtable = Memtable::new(list.columns.len(), self.inserted);
            }
            self.list = list;
        }
        self.merges = prepared.merges;
        for (run, room) in prepared.rooms {
            self.filters.reserve(run, room);
        }
        prepared.parts.iter().for_each(|part| self.filters.put(part));
        prepared.asked.iter().for_each(|&run| self.filters.ask(run));
        prepared.removed.iter().for_each(|&run| self.filters.remove(run));
        if let Some(first) = prepared.emptied {
            self.memtable.empty(first);
            self.memtable_writes = 0;
        }
        if !prepared.added.is_empty() {
            self.memtable.put(&prepared.added);
            self.memtable_writes += 1;
        }
        let mut start = 0;
        for &end in &prepared.record_ends {
            self.recent_records.add(self.inserted, &prepared.records[start..end]);
            self.inserted += 1;
            start = end;
        }
        self.last_page = prepared.last_page;
        self.all_kept &= prepared.forgotten.is_empty();
        prepared.forgotten.iter().for_each(|number| self.recent_records.forget(number));
        for Changed { key, grown } in prepared.grown {
            match grown {
                Some(bucket) => self.recent_buckets.put(key, &bucket),
                None => self.recent_buckets.forget(&key),
            }
        }
    }

    /// Keep what was read for the next batch.
    fn remember(&mut self, fetcher: &Fetcher) {
        fetcher.old_records.iter().for_each(|&number| self.recent_records.keep(number));
        for &number in &fetcher.read_records {
            if self.recent_records.get(&number).is_none()
                && let Some(record) = fetcher.read_record(number)
            {
                self.recent_records.add(number, record);
            }
        }
        fetcher.old_buckets.iter().for_each(|&key| self.recent_buckets.keep(key));
        for (key, slice, bucket) in fetcher.read_grown() {
            let packed = pack_bucket(&bucket.entries, bucket.has_overflow);
            self.recent_buckets.put(key, &[&slice.to_le_bytes()[..], &packed].concat());
        }
    }

    /// What a bucket has grown to, and in which time slice, if that is in memory and kept.
    fn recent_bucket(&self, key: (u8, u64)) -> Option<(u32, Bucket, Age)> {
        let (found, age) = self.recent_buckets.get(&key)?;
        let (slice, packed) = found.split_first_chunk::<4>()?;
        let slice = u32::from_le_bytes(*slice);
        let bucket = unpack_bucket(packed, self.inserted).ok()?;
        (slice >= self.list.slices.kept()[0].number).then_some((slice, bucket, age))
    }

    /// The record of a document, if it is in memory.
    fn find_record(&self, number: u64) -> Option<(&[u8], Age)> {
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
}
