//! A whole shard: batches, queries, reopenings, crashes, and values that are broken in its store.
//!
//! Two shards judge the same batches. One is never touched. The other one must come to the same
//! decisions, or find out what was broken. Without a window and ids that come again, an index in
//! memory must find the same matches. A value that is forged, with a checksum that is right, may
//! have another verdict follow; but nothing may fail otherwise than by an error.

use std::sync::Arc;

use _core::index::batch::{Batch, Forgotten};
use _core::index::clock::NO_TIME;
use _core::index::config::IndexConfig;
use _core::index::in_memory::{Given, MemoryIndex};
use _core::index::reader::Damaged;
use _core::index::rules::{Rules, SameId};
use _core::index::shard::checksum::{add_checksum, verify_checksum};
use _core::index::shard::keys::Key;
use _core::index::shard::state::Settings;
use _core::index::shard::tests::store::Memory;

use crate::input::{Input, spoil};
use crate::naive::SplitMix;
use crate::side::{Crash, Outcome, Shown, Side};

const BANDS: usize = 4;
const ROWS: usize = 4;
/// The bands, and the exact text.
const COLUMNS: [u8; BANDS + 1] = [0, 1, 2, 3, 4];
const SLOTS: usize = BANDS * ROWS;
const MOST_STEPS: usize = 60;

pub fn run(data: &[u8]) {
    let mut input = Input(data);
    let mut world = World::new(&mut input);
    for _ in 0..MOST_STEPS {
        if input.is_empty() {
            return;
        }
        match input.below(9) {
            0..4 => world.judge(&mut input),
            4 => world.reopen(&mut input),
            5 => world.ask(&mut input),
            6 => world.crash(&mut input),
            7 => world.flip(&mut input),
            _ => world.forge(&mut input),
        }
    }
}

struct World {
    config: Arc<IndexConfig>,
    /// Nothing happens to it but batches.
    quiet: Side,
    other: Side,
    /// If it can tell the same.
    plain: Option<MemoryIndex>,
    sketches: Vec<[u8; SLOTS]>,
    sequences: Vec<u64>,
    sequence: u64,
    time: i64,
}

impl World {
    fn new(input: &mut Input) -> Self {
        let window = input.one_of([None, None, Some(50), Some(300), Some(i64::MAX)]);
        let same_id = input.one_of([SameId::Duplicate, SameId::Replace, SameId::Ignore]);
        let rules = Rules {
            threshold: 0.4,
            absorb: 0.9,
            capacity: 1 + input.below(6),
            max_matches: 1 + input.below(20),
            window,
            same_id,
            containment: input.one_of([None, None, Some(0.8)]),
            containment_error: 0.3,
            bands: BANDS,
            rows: input.one_of([ROWS, ROWS, 0]),
            crowded: 1 + input.below(4),
            now_rank: 2,
            now_of: 8,
            now_least: 4,
        };
        let settings = Settings { run_documents: 1 + input.below(12) as u32, window };
        let plain = (window.is_none() && same_id == SameId::Duplicate).then(|| {
            MemoryIndex::new(rules.clone(), COLUMNS.len(), SLOTS).expect("they are right")
        });
        let config =
            Arc::new(IndexConfig::new(rules, COLUMNS.to_vec(), SLOTS).expect("they are right"));
        Self {
            quiet: Side::new(settings, config.clone()),
            other: Side::new(settings, config.clone()),
            config,
            plain,
            sketches: Vec::new(),
            sequences: Vec::new(),
            sequence: 0,
            time: 1000,
        }
    }

    fn sketch(&self, input: &mut Input) -> [u8; SLOTS] {
        let mut random = SplitMix(u64::from(input.byte()));
        let mut sketch = [0; SLOTS];
        sketch.iter_mut().for_each(|slot| *slot = random.draw() as u8);
        let Some(last) = self.sketches.len().checked_sub(1) else { return sketch };
        if input.below(4) > 0 {
            sketch = self.sketches[last - usize::from(input.byte()) % self.sketches.len()];
            for _ in 0..input.one_of([0, 0, 1, 1, 3, 6]) {
                sketch[input.below(SLOTS)] = input.byte();
            }
        }
        sketch
    }

    /// Some documents, which are remembered if they are to be judged.
    fn batch(&mut self, input: &mut Input, judged: bool) -> Arc<Batch> {
        let mut batch = Batch::default();
        let count = input.below(9);
        let mut own = Vec::new();
        for _ in 0..count {
            let sketch = self.sketch(input);
            self.time = self.time.saturating_add(input.below(20) as i64);
            batch.sequences.push(self.sequence);
            self.sequence += u64::from(judged);
            batch.times.push(match input.below(12) {
                0 => NO_TIME,
                1 => input.time(),
                2 => self.time.saturating_sub(input.byte().into()),
                _ => self.time,
            });
            batch.ids.push(&[input.byte() & 31]);
            batch.shingles.push(input.one_of([0, 1, 20, 60, u32::MAX]));
            batch.sketches.extend_from_slice(&sketch);
            own.push(sketch);
        }
        for column in 0..COLUMNS.len() {
            batch.keys.extend(own.iter().map(|sketch| key(column, sketch)));
        }
        if judged {
            self.sequences.extend_from_slice(&batch.sequences);
            self.sketches.extend(own);
            for _ in 0..input.one_of([0, 0, 0, 1, 2]) {
                let row = batch.forgotten.last().map_or(0, |last| last.row);
                let row = (row + input.below(4)).min(count);
                batch.forgotten.push(Forgotten { row, id: vec![input.byte() & 31] });
                self.plain = None;
            }
        }
        Arc::new(batch)
    }

