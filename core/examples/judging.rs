//! What a shard costs without RocksDB, in ns of CPU a document. On Linux:
//!
//!     cargo run --release --no-default-features --features testing --example judging [NAME]
//!
//! The store is a map in memory. What it takes to read from it, and to write, is told apart. Each
//! line is the mean of many batches; the first third of them isn't counted.

use std::fs::read_to_string;
use std::sync::Arc;

use _core::index::batch::Batch;
use _core::index::clock::Clock;
use _core::index::config::IndexConfig;
use _core::index::rules::{Rules, SameId};
use _core::index::shard::plan::Plan;
use _core::index::shard::state::{Settings, Shard};
use _core::index::shard::tests::store::Memory;

const BANDS: usize = 18;
const ROWS: usize = 7;
const SLOTS: usize = 128;
const COLUMNS: usize = BANDS + 1;
const BATCH: u64 = 2_000;
const BATCHES: u64 = 60;
const RUN_DOCUMENTS: u32 = 16_384;

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
    let config =
        Arc::new(IndexConfig::new(rules, (0..COLUMNS as u8).collect(), SLOTS).expect("good"));
    let settings = Settings { run_documents: RUN_DOCUMENTS, window };
    let mut store = Memory::default();
    let mut shard = store.open(settings, 0).expect("it is empty");
    let mut clock = Clock::default();
    let mut costs = Costs::default();
    for number in 0..BATCHES {
        if number == BATCHES / 3 {
            costs = Costs::default();
        }
        let batch = Arc::new(batch(number * BATCH, &made));
        let begun = cpu();
        let plan = Plan::new(&shard, config.clone(), batch, &clock);
        let mut plan = plan.expect("sound");
        let read = costs.read(&mut plan, &shard, &store);
        let judged = cpu();
        plan.prepare();
        let read_again = costs.read(&mut plan, &shard, &store);
        let (writes, _) = plan.write(&shard).expect("sound").expect("all was read");
        costs.judging += judged - begun - read;
        costs.writing += cpu() - judged - read_again;
        store.write(writes);
        let begun = cpu();
        clock = plan.apply(&mut shard).expect("there is a write");
        costs.writing += cpu() - begun;
    }
    let documents = BATCH * (BATCHES - BATCHES / 3);
    let Costs { judging, reading, writing } = costs;
    let [judging, reading, writing] = [judging, reading, writing].map(|cost| cost / documents);
    println!("{name:>28} {judging:>8} ns judging, {reading:>6} reading, {writing:>6} writing");
}

/// CPU time, in ns.
#[derive(Default)]
struct Costs {
    judging: u64,
    reading: u64,
    writing: u64,
}

impl Costs {
    /// Read until nothing is left to read; return what reading took.
    fn read(&mut self, plan: &mut Plan, shard: &Shard, store: &Memory) -> u64 {
        let before = self.reading;
        loop {
            let wanted = plan.poll_reads(shard).expect("sound").to_vec();
            if wanted.is_empty() {
                return self.reading - before;
            }
            let begun = cpu();
            let values = store.get(&wanted);
            self.reading += cpu() - begun;
            plan.handle_values(shard, values).expect("sound");
        }
    }
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
