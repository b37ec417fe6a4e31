//! What is read for a batch: which buckets there are, by as few reads as possible.
//!
//! First all cells are looked up in memory, one column after the other. Nearly all buckets of a new
//! document don't exist, which is known then. The others are read in rounds.
//!
//! The keys of a document's bands follow from its sketch. So the record of a candidate, found in one
//! bucket, says in which others it is too. If a bucket of the candidate was new when it came, and
//! has not grown since, it has no other document. So of each document's buckets, the last one is
//! read first: that of its exact text, if that may exist. Buckets that follow from the records of
//! the candidates in it aren't read. To read them would cost most of what a copy or a near variant
//! costs.

use std::collections::hash_map::Entry;
use std::ops::Range;

use rustc_hash::{FxHashMap, FxHashSet};

use super::identities::Chain;
use super::keyspace::{self, grown_key, number_key};
use super::layout::{unpack_bucket, unpack_number, unpack_renewals};
use super::lookup::Hit;
use super::record_pages::{RecordPage, page_key, page_of};
use super::run_list::ID_COLUMN;
use super::seal::unseal;
use super::search::Search;
use super::{Shard, Wanted};
use crate::index::record::Record;
use crate::index::sight::{Bucket, Damaged};

/// Entries of a bucket from which others follow. A fuller one is that of a mould, whose documents
/// are in grown buckets mostly, and to look at all of them takes longer than to read.
const FEW: usize = 4;
const NOWHERE: u32 = u32::MAX;

/// A batch, as far as it is looked up.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// The columns' numbers.
    pub columns: &'a [u8],
    /// The keys of all documents in each column, one column after the other.
    pub keys: &'a [u64],
    /// The sketches of all documents.
    pub sketches: &'a [u8],
}

impl Asked<'_> {
    fn documents(&self) -> usize {
        self.keys.len() / self.columns.len().max(1)
    }
}

/// A bucket that may exist.
#[derive(Debug)]
struct Held {
    column: u8,
    search: Search,
    /// The eras in which it may have grown, newest first.
    eras: Vec<u32>,
    /// How many values of those were not given yet; none before they are named.
    grown_left: Option<usize>,
    /// What it grew to in the newest era in which it did.
    grown: Option<(u32, Bucket)>,
    known: Option<Known>,
}

/// What a bucket is, without the entries that are not kept any more.
#[derive(Debug)]
enum Known {
    Nothing,
    /// It has one cell: the number of its document.
    Alone(u64, Standing),
    Grown(Bucket, Standing),
}

impl Known {
    fn entries(&self) -> &[u64] {
        match self {
            Self::Nothing => &[],
            Self::Alone(number, _) => std::slice::from_ref(number),
            Self::Grown(bucket, _) => &bucket.entries,
        }
    }

    fn bucket(&self) -> Bucket {
        let beyond = matches!(self, Self::Grown(bucket, _) if bucket.beyond);
        Bucket { entries: self.entries().to_vec(), beyond }
    }

    fn standing(&self) -> Standing {
        match self {
            Self::Nothing => Standing::default(),
            Self::Alone(_, standing) | Self::Grown(_, standing) => *standing,
        }
    }
}

/// Whether a bucket has a cell, or has grown, in the current era.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Standing {
    pub celled: bool,
    pub grown: bool,
}

/// A cell whose bucket may exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Possible {
    row: u32,
    /// The column's place.
    column: u16,
    bucket: u32,
}

/// What a value is that was named.
#[derive(Debug, Clone, Copy)]
enum Purpose {
    Grown { bucket: u32, era: u32 },
    Cell { bucket: u32, at: usize },
    Page(u64),
    Renewals(u64),
    Verdict(u64),
    Previous(u64),
    NewestOfId { hash: u64, at: usize },
}

