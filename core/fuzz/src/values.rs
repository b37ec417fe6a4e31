//! All other stored values: the list of runs, buckets, renewals, numbers, verdicts, the clock, and
//! writes of the memtable.
//!
//! A value that is taken must be one that would be written, and what follows from it must not fail.
//! The times of documents are hostile, too: the clock is asked whether batches may be cut anywhere.

use _core::index::clock::{Clock, Dated, NO_TIME};
use _core::index::rules::{Rules, SameId};
use _core::index::shard::checksum::{add_checksum, verify_checksum};
use _core::index::shard::contents::Contents;
use _core::index::shard::id_list::IdList;
use _core::index::shard::keys::{self, MEMTABLE, Place, RUNS, grown_key, number_key};
use _core::index::shard::layout::{pack_bucket, pack_renewals, unpack_bucket, unpack_renewals};
use _core::index::shard::memtable::{Added, Memtable, pack_added, unpack_added};
use _core::index::shard::run_list::{ID_COLUMN, Merging, Run, RunList};
use _core::index::shard::state::Settings;
use _core::index::shard::{open::Opening, run};
use _core::index::verdict::{self, VerdictMatch};

use crate::input::{Input, spoil};

pub fn run(data: &[u8]) {
    let mut input = Input(data);
    match input.below(8) {
        0 => runs(&mut input),
        1 => bucket(&mut input),
        2 => renewals(&mut input),
        3 => open_run(&mut input),
        4 => verdicts(&mut input),
        5 => stored_clock(&mut input),
        6 => id_list(&mut input),
        _ => clock_of_documents(&mut input),
    }
}

/// What was written, or a spoilt one, or any bytes.
fn given(mut genuine: Vec<u8>, input: &mut Input) -> Vec<u8> {
    match input.below(4) {
        0 => return genuine,
        1 => return input.rest().to_vec(),
        _ => spoil(&mut genuine, input),
    }
    genuine
}

fn runs(input: &mut Input) {
    let genuine = genuine_list(input).pack();
    assert!(RunList::unpack(&genuine).is_ok());
    let at = usize::from(input.u16()) % genuine.len();
    let mut flipped = genuine.clone();
    flipped[at] ^= input.byte().max(1);
    assert!(RunList::unpack(&flipped).is_err());

    let genuine = verify_checksum(RUNS, &genuine).expect("it was sealed").to_vec();
    let inserted = input.number();
    let (column, key) = (input.byte(), input.u64());
    let place = Place { run: input.u32(), slot: input.byte(), page: input.u32() };
    let stored = add_checksum(RUNS, given(genuine, input));
    let Ok(mut list) = RunList::unpack(&stored) else { return };
    assert_eq!(list.pack(), stored);

    // Filters of forged sizes would take the memory of large shards.
    if list.run_documents <= 1 << 10 && list.runs.iter().all(|run| run.level <= 2) {
        open(&stored, inserted);
    }
    look(&stored, inserted, column, key, place);
    for level in 0..=u8::MAX {
        assert!(list.to_merge(level).is_none_or(|runs| runs.len() == run::FAN_IN));
    }
    if let Some(merging) = list.merging.first().cloned() {
        assert_eq!(list.replace(&merging).len(), merging.sources.len());
        assert!(RunList::unpack(&list.pack()).is_ok());
    }
    let (now, window) = (input.number() as i64, Some(1 + (input.number() >> 2) as i64));
    list.slices.note(Some(now), input.number() as i64, window);
    list.slices.is_due(Some(now), window);
    list.slices.drop(Some(now), window);
    list.drop_dead();
}

/// Begin to open a shard, of whose store nothing is there but its list of runs.
fn open(runs: &[u8], inserted: u64) {
    let settings = Settings { run_documents: 8, window: Some(1000) };
    let mut opening = Opening::new(settings, inserted);
    if opening.handle_values([Some(runs), None, None]).is_err() {
        return;
    }
    opening.tables();
    opening.ranges();
    if let Ok(shard) = opening.finish() {
        shard.sizes();
        shard.room();
        shard.hits(0, &[0, 1]);
        shard.slices_grown(0, &[0, 1]);
    }
}

