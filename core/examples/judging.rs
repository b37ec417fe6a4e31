//! What judging costs, in ns of CPU a document. On Linux:
//!
//!     cargo run --release --no-default-features --example judging [NAME]
//!
//! The index is in hash maps. What it takes to ask it for all cells of a batch is told apart. Each
//! line is the mean of many batches; the first third of them isn't counted.

use std::fs::read_to_string;
use std::hint::black_box;
use std::sync::Arc;

use _core::index::batch::Batch;
use _core::index::court::Court;
use _core::index::judge::Judgement;
use _core::index::plain::PlainIndex;
use _core::index::rules::{Rules, SameId};
use _core::index::sight::{Cell, Seen, Sight};

const BANDS: usize = 18;
const ROWS: usize = 7;
const SLOTS: usize = 128;
const COLUMNS: usize = BANDS + 1;
const BATCH: u64 = 2_000;
const BATCHES: u64 = 60;

/// A pseudorandom number for two others.
fn drawn(one: u64, other: u64) -> u64 {
    let word = (one ^ other.rotate_left(40)).wrapping_add(0x9E37_79B9_7F4A_7C15);
    let word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    word ^ (word >> 31)
}

/// The sketch of a text, of which a share of 256ths is another one's.
fn sketch(text: u64, other: u64, share: u64) -> impl Iterator<Item = u8> {
    (0..SLOTS as u64).map(move |slot| {
        let from = if drawn(slot, !other) % 256 < share { other } else { text };
        drawn(from, slot) as u8
    })
}

/// A batch of documents; `made` gives text, another text, and the share of that, for a number.
fn batch(first: u64, made: impl Fn(u64) -> (u64, u64, u64)) -> Batch {
    let numbers: Vec<u64> = (first..first + BATCH).collect();
    let texts: Vec<_> = numbers.iter().map(|&number| made(number)).collect();
    let sketches: Vec<u8> = texts.iter().flat_map(|&(a, b, share)| sketch(a, b, share)).collect();
    let band = |band: usize, row: usize| {
        let slots = &sketches[row * SLOTS + band * ROWS..][..ROWS];
        slots.iter().fold(band as u64, |hash, &slot| drawn(hash, u64::from(slot)))
    };
    let key = |column: usize, row: usize| match column {
        BANDS => drawn(drawn(texts[row].0, texts[row].1), texts[row].2),
        column => band(column, row),
    };
    let rows = BATCH as usize;
    let keys = (0..COLUMNS).flat_map(|column| (0..rows).map(move |row| (column, row)));
    Batch {
        keys: keys.map(|(column, row)| key(column, row)).collect(),
        times: numbers.iter().map(|&number| number as i64).collect(),
        ids: numbers.iter().map(|number| format!("document-{number:010}")).collect(),
        shingles: vec![300; rows],
        sequences: numbers,
        sketches,
        forgotten: Vec::new(),
    }
}

/// The CPU time of this thread, in ns.
fn cpu() -> u64 {
    let told = read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    told.split(' ').next().and_then(|first| first.parse().ok()).expect("Linux tells it")
}

fn measure(name: &str, window: Option<i64>, made: impl Fn(u64) -> (u64, u64, u64)) {
    if std::env::args().nth(1).is_some_and(|wanted| wanted != name) {
        return;
    }
    let rules = Rules {
        threshold: 0.8,
        absorb: 0.95,
        capacity: 32,
        max_matches: 64,
        window,
        same_id: SameId::Duplicate,
        containment: None,
        containment_error: 0.1,
        bands: BANDS,
        rows: ROWS,
        crowded: 8,
        now_rank: 16,
        now_of: 64,
        now_least: 32,
    };
    let court = Arc::new(Court::new(rules, (0..COLUMNS as u8).collect(), SLOTS).expect("good"));
    let mut index = PlainIndex::new();
    let (mut judging, mut asking) = (Vec::new(), Vec::new());
    for number in 0..BATCHES {
        let batch = Arc::new(batch(number * BATCH, &made));
        let begun = cpu();
        let mut sight = index.sight(&court, &batch, false);
        for cell in (0..COLUMNS).flat_map(|column| (0..batch.len()).map(move |row| (column, row))) {
            black_box(sight.may_exist(Cell { column: cell.0, row: cell.1 }));
        }
        asking.push((cpu() - begun) / BATCH);
        let begun = cpu();
        let judgement = Judgement::new(court.clone(), batch.clone(), &index.clock);
        let Ok(Seen::Here(decision)) = judgement.expect("good").step(&mut sight) else {
            unreachable!("all is at hand");
        };
        judging.push((cpu() - begun) / BATCH);
        index.apply(&decision, &court).expect("sound");
    }
    let mean = |all: Vec<u64>| {
        let counted = &all[all.len() / 3..];
        counted.iter().sum::<u64>() / counted.len() as u64
    };
    println!("{name:>28} {:>8} ns, {:>6} of them asking", mean(judging), mean(asking));
}

fn main() {
    for window in [None, Some(60_000)] {
        println!("window: {window:?}");
        measure("new", window, |number| (number, 0, 0));
        measure("copies of one", window, |_| (0, 0, 0));
        measure("copies of others", window, |number| (number % 3_000, 0, 0));
        measure("variants of one template", window, |number| (number, 1 << 40, 230));
        measure("variants of 1,000 templates", window, |number| {
            (number, (1 << 40) + number % 1_000, 230)
        });
        measure("a fifth near copies", window, |number| match number % 5 {
            4 if number > 5_000 => (number, number - 4_996, 240),
            _ => (number, 0, 0),
        });
        measure("decoys", window, |number| (number, 1 << 40, 192));
    }
}
