//! What is read for a batch: which buckets there are, by as few reads as possible.
//!
//! First all postings are looked up in memory, one column after the other. Nearly all buckets of a
//! new document don't exist, which is known then. The others are read in rounds, as are documents'
//! records, renewals, verdicts, and the lists of those with one id.

use std::collections::hash_map::Entry;
use std::ops::Range;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::bucket::{BucketFetch, BucketState, Standing, grown};
use super::id_list::{Chain, IdList};
use super::keys::{self, number_key};
use super::layout::unpack_renewals;
use super::reads::{ReadKey, Reads};
use super::recent::Age;
use super::record_pages::{RecordPage, page_key, page_of};
use super::run_list::ID_COLUMN;
use super::search::{Hit, Search};
use super::state::Shard;
use crate::index::batch::Batch;
use crate::index::config::IndexConfig;
use crate::index::reader::{Bucket, Damaged, Poll, Polled};

const NOWHERE: u32 = u32::MAX;
/// About what the renewals of a document take.
const RENEWALS_BYTES: usize = 100;

/// A batch, as far as it is looked up.
#[derive(Debug, Clone, Copy)]
pub struct BatchKeys<'a> {
    /// The columns' numbers.
    pub columns: &'a [u8],
    /// The keys of all documents in each column, one column after the other.
    pub keys: &'a [u64],
    /// The sketches of all documents.
    pub sketches: &'a [u8],
    /// The keys of each column below `bands` follow from `rows` slots of the sketch.
    pub bands: usize,
    /// 0: they don't follow from sketches.
    pub rows: usize,
}

impl<'a> BatchKeys<'a> {
    /// A batch that a config judges.
    pub fn of(config: &'a IndexConfig, batch: &'a Batch) -> Self {
        Self {
            columns: &config.columns,
            keys: &batch.keys,
            sketches: &batch.sketches,
            bands: config.rules.bands,
            rows: config.rules.rows,
        }
    }

    pub(super) fn documents(&self) -> usize {
        self.keys.len() / self.columns.len().max(1)
    }

    /// The slots of a document's sketch from which its key in a band follows.
    pub(super) fn slots(&self, row: usize, band: usize) -> Option<&'a [u8]> {
        let slots = self.sketches.len() / self.documents().max(1);
        let sketch = self.sketches.get(row * slots..(row + 1) * slots)?;
        sketch.get(self.slots_of(band))
    }

    /// Where these slots are in a sketch.
    pub(super) fn slots_of(&self, band: usize) -> Range<usize> {
        band * self.rows..(band + 1) * self.rows
    }
}

/// A posting whose bucket may exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Possible {
    pub row: u32,
    /// The column's place.
    pub column: u16,
    pub bucket: u32,
}

/// What has been read for a batch, and what has to be.
///
/// It belongs to the state that a shard is in: after `Shard::apply`, begin with another one.
#[derive(Default)]
pub struct Fetcher {
    pub(super) reads: Reads,
    slots: Vec<u8>,
    /// For each posting, its bucket, or `NOWHERE`.
    places: Vec<u32>,
    buckets: Vec<BucketFetch>,
    by_key: FxHashMap<(u8, u64), u32>,
    /// By document, those of a document by column.
    pub(super) possible: Vec<Possible>,
    /// The parts of them that are of documents some of whose buckets aren't known.
    rows: Vec<Range<usize>>,
    /// Overflow buckets that aren't known.
    others: Vec<u32>,
    pages: FxHashMap<u64, RecordPage>,
    page_bytes: usize,
    renewals: FxHashMap<u64, Vec<(u8, i64)>>,
    verdicts: FxHashMap<u64, Option<Vec<u8>>>,
    pub(super) id_lists: FxHashMap<u64, Option<IdList>>,
    pub(super) chains: FxHashMap<u64, Chain>,
    /// The documents whose records were asked for and were read, or would go from memory.
    pub(super) read_records: Vec<u64>,
    pub(super) old_records: Vec<u64>,
    /// The grown buckets that were asked for and would go from memory.
    pub(super) old_buckets: Vec<(u8, u64)>,
}

impl Fetcher {
    /// Look all postings of a batch up in memory.
    ///
    /// An error says that the shard doesn't have one of the columns.
    pub fn new(shard: &Shard, batch: BatchKeys) -> Result<Self, Damaged> {
        let mut made = Self { places: vec![NOWHERE; batch.keys.len()], ..Self::default() };
        if shard.list.columns.is_empty() {
            return Ok(made);
        }
        let slots = batch.columns.iter().map(|&column| shard.list.slot(column));
        made.slots = slots.collect::<Result<_, _>>()?;
        let documents = batch.documents();
        made.by_key.reserve(2 * documents);
        for (column, keys) in batch.keys.chunks_exact(documents.max(1)).enumerate() {
            let first = made.buckets.len();
            for (row, hit) in shard.hits(made.slots[column], keys) {
                let bucket = made.hold(batch.columns[column], made.slots[column], keys[row], hit);
                made.places[column * documents + row] = bucket;
                made.possible.push(Possible { row: row as u32, column: column as u16, bucket });
            }
            made.note_growth(shard, first);
        }
        made.possible.sort(); // Those of a column are in order, so they are merged.
        let mut start = 0;
        for row in made.possible.chunk_by(|one, next| one.row == next.row) {
            made.rows.push(start..start + row.len());
            start += row.len();
        }
        made.advance(shard, batch)?;
        Ok(made)
    }