/// Look at values by a list.
fn look(runs: &[u8], inserted: u64, column: u8, hash: u64, place: Place) {
    let Ok(contents) = Contents::new(Some(runs), inserted) else { return };
    for (key, value) in [
        (place.key(keys::PAGES), vec![0; 12]),
        (
            number_key(MEMTABLE, 0),
            pack_added(&[Added { slot: 0, posting: run::Posting { hash, document: place.run } }]),
        ),
    ] {
        let value = add_checksum(&key, value);
        let _ = contents.postings(&key, &value);
    }
    let key = grown_key(place.run, column, hash);
    let _ = contents.bucket(&key, &add_checksum(&key, place.page.to_le_bytes().to_vec()));
}

/// A list after some writes.
fn genuine_list(input: &mut Input) -> RunList {
    let documents = 1 + u64::from(input.byte());
    let mut list = RunList::new(documents as u32);
    list.columns = (0..input.below(6) as u8).chain([ID_COLUMN]).collect();
    for _ in 0..input.below(40) {
        let (first, number) = (list.end(), list.new_number());
        let end = first + 1 + u64::from(input.byte());
        list.runs.push(Run { number, level: 0, first, end, postings: input.u32().into() });
        if input.below(6) == 0 {
            list.slices.begin(end, Some(i64::from(input.u16())));
        }
        let level = input.below(3) as u8;
        if let Some(runs) = list.to_merge(level)
            && list.merging.iter().all(|other| other.level != level)
        {
            let sources = runs.iter().map(|run| run.number).collect();
            let target = list.new_number();
            list.merging.push(Merging { level, sources, target, began: end, done: 0, postings: 9 });
        }
        if input.below(4) == 0
            && let Some(merging) = list.merging.first().cloned()
        {
            list.replace(&merging);
        }
    }
    list
}

fn bucket(input: &mut Input) {
    let end = input.number();
    let count = input.below(20);
    let entries: Vec<u64> =
        (0..count).filter_map(|_| end.checked_sub(1 + (input.number() & 0x7FFF_FFFE))).collect();
    let has_overflow = input.below(2) == 1;
    let packed = pack_bucket(&entries, has_overflow);
    let found = unpack_bucket(&packed, end).expect("it was packed");
    assert_eq!((found.entries, found.has_overflow), (entries, has_overflow));
    let other = given(packed, input);
    if let Ok(found) = unpack_bucket(&other, end) {
        assert!(found.entries.iter().all(|&number| number < end));
        assert_eq!(pack_bucket(&found.entries, found.has_overflow), other);
    }
}

/// A list of documents with one id, as it grows; some are too old.
fn id_list(input: &mut Input) {
    let (mut list, mut number) = (IdList::default(), input.number() >> 1);
    for _ in 0..input.below(100) {
        assert_eq!(IdList::unpack(number, &list.pack()).as_ref(), Ok(&list));
        assert!(list.entries().len() <= 7 * 3);
        list.push(number);
        number += 1 + u64::from(input.byte());
        if input.below(40) == 0 {
            list.prune(number.saturating_sub(input.u16().into()));
        }
    }
    let other = given(list.pack(), input);
    if let Ok(found) = IdList::unpack(number, &other) {
        assert_eq!(found.pack(), other);
        assert!(found.entries().iter().all(|&(_, before)| before < number));
    }
}

fn renewals(input: &mut Input) {
    let mut genuine: Vec<(u8, i64)> =
        (0..input.below(20)).map(|_| (input.byte(), input.number() as i64)).collect();
    genuine.sort_unstable();
    genuine.dedup_by_key(|(column, _)| *column);
    let packed = pack_renewals(&genuine);
    let sorted = |mut renewals: Vec<(u8, i64)>| {
        renewals.sort_unstable();
        renewals
    };
    assert_eq!(unpack_renewals(&packed).map(sorted), Ok(genuine));
    if let Ok(found) = unpack_renewals(&given(packed, input)) {
        let again = unpack_renewals(&pack_renewals(&found));
        assert_eq!(again.map(sorted), Ok(sorted(found)));
    }
}

