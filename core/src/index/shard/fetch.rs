//! What is read for a batch: which buckets there are, by as few reads as possible.
//!
//! First all postings are looked up in memory, one column after the other. Nearly all buckets of a new
//! document don't exist, which is known then. The others are read in rounds.

use std::ops::Range;

use rustc_hash::FxHashMap;

use super::bucket::{BucketState, Held, Standing, alone, grown};
use super::checksum::verify_checksum;
use super::id_chains::Chain;
use super::id_list::IdList;
use super::keys::{self, grown_key, number_key};
use super::layout::{unpack_bucket, unpack_renewals};
use super::lookup::Hit;
use super::recent::Age;
use super::record_pages::RecordPage;
use super::run_list::ID_COLUMN;
use super::search::Search;
use super::{ReadKey, Shard};
use crate::index::batch::Batch;
use crate::index::config::IndexConfig;
use crate::index::reader::{Bucket, Damaged};

const NOWHERE: u32 = u32::MAX;
/// The most keys that are named at a time, so that their values take a few megabytes.
pub const MOST_KEYS: usize = 4096;
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

/// What a value is that was named.
#[derive(Debug, Clone, Copy)]
pub enum Purpose {
    Grown {
        bucket: u32,
        slice: u32,
    },
    Posting {
        bucket: u32,
        at: usize,
    },
    Page(u64),
    Renewals(u64),
    Verdict(u64),
    IdList(u64),
    NewestOfId {
        hash: u64,
        at: usize,
    },
    /// A page that a merge reads.
    Source(usize),
}