/// What has been read for a batch, and what has to be.
///
/// It belongs to the state that a shard is in: after `Shard::apply`, begin with another one.
#[derive(Default)]
pub struct Reading {
    slots: Vec<u8>,
    /// For each cell, its bucket, or `NOWHERE`.
    places: Vec<u32>,
    buckets: Vec<Held>,
    by_key: FxHashMap<(u8, u64), u32>,
    /// By document, those of a document by column.
    possible: Vec<Possible>,
    /// The parts of them that are of documents some of whose buckets aren't known.
    rows: Vec<Range<usize>>,
    /// Finer buckets.
    others: Vec<u32>,
    wants: Vec<(Wanted, Purpose)>,
    named: Vec<Purpose>,
    /// None was named, and not given yet.
    pages: FxHashMap<u64, Option<RecordPage>>,
    renewals: FxHashMap<u64, Option<Vec<(u8, i64)>>>,
    verdicts: FxHashMap<u64, Option<Option<Vec<u8>>>>,
    previous: FxHashMap<u64, Option<Option<u64>>>,
    pub(super) chains: FxHashMap<u64, Chain>,
    /// The documents whose records were asked for.
    pub(super) used_records: FxHashSet<u64>,
    /// The grown buckets that were asked for, and are in memory.
    pub(super) used_buckets: Vec<(u8, u64)>,
}

impl Reading {
    /// Look all cells of a batch up in memory.
    ///
    /// An error says that the shard doesn't have one of the columns.
    pub fn new(shard: &Shard, asked: Asked) -> Result<Self, Damaged> {
        let mut made = Self { places: vec![NOWHERE; asked.keys.len()], ..Self::default() };
        if shard.list.columns.is_empty() {
            return Ok(made);
        }
        let slots = asked.columns.iter().map(|&column| shard.list.slot(column));
        made.slots = slots.collect::<Result<_, _>>()?;
        let documents = asked.documents();
        for (column, keys) in asked.keys.chunks_exact(documents.max(1)).enumerate() {
            let first = made.buckets.len();
            for (row, hit) in shard.hits(made.slots[column], keys) {
                let bucket = made.hold(asked.columns[column], made.slots[column], keys[row], hit);
                made.places[column * documents + row] = bucket;
                made.possible.push(Possible { row: row as u32, column: column as u16, bucket });
            }
            made.note_growth(shard, first);
        }
        made.possible.sort_unstable();
        let mut start = 0;
        for row in made.possible.chunk_by(|one, next| one.row == next.row) {
            made.rows.push(start..start + row.len());
            start += row.len();
        }
        made.advance(shard, asked)?;
        Ok(made)
    }

    fn hold(&mut self, column: u8, slot: u8, hash: u64, hit: Hit) -> u32 {
        *self.by_key.entry((column, hash)).or_insert_with(|| {
            let search = Search::of(slot, hash, hit);
            let (eras, grown_left) = (Vec::new(), None);
            self.buckets.push(Held { column, search, eras, grown_left, grown: None, known: None });
            self.buckets.len() as u32 - 1
        })
    }

    /// Note in which eras the buckets of one column, from `first` on, may have grown. Those that
    /// are in memory are known.
    fn note_growth(&mut self, shard: &Shard, first: usize) {
        let Some(slot) = self.buckets.get(first).map(|bucket| bucket.search.slot) else { return };
        let new = &mut self.buckets[first..];
        let hashes: Vec<u64> = new.iter().map(|bucket| bucket.search.hash).collect();
        for (bucket, eras) in new.iter_mut().zip(shard.eras_grown(slot, &hashes)) {
            bucket.eras = eras;
            if bucket.eras.is_empty() {
                continue;
            }
            let key = (bucket.column, bucket.search.hash);
            if let Some((era, found)) = shard.recent_bucket(key) {
                self.used_buckets.push(key);
                bucket.known = Some(grown(shard, era, &found));
            }
        }
    }

    /// The bucket that a cell's key names, if it may exist.
    pub(super) fn bucket_of(&self, cell: usize) -> Option<u32> {
        self.places.get(cell).copied().filter(|&bucket| bucket != NOWHERE)
    }

    /// The bucket with a key, by the column's place, if it may exist; it will be read.
    pub(super) fn finer(
        &mut self,
        shard: &Shard,
        asked: Asked,
        column: usize,
        hash: u64,
    ) -> Result<Option<u32>, Damaged> {
        let (Some(&number), Some(&slot)) = (asked.columns.get(column), self.slots.get(column))
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
        self.known(bucket).map(Known::bucket)
    }

