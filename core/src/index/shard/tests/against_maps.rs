//! A shard against plain maps, with reopenings and crashes at any point.
//!
//! The runs are tiny, so that drafts, merges of several levels, time slices and drops all happen within
//! some hundred documents. Decisions are a stand-in's: any changes that the judge could make.

use std::collections::{BTreeMap, BTreeSet};

use super::super::commit::Commit;
use super::super::fetch::{BatchKeys, Fetcher};
use super::super::keys::{self, Place};
use super::super::open::Opening;
use super::super::reader::ShardReader;
use super::super::record_pages::{self, page_of};
use super::super::run_list::{ID_COLUMN, MOST_RUN_DOCUMENTS, Run, RunList};
use super::super::slices::TimeSlices;
use super::super::state::{Settings, Shard};
use super::super::write::PendingWrite;
use super::super::writes::Writes;
use super::store::Memory;
use crate::index::clock::{Clock, Dated};
use crate::index::decision::{ChangedBucket, Changes, Decision, NewPosting};
use crate::index::reader::{Bucket, Damaged, IndexReader, Poll, Posting};
use crate::index::record::Record;

const COLUMNS: [u8; 5] = [0, 2, 3, 5, 7];
const BANDS: usize = 7;
const ROWS: usize = 2;
const SLOTS: usize = 15;

/// A generator of numbers (splitmix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        mixed(self.0)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    fn one_of(&mut self, some: u64) -> bool {
        self.below(some) == 0
    }
}