    fn hold(&mut self, column: u8, slot: u8, hash: u64, hit: Hit) -> u32 {
        *self.by_key.entry((column, hash)).or_insert_with(|| {
            let search = Search::of(slot, hash, hit);
            let slices = Vec::new();
            self.buckets.push(BucketFetch { column, search, slices, grown: None, state: None });
            self.buckets.len() as u32 - 1
        })
    }

    /// Note in which time slices the buckets of one column, from `first` on, may have grown. Those
    /// that are in memory are known.
    fn note_growth(&mut self, shard: &Shard, first: usize) {
        let Some(slot) = self.buckets.get(first).map(|bucket| bucket.search.slot) else { return };
        let new = &mut self.buckets[first..];
        let hashes: Vec<u64> = new.iter().map(|bucket| bucket.search.hash).collect();
        for (bucket, slices) in new.iter_mut().zip(shard.slices_grown(slot, &hashes)) {
            bucket.slices = slices;
            if bucket.slices.is_empty() {
                continue;
            }
            let key = (bucket.column, bucket.search.hash);
            if let Some((slice, found, age)) = shard.recent_bucket(key) {
                if age == Age::Old {
                    self.old_buckets.push(key);
                }
                bucket.state = Some(grown(shard, slice, found));
            }
        }
    }

    /// The bucket that a posting's key names, if it may exist.
    pub(super) fn bucket_of(&self, posting: usize) -> Option<u32> {
        self.places.get(posting).copied().filter(|&bucket| bucket != NOWHERE)
    }

    /// The bucket with a key, by the column's place, if it may exist; it will be read.
    pub(super) fn overflow(
        &mut self,
        shard: &Shard,
        batch: BatchKeys,
        column: usize,
        hash: u64,
    ) -> Result<Option<u32>, Damaged> {
        let (Some(&number), Some(&slot)) = (batch.columns.get(column), self.slots.get(column))
        else {
            return Ok(None);
        };
        if let Some(&bucket) = self.by_key.get(&(number, hash)) {
            return Ok(Some(bucket));
        }
        let Some(hit) = shard.hit(slot, hash) else { return Ok(None) };
        let first = self.buckets.len();
        let bucket = self.hold(number, slot, hash, hit);
        self.note_growth(shard, first);
        if self.poll_bucket(shard, bucket, None)?.is_pending() {
            self.others.push(bucket);
        }
        Ok(Some(bucket))
    }

    /// What a bucket is, once it is known.
    pub(super) fn state(&self, bucket: u32) -> Option<&BucketState> {
        self.buckets[bucket as usize].state.as_ref()
    }

    /// Whether the bucket of a column's number has a posting, or has grown, in the current slice;
    /// none if it can't exist.
    ///
    /// An error says that it wasn't read.
    pub(super) fn standing(&self, column: u8, hash: u64) -> Result<Option<Standing>, Damaged> {
        let Some(&bucket) = self.by_key.get(&(column, hash)) else { return Ok(None) };
        let unread = || Damaged(format!("bucket {hash:016x} of column {column} wasn't read"));
        self.state(bucket).map(|state| Some(state.standing())).ok_or_else(unread)
    }

    /// The buckets that were read from the store and have grown: their columns' numbers and keys,
    /// the slices, and what they have grown to.
    pub(super) fn read_grown(&self) -> impl Iterator<Item = ((u8, u64), u32, &Bucket)> {
        self.buckets.iter().filter_map(|bucket| {
            bucket.state.as_ref()?;
            let (slice, content) = bucket.grown.as_ref()?;
            Some(((bucket.column, bucket.search.hash), *slice, content))
        })
    }

    /// Look at what isn't known yet.
    fn advance(&mut self, shard: &Shard, batch: BatchKeys) -> Result<(), Damaged> {
        for row in std::mem::take(&mut self.rows) {
            if self.advance_row(shard, batch, row.clone())?.is_pending() {
                self.rows.push(row);
            }
        }
        for bucket in std::mem::take(&mut self.others) {
            if self.poll_bucket(shard, bucket, None)?.is_pending() {
                self.others.push(bucket);
            }
        }
        Ok(())
    }

    /// Find out what a bucket is; see `BucketFetch::poll`.
    pub(super) fn poll_bucket(
        &mut self,
        shard: &Shard,
        bucket: u32,
        singleton: Option<u64>,
    ) -> Polled<()> {
        self.buckets[bucket as usize].poll(shard, &mut self.reads, singleton)
    }