/// What has been read for a batch, and what has to be.
///
/// It belongs to the state that a shard is in: after `Shard::apply`, begin with another one.
#[derive(Default)]
pub struct Fetcher {
    slots: Vec<u8>,
    /// For each posting, its bucket, or `NOWHERE`.
    places: Vec<u32>,
    buckets: Vec<Held>,
    by_key: FxHashMap<(u8, u64), u32>,
    /// By document, those of a document by column.
    pub(super) possible: Vec<Possible>,
    /// The parts of them that are of documents some of whose buckets aren't known.
    rows: Vec<Range<usize>>,
    /// Finer buckets.
    others: Vec<u32>,
    wants: Vec<(ReadKey, Purpose)>,
    named: Vec<Purpose>,
    /// None was named, and not given yet.
    pub(super) pages: FxHashMap<u64, Option<RecordPage>>,
    page_bytes: usize,
    /// How long the values are that were given last.
    given_bytes: usize,
    pub(super) renewals: FxHashMap<u64, Option<Vec<(u8, i64)>>>,
    pub(super) verdicts: FxHashMap<u64, Option<Option<Vec<u8>>>>,
    pub(super) id_lists: FxHashMap<u64, Option<Option<IdList>>>,
    pub(super) chains: FxHashMap<u64, Chain>,
    /// The pages that merges read, in the order in which they are taken.
    sources: Vec<Option<Vec<u8>>>,
    /// The documents whose records were batch for and were read, or would go from memory.
    pub(super) read_records: Vec<u64>,
    pub(super) old_records: Vec<u64>,
    /// The grown buckets that were batch for and would go from memory.
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
            let (slices, grown_left) = (Vec::new(), None);
            self.buckets.push(Held {
                column,
                search,
                slices,
                grown_left,
                grown: None,
                known: None,
            });
            self.buckets.len() as u32 - 1
        })
    }

    /// Note in which time slices the buckets of one column, from `first` on, may have grown. Those that
    /// are in memory are known.
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
                bucket.known = Some(grown(shard, slice, found));
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
        self.others.push(bucket);
        self.step(shard, bucket, None);
        Ok(Some(bucket))
    }

    /// The content of a bucket, once it is known.
    pub(super) fn content(&self, bucket: u32) -> Option<Bucket> {
        self.known(bucket).map(BucketState::bucket)
    }

    /// The only document of a bucket, if it is known that it has one posting.
    pub(super) fn singleton(&self, bucket: u32) -> Option<u64> {
        match self.known(bucket) {
            Some(&BucketState::Alone(number, _)) => Some(number),
            _ => None,
        }
    }

    pub(super) fn known(&self, bucket: u32) -> Option<&BucketState> {
        self.buckets[bucket as usize].known.as_ref()
    }

    /// Whether the bucket of a column's number has a posting, or has grown, in the current time slice; none
    /// if it can't exist.
    ///
    /// An error says that it wasn't read.
    pub(super) fn standing(&self, column: u8, hash: u64) -> Result<Option<Standing>, Damaged> {
        let Some(&bucket) = self.by_key.get(&(column, hash)) else { return Ok(None) };
        let unread = || Damaged(format!("bucket {hash:016x} of column {column} wasn't read"));
        self.known(bucket).map(|known| Some(known.standing())).ok_or_else(unread)
    }

    /// The buckets that were read from the store and have grown: their columns' numbers, keys and time slices.
    pub(super) fn read_grown(&self) -> impl Iterator<Item = ((u8, u64), u32, &Bucket)> {
        self.buckets.iter().filter_map(|bucket| {
            bucket.known.as_ref()?;
            let (slice, content) = bucket.grown.as_ref()?;
            Some(((bucket.column, bucket.search.hash), *slice, content))
        })
    }

    fn advance(&mut self, shard: &Shard, batch: BatchKeys) -> Result<(), Damaged> {
        for row in std::mem::take(&mut self.rows) {
            if !self.advance_row(shard, batch, row.clone())? {
                self.rows.push(row);
            }
        }
        for bucket in std::mem::take(&mut self.others) {
            if !self.step(shard, bucket, None) {
                self.others.push(bucket);
            }
        }
        Ok(())
    }

    /// Name what has to be read of a bucket; return whether it is known.
    ///
    /// `candidate` is a document that is the only one in it if it has not grown.
    pub(super) fn step(&mut self, shard: &Shard, bucket: u32, candidate: Option<u64>) -> bool {
        if !self.step_growth(shard, bucket) {
            return false;
        }
        let held = &mut self.buckets[bucket as usize];
        if held.known.is_some() {
            return true;
        }
        if let (Some(number), None, None) = (candidate, &held.grown, held.search.found()) {
            held.known = Some(alone(shard, number));
            return true;
        }
        if held.search.is_over() {
            held.settle(shard);
            return true;
        }
        for (at, reads) in held.search.name(&shard.list) {
            self.wants.push((reads, Purpose::Posting { bucket, at }));
        }
        false
    }

    /// Name the keys of what a bucket may have grown to; return whether that is known.
    pub(super) fn step_growth(&mut self, shard: &Shard, bucket: u32) -> bool {
        let held = &mut self.buckets[bucket as usize];
        if held.known.is_some() {
            return true;
        }
        if held.grown_left.is_none() {
            held.grown_left = Some(held.slices.len());
            for &slice in &held.slices {
                let key = grown_key(slice, held.column, held.search.hash);
                self.wants.push((ReadKey { table: None, key }, Purpose::Grown { bucket, slice }));
            }
        }
        if held.grown_left != Some(0) {
            return false;
        }
        if let Some((slice, _)) = held.grown
            && !held.slices.is_empty()
        {
            held.slices.clear();
            held.search.after(slice, &shard.list);
        }
        true
    }

    pub(super) fn want(&mut self, key: keys::Key, purpose: Purpose) {
        self.wants.push((ReadKey { table: None, key }, purpose));
    }

    /// Name the pages to look for the newest document of an id's key.
    pub(super) fn want_newest(&mut self, hash: u64, reads: Vec<(usize, ReadKey)>) {
        let purpose = |at| Purpose::NewestOfId { hash, at };
        self.wants.extend(reads.into_iter().map(|(at, reads)| (reads, purpose(at))));
    }

    /// Have the pages be read that merges take.
    pub(super) fn want_sources(&mut self, reads: Vec<ReadKey>) {
        self.sources = vec![None; reads.len()];
        self.wants.extend(reads.into_iter().zip((0..).map(Purpose::Source)));
    }

    pub(super) fn sources(&self) -> impl Iterator<Item = Option<&[u8]>> {
        self.sources.iter().map(Option::as_deref)
    }

    /// How long the pages are that merges take.
    pub(super) fn source_bytes(&self) -> usize {
        self.sources.iter().flatten().map(Vec::len).sum()
    }

    /// The keys that must be read next, by table and ascending; give all their values to `handle_values`.
    pub fn poll_reads(&mut self) -> Vec<ReadKey> {
        let mut wants = std::mem::take(&mut self.wants);
        wants.sort_unstable_by(|one, other| one.0.cmp(&other.0));
        self.wants = wants.split_off(wants.len().min(MOST_KEYS));
        let (reads, named) = wants.into_iter().unzip();
        self.named = named;
        reads
    }

    pub(super) fn unread(&self) -> usize {
        self.wants.len()
    }

    pub(super) fn given_bytes(&self) -> usize {
        self.given_bytes
    }

    pub(super) fn held_bytes(&self) -> usize {
        self.page_bytes + RENEWALS_BYTES * self.renewals.len()
    }

    /// Let go of the records and renewals that were read.
    pub(super) fn release(&mut self) {
        self.pages.retain(|_, page| page.is_none());
        self.renewals.retain(|_, renewals| renewals.is_none());
        self.page_bytes = 0;
        self.read_records.clear();
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
        let mut values = values.into_iter();
        self.given_bytes = 0;
        for purpose in std::mem::take(&mut self.named) {
            let value = values.next().ok_or_else(|| Damaged("a value wasn't given".into()))?;
            self.given_bytes += value.map_or(0, <[u8]>::len);
            self.take(shard, purpose, value)?;
        }
        self.advance(shard, batch)
    }

    fn take(
        &mut self,
        shard: &Shard,
        purpose: Purpose,
        value: Option<&[u8]>,
    ) -> Result<(), Damaged> {
        let verified = |kind, number| {
            value.map(|value| verify_checksum(&number_key(kind, number), value)).transpose()
        };
        match purpose {
            Purpose::Grown { bucket, slice } => {
                let held = &mut self.buckets[bucket as usize];
                held.grown_left = held.grown_left.map(|left| left - 1);
                if let Some(value) = value {
                    let key = grown_key(slice, held.column, held.search.hash);
                    let found = unpack_bucket(verify_checksum(&key, value)?, shard.inserted)?;
                    if held.grown.as_ref().is_none_or(|(newest, _)| *newest < slice) {
                        held.grown = Some((slice, found));
                    }
                }
            }
            Purpose::Posting { bucket, at } => {
                self.buckets[bucket as usize].search.handle_values(&shard.list, at, value)?;
            }
            Purpose::Page(page) => {
                let found = value.map(|value| RecordPage::unpack(page, value)).transpose()?;
                let missing = || Damaged(format!("page {page} of the records is missing"));
                let found = found.ok_or_else(missing)?;
                self.page_bytes += found.size_bytes();
                self.pages.insert(page, Some(found));
            }
            Purpose::Renewals(number) => {
                let packed = verified(keys::RENEWALS, number)?.unwrap_or_default();
                self.renewals.insert(number, Some(unpack_renewals(packed)?));
            }
            Purpose::Verdict(number) => {
                let packed = verified(keys::VERDICTS, number)?;
                self.verdicts.insert(number, Some(packed.map(<[u8]>::to_vec)));
            }
            Purpose::IdList(number) => {
                let packed = verified(keys::ID_LISTS, number)?;
                let list = packed.map(|packed| IdList::unpack(number, packed)).transpose()?;
                self.id_lists.insert(number, Some(list));
            }
            Purpose::Source(at) => self.sources[at] = value.map(<[u8]>::to_vec),
            Purpose::NewestOfId { hash, at } => {
                if let Some(chain) = self.chains.get_mut(&hash) {
                    chain.search.handle_values(&shard.list, at, value)?;
                }
            }
        }
        Ok(())
    }
}

impl Shard {
    /// The slot of the column of ids; none before the first write.
    pub(super) fn id_slot(&self) -> Option<u8> {
        self.list.slot(ID_COLUMN).ok()
    }
}