    fn known(&self, bucket: u32) -> Option<&Known> {
        self.buckets[bucket as usize].known.as_ref()
    }

    /// Whether the bucket of a column's number has a cell, or has grown, in the current era; none
    /// if it can't exist.
    ///
    /// An error says that it wasn't read.
    pub(super) fn standing(&self, column: u8, hash: u64) -> Result<Option<Standing>, Damaged> {
        let Some(&bucket) = self.by_key.get(&(column, hash)) else { return Ok(None) };
        let unread = || Damaged(format!("bucket {hash:016x} of column {column} wasn't read"));
        self.known(bucket).map(|known| Some(known.standing())).ok_or_else(unread)
    }

    /// The buckets that were read from the store and have grown: their columns' numbers, keys and eras.
    pub(super) fn read_grown(&self) -> impl Iterator<Item = ((u8, u64), u32, &Bucket)> {
        self.buckets.iter().filter_map(|bucket| {
            bucket.known.as_ref()?;
            let (era, content) = bucket.grown.as_ref()?;
            Some(((bucket.column, bucket.search.hash), *era, content))
        })
    }

    fn advance(&mut self, shard: &Shard, asked: Asked) -> Result<(), Damaged> {
        for row in std::mem::take(&mut self.rows) {
            if !self.advance_row(shard, asked, row.clone())? {
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

    /// Return whether all buckets of a document are known.
    fn advance_row(
        &mut self,
        shard: &Shard,
        asked: Asked,
        row: Range<usize>,
    ) -> Result<bool, Damaged> {
        let (others, first) = (row.start..row.end - 1, self.possible[row.end - 1].bucket);
        let is_known = self.step(shard, first, None);
        let mut all = true;
        for at in others.clone() {
            let bucket = self.possible[at].bucket;
            self.step_growth(shard, bucket);
            all &= self.known(bucket).is_some();
        }
        if !is_known || all {
            return Ok(is_known);
        }
        let Some(candidates) = self.candidates(shard, first)? else { return Ok(false) };
        let mut all = true;
        for at in others {
            let Possible { row, column, bucket } = self.possible[at];
            let shares = |number: &u64| self.shares(shard, asked, *number, column.into(), row);
            let candidate = candidates.iter().copied().find(shares);
            all &= self.step(shard, bucket, candidate);
        }
        Ok(all)
    }

    /// The documents in a bucket from which others may follow; none if their records must be read.
    ///
    /// A document that may have moved may not be in all of its buckets any more.
    fn candidates(&mut self, shard: &Shard, bucket: u32) -> Result<Option<Vec<u64>>, Damaged> {
        let entries = self.known(bucket).map_or(&[][..], Known::entries);
        if entries.len() > FEW || shard.settings.rows == 0 {
            return Ok(Some(Vec::new()));
        }
        let settled = shard.list.eras.current().first;
        let candidates: Vec<u64> = entries.iter().copied().filter(|&one| one >= settled).collect();
        let mut all = true;
        for &number in &candidates {
            all &= self.has_record(shard, number)?;
        }
        Ok(all.then_some(candidates))
    }

    /// Whether a document was the first one in a bucket that it shares with that of a row.
    fn shares(&self, shard: &Shard, asked: Asked, number: u64, column: usize, row: u32) -> bool {
        let settings = shard.settings;
        let band = usize::from(asked.columns[column]);
        let Some(Ok(record)) = self.record_here(shard, number).map(Record::unpack) else {
            return false;
        };
        if band >= settings.bands || record.new.len() != asked.columns.len().div_ceil(8) {
            return false;
        }
        let slots = band * settings.rows..(band + 1) * settings.rows;
        let own = asked.sketches.chunks_exact(settings.slots.max(1)).nth(row as usize);
        let own = own.and_then(|sketch| sketch.get(slots.clone()));
        record.new[column / 8] >> (column % 8) & 1 == 1
            && own.is_some()
            && own == record.sketch.get(slots)
    }

    /// Name what has to be read of a bucket; return whether it is known.
    ///
    /// `candidate` is a document that is the only one in it if it has not grown.
    fn step(&mut self, shard: &Shard, bucket: u32, candidate: Option<u64>) -> bool {
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
        for (at, wanted) in held.search.name(&shard.list) {
            self.wants.push((wanted, Purpose::Cell { bucket, at }));
        }
        false
    }

    /// Name the keys of what a bucket may have grown to; return whether that is known.
    fn step_growth(&mut self, shard: &Shard, bucket: u32) -> bool {
        let held = &mut self.buckets[bucket as usize];
        if held.known.is_some() {
            return true;
        }
        if held.grown_left.is_none() {
            held.grown_left = Some(held.eras.len());
            for &era in &held.eras {
                let key = grown_key(era, held.column, held.search.hash);
                self.wants.push((Wanted { table: None, key }, Purpose::Grown { bucket, era }));
            }
        }
        if held.grown_left != Some(0) {
            return false;
        }
        if let Some((era, _)) = held.grown
            && !held.eras.is_empty()
        {
            held.eras.clear();
            held.search.after(era, &shard.list);
        }
        true
    }

    /// Return the record of a document, if it is at hand.
    pub(super) fn record_here<'a>(&'a self, shard: &'a Shard, number: u64) -> Option<&'a [u8]> {
        shard.record_here(number).or_else(|| {
            let (page, place) = page_of(number);
            self.pages.get(&page)?.as_ref()?.get(place)
        })
    }

    /// Return whether the record of a document is at hand; else it will be read.
    ///
    /// An error says that there is none.
    pub(super) fn has_record(&mut self, shard: &Shard, number: u64) -> Result<bool, Damaged> {
        self.used_records.insert(number);
        if self.record_here(shard, number).is_some() {
            return Ok(true);
        }
        let (page, _) = page_of(number);
        let missing = || Damaged(format!("document {number} has no record"));
        match self.pages.get(&page) {
            Some(Some(_)) => return Err(missing()),
            Some(None) => {}
            None if number >= shard.inserted => return Err(missing()),
            None => {
                self.pages.insert(page, None);
                self.want(page_key(page), Purpose::Page(page));
            }
        }
        Ok(false)
    }

    fn want(&mut self, key: keyspace::Key, purpose: Purpose) {
        self.wants.push((Wanted { table: None, key }, purpose));
    }

    pub(super) fn renewals(&mut self, number: u64) -> Option<&Vec<(u8, i64)>> {
        if let Entry::Vacant(unread) = self.renewals.entry(number) {
            unread.insert(None);
            self.want(number_key(keyspace::RENEWALS, number), Purpose::Renewals(number));
        }
        self.renewals.get(&number)?.as_ref()
    }

    pub(super) fn verdict(&mut self, number: u64) -> Option<&Option<Vec<u8>>> {
        if let Entry::Vacant(unread) = self.verdicts.entry(number) {
            unread.insert(None);
            self.want(number_key(keyspace::VERDICTS, number), Purpose::Verdict(number));
        }
        self.verdicts.get(&number)?.as_ref()
    }

    /// The earlier document with the same key of its id, if there is one.
    pub(super) fn previous(&mut self, number: u64) -> Option<Option<u64>> {
        if let Entry::Vacant(unread) = self.previous.entry(number) {
            unread.insert(None);
            self.want(number_key(keyspace::PREVIOUS, number), Purpose::Previous(number));
        }
        *self.previous.get(&number)?
    }

    /// Name the pages to look for the newest document of an id's key.
    pub(super) fn want_newest(&mut self, hash: u64, wanted: Vec<(usize, Wanted)>) {
        let purpose = |at| Purpose::NewestOfId { hash, at };
        self.wants.extend(wanted.into_iter().map(|(at, wanted)| (wanted, purpose(at))));
    }

    /// The keys that must be read next, by table and ascending; give all their values to `give`.
    pub fn wanted(&mut self) -> Vec<Wanted> {
        let mut wants = std::mem::take(&mut self.wants);
        wants.sort_unstable_by(|one, other| one.0.cmp(&other.0));
        let (wanted, named) = wants.into_iter().unzip();
        self.named = named;
        wanted
    }

    /// Take the values of the keys that `wanted` returned last, in their order.
    ///
    /// An error says what is wrong with one.
    pub fn give<'v>(
        &mut self,
        shard: &Shard,
        asked: Asked,
        values: impl IntoIterator<Item = Option<&'v [u8]>>,
    ) -> Result<(), Damaged> {
        let mut values = values.into_iter();
        for purpose in std::mem::take(&mut self.named) {
            let value = values.next().ok_or_else(|| Damaged("a value wasn't given".into()))?;
            self.take(shard, purpose, value)?;
        }
        self.advance(shard, asked)
    }

    fn take(
        &mut self,
        shard: &Shard,
        purpose: Purpose,
        value: Option<&[u8]>,
    ) -> Result<(), Damaged> {
        let unsealed =
            |kind, number| value.map(|value| unseal(&number_key(kind, number), value)).transpose();
        match purpose {
            Purpose::Grown { bucket, era } => {
                let held = &mut self.buckets[bucket as usize];
                held.grown_left = held.grown_left.map(|left| left - 1);
                if let Some(value) = value {
                    let key = grown_key(era, held.column, held.search.hash);
                    let found = unpack_bucket(unseal(&key, value)?, shard.inserted)?;
                    if held.grown.as_ref().is_none_or(|(newest, _)| *newest < era) {
                        held.grown = Some((era, found));
                    }
                }
            }
            Purpose::Cell { bucket, at } => {
                self.buckets[bucket as usize].search.give(&shard.list, at, value)?;
            }
            Purpose::Page(page) => {
                let found = value.map(|value| RecordPage::unpack(page, value)).transpose()?;
                let missing = || Damaged(format!("page {page} of the records is missing"));
                self.pages.insert(page, Some(found.ok_or_else(missing)?));
            }
            Purpose::Renewals(number) => {
                let packed = unsealed(keyspace::RENEWALS, number)?.unwrap_or_default();
                self.renewals.insert(number, Some(unpack_renewals(packed)?));
            }
            Purpose::Verdict(number) => {
                let packed = unsealed(keyspace::VERDICTS, number)?;
                self.verdicts.insert(number, Some(packed.map(<[u8]>::to_vec)));
            }
            Purpose::Previous(number) => {
                let before =
                    unsealed(keyspace::PREVIOUS, number)?.map(unpack_number).transpose()?;
                if before.is_some_and(|before| before >= number) {
                    return Err(Damaged(format!("document {number} follows {before:?}")));
                }
                self.previous.insert(number, Some(before));
            }
            Purpose::NewestOfId { hash, at } => {
                if let Some(chain) = self.chains.get_mut(&hash) {
                    chain.search.give(&shard.list, at, value)?;
                }
            }
        }
        Ok(())
    }
}

impl Held {
    /// Settle what it is, once all of it was read. Of its newest cell and the newest era in which
    /// it has grown, the newer one counts. In one era, what it has grown to is newer than its cell.
    fn settle(&mut self, shard: &Shard) {
        let found = self.search.found();
        let era = found.map(|number| shard.list.eras.of_document(number));
        self.grown = self.grown.take().filter(|(grown, _)| era.is_none_or(|era| era <= *grown));
        self.known = Some(match (&self.grown, found) {
            (Some((era, bucket)), _) => grown(shard, *era, bucket),
            (None, Some(number)) => alone(shard, number),
            (None, None) => Known::Nothing,
        });
    }
}

/// A bucket that has one cell.
fn alone(shard: &Shard, number: u64) -> Known {
    let eras = &shard.list.eras;
    if number < eras.first() {
        return Known::Nothing;
    }
    Known::Alone(number, Standing { celled: number >= eras.current().first, grown: false })
}

/// A bucket that has grown in an era.
fn grown(shard: &Shard, era: u32, bucket: &Bucket) -> Known {
    let eras = &shard.list.eras;
    let entries = bucket.entries.iter().copied().filter(|&one| one >= eras.first()).collect();
    let bucket = Bucket { entries, beyond: bucket.beyond };
    Known::Grown(bucket, Standing { celled: false, grown: era == eras.current().number })
}

impl Shard {
    /// The slot of the column of ids; none before the first write.
    pub(super) fn id_slot(&self) -> Option<u8> {
        self.list.slot(ID_COLUMN).ok()
    }
}