fn open_run(input: &mut Input) {
    let columns = 1 + input.below(6);
    let first = input.number() >> 1;
    let genuine: Vec<Added> = (0..input.below(60))
        .map(|_| {
            let slot = input.below(columns) as u8;
            let hash = input.one_of([0, 1, u64::MAX]).wrapping_mul(input.u64());
            let document = first.wrapping_add(input.byte().into()) as u32 & !run::MARK;
            Added { slot, posting: run::Posting { hash, document } }
        })
        .collect();
    let packed = pack_added(&genuine);
    assert_eq!(unpack_added(&packed, columns).as_ref(), Ok(&genuine));
    let other = given(packed, input);
    if let Ok(found) = unpack_added(&other, columns) {
        assert_eq!(pack_added(&found), other);
    }
    let mut run = Memtable::new(columns, first);
    run.put(&genuine);
    for one in &genuine {
        let newest =
            |other: &&Added| (other.slot, other.posting.hash) == (one.slot, one.posting.hash);
        let expected = genuine.iter().rev().find(newest).map(|newest| newest.posting.document);
        let found = run.find(one.slot, one.posting.hash, false);
        assert_eq!(found.map(|number| number as u32 & !run::MARK), expected);
    }
    let in_all = (0..columns).map(|slot| run.sorted(slot as u8, &[]).len()).sum::<usize>();
    assert_eq!(in_all, run.postings());
}

fn verdicts(input: &mut Input) {
    let genuine: Vec<VerdictMatch> = (0..input.below(9))
        .map(|_| VerdictMatch {
            sequence: input.number(),
            similarity: f64::from(input.byte()) / 255.0,
            number: Some(input.number()).filter(|&number| number != u64::MAX),
            containment: f64::from(input.one_of([0, 0, 1, 77])) / 255.0,
        })
        .collect();
    let packed = verdict::pack(&genuine);
    assert_eq!(verdict::unpack(&packed), Ok(genuine));
    let _ = verdict::unpack(&given(packed, input));
}

fn rules(input: &mut Input) -> Rules {
    let now_of = 1 + input.below(64);
    let now_least = 1 + input.below(now_of.min(63));
    Rules {
        threshold: 0.5,
        absorb: 0.9,
        capacity: 6,
        max_matches: 20,
        window: Some((input.number() >> 1) as i64).filter(|&window| window % 4 > 0),
        same_id: SameId::Duplicate,
        containment: None,
        containment_error: 0.2,
        bands: 1,
        rows: 1,
        crowded: 3,
        now_rank: 1 + input.below(now_least),
        now_of,
        now_least,
    }
}

fn times(input: &mut Input) -> Vec<i64> {
    let base = input.time();
    (0..input.below(100))
        .map(|_| match input.below(8) {
            0 => NO_TIME,
            1 => input.time(),
            _ => base.saturating_add(input.u16().into()),
        })
        .collect()
}

fn stored_clock(input: &mut Input) {
    let rules = rules(input);
    let genuine = Dated::of(&Clock::default(), &times(input), &rules).clock;
    assert_eq!(Clock::unpacked(&genuine.packed()).as_ref(), Ok(&genuine));
    let times = times(input);
    let other = given(genuine.packed(), input);
    let Ok(clock) = Clock::unpacked(&other) else { return };
    assert_eq!(clock.packed(), other);
    for &time in &times {
        clock.settled(time);
        clock.oldest_alone(time, &rules);
    }
    Dated::of(&clock, &times, &rules).clock.packed();
}

/// The times of documents, in one batch, or in two.
fn clock_of_documents(input: &mut Input) {
    let rules = rules(input);
    let (before, times) = (times(input), times(input));
    let clock = Dated::of(&Clock::default(), &before, &rules).clock;
    let together = Dated::of(&clock, &times, &rules);
    let (one, other) = times.split_at(input.below(100).min(times.len()));
    let first = Dated::of(&clock, one, &rules);
    let second = Dated::of(&first.clock, other, &rules);
    assert_eq!(second.clock, together.clock);
    let settled = |dated: &Dated| -> Vec<i64> {
        dated.times.iter().map(|&time| together.clock.settled(time)).collect()
    };
    assert_eq!([settled(&first), settled(&second)].concat(), settled(&together));
    assert_eq!(first.older + second.older, together.older);
    let oldest = |dated: &Dated| dated.oldest.clone().unwrap_or_default();
    assert_eq!([oldest(&first), oldest(&second)].concat(), oldest(&together));
    if let (Some(before), Some(after)) = (clock.now, together.clock.now) {
        assert!(before <= after);
    }
}