fn mixed(number: u64) -> u64 {
    let mut number = number;
    number = (number ^ number >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    number = (number ^ number >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    number ^ number >> 31
}

/// The keys of the overflow buckets of one with this key.
fn overflow_keys(key: u64) -> [u64; 2] {
    [mixed(key), mixed(key ^ 1)]
}

/// Documents with the keys that follow from their sketches.
#[derive(Default)]
struct Documents {
    sketches: Vec<Vec<u8>>,
    ids: Vec<Vec<u8>>,
}

impl Documents {
    fn some(random: &mut Random, count: usize, earlier: &[Vec<u8>]) -> Self {
        let mut made = Self::default();
        for _ in 0..count {
            let mut sketch: Vec<u8> = (0..SLOTS).map(|_| random.next() as u8).collect();
            if !earlier.is_empty() && random.one_of(2) {
                // A copy, or a variant, of a late one mostly.
                let back = random.below(earlier.len() as u64).min(random.below(1000)) as usize;
                sketch.clone_from(&earlier[earlier.len() - 1 - back]);
                for _ in 0..random.below(4) {
                    sketch[random.below(SLOTS as u64) as usize] = random.next() as u8;
                }
            } else if random.one_of(6) {
                sketch[0..6].fill(7);
            }
            made.sketches.push(sketch);
            let ids = if random.one_of(3) { 2 } else { 400 };
            made.ids.push(random.below(ids).to_le_bytes().to_vec());
        }
        made
    }

    fn key(&self, column: usize, row: usize) -> u64 {
        let sketch = &self.sketches[row];
        let number = usize::from(COLUMNS[column]);
        let slots = if number < BANDS { &sketch[number * ROWS..][..ROWS] } else { &sketch[..] };
        slots.iter().fold(number as u64, |key, &slot| mixed(key << 8 ^ u64::from(slot)))
    }

    fn keys(&self) -> Vec<u64> {
        let rows = 0..self.sketches.len();
        (0..COLUMNS.len())
            .flat_map(|column| rows.clone().map(move |row| self.key(column, row)))
            .collect()
    }
}

/// What a shard must say, in plain maps.
#[derive(Clone, Default)]
struct Model {
    /// What each bucket is, and the time slice in which that was written.
    buckets: BTreeMap<(usize, u64), (u32, Bucket)>,
    overflow: BTreeSet<(usize, u64)>,
    records: Vec<Vec<u8>>,
    renewals: BTreeMap<u64, Vec<(u8, i64)>>,
    verdicts: BTreeMap<u64, Vec<u8>>,
    ids: BTreeMap<Vec<u8>, Vec<u64>>,
    sketches: Vec<Vec<u8>>,
    forgotten: bool,
    now: i64,
}

impl Model {
    fn bucket(&self, key: (usize, u64), slices: &TimeSlices) -> Bucket {
        let (slice, mut bucket) = self.buckets.get(&key).cloned().unwrap_or_default();
        if slice < slices.kept()[0].number {
            return Bucket::default();
        }
        bucket.entries.retain(|&number| number >= slices.first());
        bucket
    }

    fn identified(&self, id: &[u8], first: u64) -> Vec<u64> {
        let all = self.ids.get(id).into_iter().flatten().rev().copied();
        let kept = |number: &u64| *number >= first && !self.records[*number as usize].is_empty();
        all.filter(kept).collect()
    }
}

fn batch<'a>(keys: &'a [u64], sketches: &'a [u8]) -> BatchKeys<'a> {
    BatchKeys { columns: &COLUMNS, keys, sketches, bands: BANDS, rows: ROWS }
}

fn here<T>(seen: Poll<T>) -> Option<T> {
    match seen {
        Poll::Ready(found) => Some(found),
        Poll::Pending => None,
    }
}

fn decision(changes: Changes, now: Option<i64>, latest: i64) -> Decision {
    let clock = Clock { now, ..Clock::default() };
    let dates = Dated { clock, latest, ..Dated::default() };
    Decision { changes, dates, ..Decision::default() }
}

struct Harness {
    random: Random,
    settings: Settings,
    memory: Memory,
    shard: Shard,
    model: Model,
    reads: usize,
}

impl Harness {
    fn new(seed: u64, run_documents: u32, window: Option<i64>) -> Self {
        let settings = Settings { run_documents, window };
        let mut memory = Memory::default();
        let shard = memory.open(settings, 0).unwrap();
        let (random, model) = (Random(seed), Model::default());
        Self { random, settings, memory, shard, model, reads: 0 }
    }

    fn read(&mut self, batch: BatchKeys, fetcher: &mut Fetcher) -> Result<bool, Damaged> {
        let reads = fetcher.poll_reads();
        self.reads += reads.len();
        let values = self.memory.get(&reads);
        assert_eq!(values.len(), reads.len());
        fetcher.handle_values(&self.shard, batch, values)?;
        Ok(!reads.is_empty())
    }

    /// Ask for everything about documents, until all of it was read; check it.
    fn look(&mut self, documents: &Documents) -> Result<Fetcher, Damaged> {
        let (keys, sketches) = (documents.keys(), documents.sketches.concat());
        let batch = batch(&keys, &sketches);
        let mut fetcher = Fetcher::new(&self.shard, batch)?;
        let rows = documents.sketches.len();
        let slices = self.shard.list().slices.clone();
        let first = slices.first();
        let overflow = self.model.overflow.iter().copied().filter(|_| self.random.one_of(8));
        let mut overflow: Vec<(usize, u64)> = overflow.collect();
        for column in 0..COLUMNS.len() {
            let keys = (0..rows).map(|row| documents.key(column, row));
            overflow.extend(keys.flat_map(|key| overflow_keys(key).map(|hash| (column, hash))));
        }
        loop {
            while self.read(batch, &mut fetcher)? {}
            let mut whole = true;
            let mut reader = ShardReader::new(&self.shard, batch, &mut fetcher);
            let mut numbers = BTreeSet::new();
            for column in 0..COLUMNS.len() {
                for row in 0..rows {
                    let expected = self.model.bucket((column, documents.key(column, row)), &slices);
                    let posting = Posting { column, row };
                    assert!(reader.may_exist(posting) || expected == Bucket::default());
                    numbers.extend(expected.entries.clone());
                    match here(reader.bucket(posting)?) {
                        Some(found) => assert_eq!(found, expected, "{posting:?}"),
                        None => whole = false,
                    }
                }
            }
            for &(column, hash) in &overflow {
                let expected = self.model.bucket((column, hash), &slices);
                numbers.extend(expected.entries.clone());
                match here(reader.overflow(column, hash)?) {
                    Some(found) => assert_eq!(found, expected),
                    None => whole = false,
                }
            }
            for number in numbers {
                match here(reader.record(number)?) {
                    Some(record) => assert_eq!(record, self.model.records[number as usize]),
                    None => whole = false,
                }
                let expected = self.model.renewals.get(&number).cloned().unwrap_or_default();
                match here(reader.renewals(number)?) {
                    Some(renewals) => assert_eq!(renewals, expected),
                    None => whole = false,
                }
                match here(reader.verdict(number)?) {
                    Some(verdict) => assert_eq!(verdict, self.model.verdicts.get(&number).cloned()),
                    None => whole = false,
                }
            }
            for id in &documents.ids {
                match here(reader.identified(id)?) {
                    Some(numbers) => assert_eq!(numbers, self.model.identified(id, first)),
                    None => whole = false,
                }
            }
            assert_eq!(reader.inserted(), self.model.records.len() as u64);
            assert_eq!(reader.all_kept(), !self.model.forgotten);
            if whole {
                return Ok(fetcher);
            }
        }
    }

    /// Decide something about documents.
    fn decide(&mut self, documents: &Documents) -> (Decision, Model) {
        let slices = self.shard.list().slices.clone();
        let (first, slice) = (slices.first(), slices.current().number);
        let (mut after, mut changes) = (self.model.clone(), Changes::default());
        let random = &mut self.random;
        let begin = after.records.len() as u64;
        for id in &documents.ids {
            if random.one_of(30) {
                changes.forgotten.extend(after.identified(id, first));
            }
        }
        changes.forgotten.sort_unstable();
        changes.forgotten.dedup();
        for &number in &changes.forgotten {
            after.forgotten = true;
            after.records[number as usize].clear();
            after.renewals.remove(&number);
            after.verdicts.remove(&number);
        }
        let mut touched = BTreeMap::<(usize, u64), Bucket>::new();
        let mut inserted = Vec::new();
        for row in 0..documents.sketches.len() {
            let number = begin + inserted.len() as u64;
            let mut anywhere = false;
            for column in 0..COLUMNS.len() {
                let key = (column, documents.key(column, row));
                let bucket = touched.entry(key).or_insert_with(|| after.bucket(key, &slices));
                let is_new = bucket.entries.is_empty();
                if !is_new && random.one_of(3) {
                    continue; // An entry stands for it.
                }
                if bucket.entries.len() > 5 {
                    bucket.entries.remove(0);
                    bucket.has_overflow = true;
                    let overflow = (column, overflow_keys(key.1)[random.below(2) as usize]);
                    after.overflow.insert(overflow);
                    let bucket =
                        touched.entry(overflow).or_insert_with(|| after.bucket(overflow, &slices));
                    bucket.entries.push(number);
                } else {
                    bucket.entries.push(number);
                }
                anywhere = true;
            }
            if anywhere {
                inserted.push(row);
            }
        }
        // Now and then, entries go.
        for (_, bucket) in touched.iter_mut().filter(|_| random.one_of(40)) {
            bucket.entries.truncate(1);
        }
        let mut new = vec![0u8; inserted.len()];
        for (&key, bucket) in &touched {
            let before = after.bucket(key, &slices);
            let (column, hash) = key;
            if before == *bucket {
                continue;
            }
            match bucket.entries[..] {
                [number]
                    if number >= begin && before == Bucket::default() && !bucket.has_overflow =>
                {
                    changes.postings.push(NewPosting { column, hash, number, may_exist: true });
                    if !after.overflow.contains(&key) {
                        new[(number - begin) as usize] |= 1 << column;
                    }
                }
                _ => {
                    let Bucket { entries, has_overflow } = bucket.clone();
                    changes.buckets.push(ChangedBucket { column, hash, entries, has_overflow });
                }
            }
            after.buckets.insert(key, (slice, bucket.clone()));
        }
        for (place, &row) in inserted.iter().enumerate() {
            let new = [new[place]];
            let (sketch, id) = (&documents.sketches[row][..], &documents.ids[row][..]);
            let record = Record { sequence: begin, time: 5, shingles: 3, sketch, new: &new, id };
            changes.records.push(record.pack());
            after.ids.entry(id.to_vec()).or_default().push(begin + place as u64);
            after.sketches.push(documents.sketches[row].clone());
        }
        after.records.extend(changes.records.iter().cloned());
        let end = after.records.len() as u64;
        for number in (first..end).rev().take(50) {
            let kept = !after.records[number as usize].is_empty();
            if kept && random.one_of(20) {
                changes.renewals.push((number, vec![(2, 77), (5, random.below(9) as i64)]));
            }
            if kept && number >= begin && random.one_of(5) {
                changes.verdicts.push((number, vec![3; random.below(50) as usize]));
            }
        }
        for (_, renewals) in &mut changes.renewals {
            renewals.sort_unstable_by_key(|renewal| (renewal.1, renewal.0));
        }
        after.renewals.extend(changes.renewals.iter().cloned());
        after.verdicts.extend(changes.verdicts.iter().cloned());
        after.now += random.below(60) as i64;
        let now = (end > 10).then_some(after.now);
        let latest = after.now + random.below(20) as i64;
        (decision(changes, now, latest), after)
    }

    fn prepare(
        &mut self,
        fetcher: &mut Fetcher,
        decision: &Decision,
    ) -> Result<(Writes, PendingWrite), Damaged> {
        let mut commit = Commit::new(&self.shard, fetcher, &COLUMNS, decision)?;
        loop {
            let reads = fetcher.poll_reads();
            if !reads.is_empty() {
                let values = self.memory.get(&reads);
                fetcher.handle_values(&self.shard, batch(&[], &[]), values)?;
            } else if commit.poll(&self.shard, fetcher)?.is_ready() {
                return commit.finish(&self.shard, fetcher, &COLUMNS, decision);
            }
        }
    }

    fn reopen(&mut self) {
        let inserted = self.model.records.len() as u64;
        self.shard = self.memory.open(self.settings, inserted).unwrap();
        let most = [0, 2000, 1 << 20][self.random.below(3) as usize];
        self.shard.limit(most, most, most);
    }

    fn step(&mut self) {
        let most = if self.random.one_of(10) { 100 } else { 20 };
        let count = self.random.below(most) as usize;
        let documents = Documents::some(&mut self.random, count, &self.model.sketches);
        let mut fetcher = self.look(&documents).unwrap();
        let (decision, after) = self.decide(&documents);
        let (mut writes, prepared) = self.prepare(&mut fetcher, &decision).unwrap();
        match self.random.below(12) {
            0 => return self.reopen(),
            1 => {
                let tables = std::mem::take(&mut writes.tables);
                self.memory.write(Writes { tables, ..Writes::default() });
                return self.reopen();
            }
            _ => {}
        }
        self.memory.write(writes);
        self.model = after;
        if self.random.one_of(12) {
            self.reopen();
        } else {
            self.shard.apply(fetcher, prepared);
        }
        self.check_store();
    }

    /// Nothing is in the store that no run needs.
    fn check_store(&self) {
        let list = self.shard.list();
        let runs: BTreeSet<u32> = list.runs.iter().map(|run| run.number).collect();
        let targets: BTreeSet<u32> = list.merging.iter().map(|plan| plan.target).collect();
        for (key, _) in self.memory.range(&keys::Range::all(keys::FILTERS)) {
            let run = Place::of(key).unwrap().run;
            assert!(runs.contains(&run) || targets.contains(&run), "run {run} is left");
        }
        for run in self.memory.table_runs() {
            assert!(runs.contains(&run) || targets.contains(&run), "table {run} is left");
        }
        let lists = self.memory.range(&keys::Range::all(keys::ID_LISTS)).count();
        let kept = self.model.records.len() - list.slices.first() as usize;
        assert!(lists <= self.model.ids.len() + kept / 7, "{lists} lists of {kept} documents");
        assert_eq!(list.columns.last(), (!list.columns.is_empty()).then_some(&ID_COLUMN));
    }
}

#[test]
fn a_shard_is_what_plain_maps_are() {
    for (seed, run_documents) in [(1, 8), (2, 16), (3, 64), (4, 300)] {
        let mut harness = Harness::new(seed, run_documents, None);
        (0..200).for_each(|_| harness.step());
        let levels = harness.shard.list().runs.iter().map(|run| run.level).max().unwrap_or(0);
        assert!(run_documents > 8 || levels >= 2, "{levels} levels of {run_documents}");
    }
}

#[test]
fn eras_give_space_back() {
    for (seed, window) in [(5, 400), (6, 700), (7, 1200)] {
        let mut harness = Harness::new(seed, 8, Some(window));
        (0..200).for_each(|_| harness.step());
        let sizes = harness.shard.sizes();
        assert!(sizes.expired_slices > 0 && sizes.documents < harness.model.records.len() as u64);
        let records = harness.memory.range(&keys::Range::all(keys::RECORDS)).count();
        assert!(records as u64 <= sizes.documents / 8 + 2);
    }
}

#[test]
fn the_first_write_with_columns_sets_them() {
    let mut harness = Harness::new(11, 8, None);
    let (mut fetcher, decision) = (Fetcher::default(), decision(Changes::default(), None, 0));
    for (columns, expected) in
        [(&[][..], Some(0)), (&[3, 3], None), (&[251], None), (&[5, 2], Some(3))]
    {
        let made = Commit::new(&harness.shard, &mut fetcher, columns, &decision)
            .and_then(|commit| commit.finish(&harness.shard, &fetcher, columns, &decision));
        assert_eq!(made.is_ok(), expected.is_some(), "{columns:?}");
        let (Ok((writes, prepared)), Some(expected)) = (made, expected) else { continue };
        harness.memory.write(writes);
        harness.shard.apply(Fetcher::default(), prepared);
        assert_eq!(harness.shard.list().columns.len(), expected);
        assert!(harness.memory.open(harness.settings, 0).is_ok());
    }
}

/// What says how large filters are is a few bytes; they may be forged.
#[test]
fn memory_is_not_taken_for_sizes_that_are_only_claimed() {
    for level in 0..=8 {
        for run_documents in [1, 100, 1 << 16, MOST_RUN_DOCUMENTS, u32::MAX] {
            let mut list = RunList::new(run_documents);
            list.columns = (0..=ID_COLUMN).collect();
            let end = 8u64.pow(level.into());
            let number = list.new_number();
            list.runs.push(Run { number, level, first: 0, end, postings: 1 });
            let mut opening = Opening::new(Settings { run_documents, window: None }, end);
            let page = record_pages::pack(page_of(end).0, &vec![b""; page_of(end).1]).unwrap().1;
            let given = opening.handle_values([Some(&list.pack()), None, Some(&page)]);
            assert!(given.is_ok() || level > 1 || run_documents > 1 << 16);
            assert!(given.is_err() || opening.finish().is_err(), "no part of the filter is there");
        }
    }
}

/// Whoever holds the lock of an interpreter must know that a step takes long.
#[test]
fn writes_that_close_a_run_are_heavy() {
    let mut harness = Harness::new(12, 400, None);
    let mut heavy = 0;
    for _ in 0..60 {
        let documents = Documents::some(&mut harness.random, 20, &[]);
        let mut fetcher = harness.look(&documents).unwrap();
        let (decision, after) = harness.decide(&documents);
        let commit =
            Commit::new(&harness.shard, &mut Fetcher::default(), &COLUMNS, &decision).unwrap();
        let weight = commit.weight(&harness.shard, &decision);
        let memtable_bytes = harness.shard.sizes().memtable_bytes;
        let (writes, prepared) = harness.prepare(&mut fetcher, &decision).unwrap();
        let closes = !writes.tables.is_empty();
        assert_eq!(weight, if closes { memtable_bytes } else { 0 });
        assert!(!closes || prepared.weight(&harness.shard) >= memtable_bytes);
        heavy += usize::from(closes);
        harness.memory.write(writes);
        harness.model = after;
        harness.shard.apply(fetcher, prepared);
    }
    assert!((1..5).contains(&heavy));
}

#[test]
#[ignore = "takes minutes"]
fn many_shards_are_what_plain_maps_are() {
    for seed in 100..200 {
        let window = [None, Some(300), Some(900), Some(3000)][seed as usize % 4];
        let mut harness = Harness::new(seed, [8, 16, 40][seed as usize % 3], window);
        (0..300).for_each(|_| harness.step());
    }
}

/// A shard with runs of several levels, grown buckets, time slices and forgotten documents.
fn grown(seed: u64) -> Harness {
    let mut harness = Harness::new(seed, 8, Some(4000));
    (0..120).for_each(|_| harness.step());
    harness.reopen();
    harness
}

#[test]
fn flipped_bits_give_an_error_or_change_nothing() {
    let mut harness = grown(8);
    let sound = harness.memory.clone();
    let mut found = 0;
    for _ in 0..400 {
        harness.memory = sound.clone();
        harness.memory.flip(|end| harness.random.below(end as u64) as usize);
        match harness.memory.open(harness.settings, harness.model.records.len() as u64) {
            Err(_) => found += 1,
            Ok(shard) => {
                harness.shard = shard;
                harness.shard.limit(0, 0, 0);
                let documents = Documents::some(&mut harness.random, 60, &harness.model.sketches);
                // It compares all that it sees with what must be there.
                found += usize::from(harness.look(&documents).is_err());
            }
        }
    }
    assert!(found > 40, "{found} of 400");
}

#[test]
fn damage_that_merges_and_forgetting_meet_gives_an_error() {
    let mut harness = grown(9);
    let sound = harness.memory.clone();
    let mut found = 0;
    for _ in 0..100 {
        harness.memory = sound.clone();
        harness.reopen();
        let documents = Documents::some(&mut harness.random, 40, &harness.model.sketches);
        let mut fetcher = harness.look(&documents).unwrap();
        let (decision, _) = harness.decide(&documents);
        for _ in 0..200 {
            harness.memory.flip(|end| harness.random.below(end as u64) as usize);
        }
        found += usize::from(harness.prepare(&mut fetcher, &decision).is_err());
    }
    assert!(found > 10, "{found} of 100");
}

#[test]
fn most_buckets_of_a_copy_are_not_read() {
    let mut harness = Harness::new(10, 64, None);
    let mut documents = Documents::some(&mut harness.random, 512, &[]);
    for (row, sketch) in documents.sketches.iter_mut().enumerate() {
        for band in sketch.chunks_exact_mut(ROWS) {
            band.copy_from_slice(&(row as u16).to_le_bytes()); // None share a bucket.
        }
    }
    for rows in 0..32 {
        let part = |all: &Vec<Vec<u8>>| all[rows * 16..][..16].to_vec();
        let some = Documents { sketches: part(&documents.sketches), ids: part(&documents.ids) };
        let mut fetcher = harness.look(&some).unwrap();
        let mut changes = Changes::default();
        let first = harness.shard.inserted();
        for row in 0..16 {
            let number = first + row as u64;
            for column in 0..COLUMNS.len() {
                let hash = some.key(column, row);
                changes.postings.push(NewPosting { column, hash, number, may_exist: true });
                let bucket = Bucket { entries: vec![number], has_overflow: false };
                harness.model.buckets.insert((column, hash), (0, bucket));
            }
            let (sketch, id) = (&some.sketches[row][..], &some.ids[row][..]);
            let record = Record { sequence: number, time: 5, shingles: 3, sketch, new: &[31], id };
            changes.records.push(record.pack());
            harness.model.ids.entry(id.to_vec()).or_default().push(number);
        }
        harness.model.records.extend(changes.records.iter().cloned());
        let decision = decision(changes, None, 0);
        let (writes, prepared) = harness.prepare(&mut fetcher, &decision).unwrap();
        harness.memory.write(writes);
        harness.shard.apply(fetcher, prepared);
    }
    harness.reopen();
    harness.shard.limit(0, 0, 0);
    harness.reads = 0;
    let (keys, sketches) = (documents.keys(), documents.sketches.concat());
    let batch = batch(&keys, &sketches);
    let mut fetcher = Fetcher::new(&harness.shard, batch).unwrap();
    while harness.read(batch, &mut fetcher).unwrap() {}
    let mut reader = ShardReader::new(&harness.shard, batch, &mut fetcher);
    for column in 0..COLUMNS.len() {
        for row in 0..512 {
            let bucket = Bucket { entries: vec![row as u64], has_overflow: false };
            assert_eq!(reader.bucket(Posting { column, row }), Ok(Poll::Ready(bucket)));
        }
    }
    // One bucket of each, all records, and where filters are wrong.
    assert!(harness.reads < 512 + 64 + 60, "{} reads", harness.reads);
}
