//! Judgements of a shard, with reopenings and windows, against those of a plain index.

use crate::index::batch::{Batch, Forgotten};
use crate::index::clock::{Clock, NO_TIME};
use crate::index::court::Court;
use crate::index::decision::Decision;
use crate::index::judge::Judgement;
use crate::index::plain::PlainIndex;
use crate::index::rules::{Rules, SameId};
use crate::index::shard::memory::Memory;
use crate::index::shard::plan::Plan;
use crate::index::shard::{Settings, Shard};
use crate::index::sight::Seen;
use std::sync::Arc;

const COLUMNS: [u8; 5] = [0, 2, 3, 5, 7];
fn mix(mut n: u64) -> u64 {
    n = n.wrapping_add(0x9E3779B97F4A7C15);
    n = (n ^ n >> 30).wrapping_mul(0xBF58476D1CE4E5B9);
    n = (n ^ n >> 27).wrapping_mul(0x94D049BB133111EB);
    n ^ n >> 31
}

/// Read until nothing is left to read.
fn read(plan: &mut Plan, shard: &Shard, memory: &Memory) {
    loop {
        let wanted = plan.wanted(shard).unwrap().to_vec();
        if wanted.is_empty() {
            return;
        }
        plan.give(shard, memory.get(&wanted)).unwrap();
    }
}

fn run(seed: u64, window: Option<i64>, same_id: SameId, containment: Option<f64>) {
    let slots = 64;
    let rows = 2;
    let mut state = seed;
    let mut random = |end: u64| {
        state = mix(state);
        state % end
    };
    let rules = Rules {
        threshold: 0.5,
        absorb: 0.9,
        capacity: 6,
        max_matches: 20,
        window,
        same_id,
        containment,
        containment_error: 0.2,
        bands: 7,
        rows,
        crowded: 3,
        now_rank: 4,
        now_of: 16,
        now_least: 8,
    };
    let court = Arc::new(Court::new(rules, COLUMNS.to_vec(), slots).unwrap());
    let settings = Settings { run_documents: 16, window };
    let mut memory = Memory::default();
    let mut shard = memory.open(settings, 0).unwrap();
    let mut plain = PlainIndex::new();
    let mut all: Vec<Vec<u8>> = vec![];
    let (mut sequence, mut time) = (0u64, 1000i64);
    let mut clock = Clock::default();
    let (mut matches, mut repeated) = (0, 0);
    for _step in 0..150 {
        let mut batch = Batch::default();
        let count = random(40) as usize;
        for _ in 0..count {
            let mut sketch: Vec<u8> = (0..slots).map(|_| random(256) as u8).collect();
            if !all.is_empty() && random(3) > 0 {
                let back = random(all.len() as u64).min(random(600)) as usize;
                sketch = all[all.len() - 1 - back].clone();
                for _ in 0..[0, 0, 2, 10, 25][random(5) as usize] {
                    let at = random(slots as u64) as usize;
                    sketch[at] = random(256) as u8
                }
            }
            batch.sequences.push(sequence);
            sequence += 1 + random(3);
            time += random(5) as i64;
            batch.times.push(match random(12) {
                0 => NO_TIME,
                1 => time - random(300) as i64,
                2 => time + random(80) as i64,
                _ => time,
            });
            batch.ids.push(&random(500).to_le_bytes());
            batch.shingles.push(20 + random(60) as u32);
            batch.sketches.extend_from_slice(&sketch);
            all.push(sketch);
        }
        for &column in &COLUMNS {
            for row in 0..count {
                let sketch = &batch.sketches[row * slots..(row + 1) * slots];
                let part =
                    if column < 7 { &sketch[column as usize * rows..][..rows] } else { sketch };
                batch.keys.push(part.iter().fold(column as u64, |k, &s| mix(k << 8 ^ s as u64)));
            }
        }
        let mut at: Vec<usize> =
            (0..random(3)).map(|_| random(count as u64 + 1) as usize).collect();
        at.sort();
        for row in at {
            batch.forgotten.push(Forgotten { row, id: random(500).to_le_bytes().to_vec() })
        }
        let batch = Arc::new(batch);
        let expected = {
            let mut sight = plain.sight(&court, &batch, false);
            let mut j = Judgement::new(court.clone(), batch.clone(), &plain.clock).unwrap();
            match j.step(&mut sight).unwrap() {
                Seen::Here(d) => d,
                Seen::Unread => panic!(),
            }
        };
        let mut plan = Plan::new(&shard, court.clone(), batch.clone(), &clock).unwrap();
        read(&mut plan, &shard, &memory);
        let got = plan.decision().unwrap().clone();
        let show = |d: &Decision| {
            (0..count)
                .map(|r| {
                    d.matches.matches[d.matches.starts[r]..d.matches.starts[r + 1]]
                        .iter()
                        .map(|m| {
                            (
                                m.sequence,
                                m.equal,
                                m.containment.to_bits(),
                                d.matches.ids[m.id.clone()].to_vec(),
                            )
                        })
                        .collect::<Vec<_>>()
                })
                .collect::<Vec<_>>()
        };
        if count > 0 {
            assert_eq!(show(&got), show(&expected));
        }
        if window.is_none() {
            assert_eq!(got.counts, expected.counts);
        } else {
            assert_eq!(
                (got.counts.absorbed, got.counts.divided, got.counts.repeated),
                (expected.counts.absorbed, expected.counts.divided, expected.counts.repeated)
            );
        }
        assert_eq!(got.dates, expected.dates);
        matches += got.matches.matches.len();
        repeated += got.counts.repeated;
        if window.is_none() {
            assert_eq!(got.changes.records, expected.changes.records);
            assert_eq!(got.changes.verdicts, expected.changes.verdicts);
            assert_eq!(got.changes.cells.len(), expected.changes.cells.len());
            assert_eq!(got.changes.forgotten, expected.changes.forgotten);
        }
        plain.apply(&expected, &court).unwrap();
        plan.prepare();
        read(&mut plan, &shard, &memory);
        let (writes, after) = plan.write(&shard).unwrap().unwrap();
        assert_eq!(writes.inserted, shard.inserted() + got.changes.records.len() as u64);
        let inserted = writes.inserted;
        memory.write(writes);
        clock = got.dates.clock;
        assert_eq!(&clock, after);
        if random(9) == 0 {
            shard = memory.open(settings, inserted).unwrap();
            let most = [0, 1 << 20][random(2) as usize];
            shard.limit(most, most)
        } else {
            assert!(plan.apply(&mut shard).is_some())
        }
        assert_eq!(shard.inserted(), inserted);
    }
    assert!(matches > 500 && (repeated > 100) == (same_id == SameId::Ignore));
}

#[test]
fn a_shard_and_a_plain_index_agree() {
    let mut seed = 1;
    for window in [None, Some(300), Some(1500)] {
        for same_id in [SameId::Duplicate, SameId::Replace, SameId::Ignore] {
            for containment in [None, Some(0.8)] {
                seed += 1;
                run(seed, window, same_id, containment);
            }
        }
    }
}