    /// Judge a batch with the quiet shard; return what it came to.
    fn expected(&mut self, input: &mut Input) -> (Arc<Batch>, Outcome) {
        let batch = self.batch(input, true);
        let outcome = self.quiet.judge(&batch, None).expect("nothing is wrong with it");
        if let Some(plain) = &mut self.plain {
            let (keys, sketches) = (batch.keys.clone(), batch.sketches.clone());
            let given = Given { keys, sketches, shingles: batch.shingles.clone() };
            let first = plain.len();
            let found = plain.judge(&given, &vec![false; batch.len()]).expect("it is in memory");
            let mut matches = vec![Vec::new(); batch.len()];
            for at in 0..found.rows.len() {
                let sequence = self.sequences[found.rows[at] as usize];
                let similarity = found.similarity[at].to_bits();
                let containment = found.containment[at].to_bits();
                matches[found.documents[at] as usize - first].push((
                    sequence,
                    similarity,
                    containment,
                ));
            }
            let same = |(sequence, equal, containment, _): &Shown| {
                (*sequence, self.config.similarity(*equal).to_bits(), *containment)
            };
            let shown: Vec<Vec<_>> =
                outcome.matches.iter().map(|row| row.iter().map(same).collect()).collect();
            assert_eq!(shown, matches);
        }
        (batch, outcome)
    }

    fn judge(&mut self, input: &mut Input) {
        let (batch, expected) = self.expected(input);
        assert_eq!(self.other.judge(&batch, None).as_ref(), Ok(&expected));
    }

    fn reopen(&mut self, input: &mut Input) {
        let inserted = self.other.shard.inserted();
        self.other.open(inserted).expect("nothing is wrong with it");
        let most = input.one_of([0, 200, 1 << 20]);
        let some = || [0, 200, 1 << 20];
        self.other.shard.limit(most, input.one_of(some()), input.one_of(some()));
    }

    fn ask(&mut self, input: &mut Input) {
        let batch = self.batch(input, false);
        let expected = self.quiet.ask(&batch);
        assert!(expected.is_ok());
        assert_eq!(self.other.ask(&batch), expected);
    }

    fn crash(&mut self, input: &mut Input) {
        let crash = input.one_of([Crash::Unwritten, Crash::WithTables, Crash::Written]);
        let (batch, expected) = self.expected(input);
        let found = self.other.judge(&batch, Some(crash));
        assert_eq!(found.as_ref(), Ok(&expected));
        if crash != Crash::Written {
            assert_eq!(self.other.judge(&batch, None).as_ref(), Ok(&expected));
        }
    }

    /// Flip a byte of a value. That has to be found out, unless nobody reads it.
    fn flip(&mut self, input: &mut Input) {
        let before = (self.other.memory.clone(), self.other.clock.clone());
        let inserted = self.other.shard.inserted();
        let changed = change(&mut self.other.memory, input, |value, _, input| {
            let at = usize::from(input.u16()) % value.len();
            value[at] ^= input.byte().max(1);
        });
        let Some(changed) = changed else { return };
        let opened = if input.below(2) == 0 { self.other.open(inserted) } else { Ok(()) };
        let (batch, expected) = self.expected(input);
        let found = opened.and_then(|()| self.other.judge(&batch, None));
        match found {
            Ok(found) => {
                assert_eq!(found, expected);
                // It may have been written anew.
                for (table, key, value) in self.other.memory.values_mut() {
                    if table == changed.table && *key == changed.key && *value == changed.after {
                        value.clone_from(&changed.before);
                    }
                }
            }
            Err(Damaged(_)) => {
                (self.other.memory, self.other.clock) = before;
                self.other.open(inserted).expect("it is as it was");
                assert_eq!(self.other.judge(&batch, None).as_ref(), Ok(&expected));
            }
        }
    }

    /// Forge some values, and go on with them for a while.
    fn forge(&mut self, input: &mut Input) {
        let before = (self.other.memory.clone(), self.other.clock.clone());
        let inserted = self.other.shard.inserted();
        for _ in 0..=input.below(3) {
            change(&mut self.other.memory, input, |value, key, input| {
                let mut forged =
                    verify_checksum(key, value).map(<[u8]>::to_vec).unwrap_or_default();
                spoil(&mut forged, input);
                *value = add_checksum(key, forged);
            });
        }
        let said = match input.below(8) {
            0 => input.number(),
            _ => inserted,
        };
        let mut going = if input.below(4) > 0 { self.other.open(said) } else { Ok(()) };
        for _ in 0..=input.below(4) {
            let batch = self.batch(input, false);
            going = going.and_then(|()| self.other.ask(&batch).map(drop));
            going = going.and_then(|()| self.other.judge(&batch, None).map(drop));
        }
        (self.other.memory, self.other.clock) = before;
        self.other.open(inserted).expect("it is as it was");
    }
}

fn key(column: usize, sketch: &[u8; SLOTS]) -> u64 {
    let part = if column < BANDS { &sketch[column * ROWS..][..ROWS] } else { &sketch[..] };
    let mixed = |key: u64, slot: &u8| SplitMix(key << 8 ^ u64::from(*slot)).draw();
    part.iter().fold(column as u64, mixed)
}

/// A value that was changed.
struct Changed {
    table: Option<u32>,
    key: Key,
    before: Vec<u8>,
    after: Vec<u8>,
}

/// Change a value that the input chooses.
fn change(
    memory: &mut Memory,
    input: &mut Input,
    how: impl FnOnce(&mut Vec<u8>, &[u8], &mut Input),
) -> Option<Changed> {
    let mut values: Vec<_> = memory.values_mut().collect();
    let at = usize::from(input.u16()).checked_rem(values.len())?;
    let (table, key, value) = values.swap_remove(at);
    let before = value.clone();
    how(value, key, input);
    Some(Changed { table, key: key.clone(), before, after: value.clone() })
}