    /// Find out what a bucket may have grown to.
    pub(super) fn poll_growth(&mut self, shard: &Shard, bucket: u32) -> Polled<()> {
        self.buckets[bucket as usize].poll_growth(shard, &mut self.reads)
    }

    /// The keys that must be read next, by table and ascending; give all their values to
    /// `handle_values`.
    pub fn poll_reads(&mut self) -> Arc<Vec<ReadKey>> {
        self.reads.poll()
    }

    /// Take the values of the keys that `poll_reads` returned last, in their order.
    ///
    /// An error says what is wrong with one.
    pub fn handle_values<'v>(
        &mut self,
        shard: &Shard,
        batch: BatchKeys,
        values: impl IntoIterator<Item = Option<&'v [u8]>>,
    ) -> Result<(), Damaged> {
        self.reads.handle_values(values)?;
        self.advance(shard, batch)
    }

    pub(super) fn held_bytes(&self) -> usize {
        self.page_bytes + self.reads.held_bytes + RENEWALS_BYTES * self.renewals.len()
    }

    /// Let go of the records and renewals that were read.
    pub(super) fn release(&mut self) {
        self.pages.clear();
        self.renewals.clear();
        self.page_bytes = 0;
        self.read_records.clear();
    }

    /// The record of a document. An error says that there is none.
    pub(super) fn record<'a>(&'a mut self, shard: &'a Shard, number: u64) -> Polled<&'a [u8]> {
        // Floods ask for most records that are in memory, so these are looked up once.
        if let Some((record, age)) = shard.find_record(number) {
            if age == Age::Old {
                self.old_records.push(number);
            }
            return Ok(Poll::Ready(record));
        }
        let (page, place) = page_of(number);
        let missing = || Damaged(format!("document {number} has no record"));
        if number >= shard.inserted {
            return Err(missing());
        }
        ready!(self.poll_page(page)?);
        self.read_records.push(number);
        self.pages.get(&page).and_then(|page| page.get(place)).map(Poll::Ready).ok_or_else(missing)
    }

    /// The record of a document, if it is at hand.
    pub(super) fn record_here<'a>(&'a self, shard: &'a Shard, number: u64) -> Option<&'a [u8]> {
        shard.find_record(number).map(|(record, _)| record).or_else(|| self.read_record(number))
    }

    /// The record of a document, if it was read.
    pub(super) fn read_record(&self, number: u64) -> Option<&[u8]> {
        let (page, place) = page_of(number);
        self.pages.get(&page)?.get(place)
    }

    /// Have a page of records be read.
    pub(super) fn poll_page(&mut self, page: u64) -> Polled<()> {
        if let Entry::Vacant(new) = self.pages.entry(page) {
            let stored = ready!(self.reads.take(ReadKey { table: None, key: page_key(page) }));
            let missing = || Damaged(format!("page {page} of the records is missing"));
            let read = RecordPage::unpack(page, &stored.ok_or_else(missing)?)?;
            self.page_bytes += read.size_bytes();
            new.insert(read);
        }
        Ok(Poll::Ready(()))
    }

    /// A page of records, if it was read.
    pub(super) fn page(&self, page: u64) -> Option<&RecordPage> {
        self.pages.get(&page)
    }

    pub(super) fn renewals(&mut self, number: u64) -> Polled<&Vec<(u8, i64)>> {
        let unpack = |packed: Option<Vec<u8>>| unpack_renewals(&packed.unwrap_or_default());
        kept(&mut self.renewals, &mut self.reads, keys::RENEWALS, number, unpack)
    }

    pub(super) fn verdict(&mut self, number: u64) -> Polled<&Option<Vec<u8>>> {
        kept(&mut self.verdicts, &mut self.reads, keys::VERDICTS, number, Ok)
    }

    /// The list of earlier documents with the same key of their ids, if there is one.
    pub(super) fn id_list(&mut self, number: u64) -> Polled<&Option<IdList>> {
        let unpack = |packed: Option<Vec<u8>>| {
            packed.map(|packed| IdList::unpack(number, &packed)).transpose()
        };
        kept(&mut self.id_lists, &mut self.reads, keys::ID_LISTS, number, unpack)
    }
}

/// What is stored of a document under a kind of keys; it is read once.
fn kept<'a, T>(
    values: &'a mut FxHashMap<u64, T>,
    reads: &mut Reads,
    kind: u8,
    number: u64,
    unpack: impl FnOnce(Option<Vec<u8>>) -> Result<T, Damaged>,
) -> Polled<&'a T> {
    Ok(Poll::Ready(match values.entry(number) {
        Entry::Occupied(known) => known.into_mut(),
        Entry::Vacant(new) => {
            let packed = ready!(reads.take_verified(number_key(kind, number))?);
            new.insert(unpack(packed)?)
        }
    }))
}

impl Shard {
    /// The slot of the column of ids; none before the first write.
    pub(super) fn id_slot(&self) -> Option<u8> {
        self.list.slot(ID_COLUMN).ok()
    }
}
