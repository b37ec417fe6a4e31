//! Short runs of all targets on stable Rust: what is in `seeds`, and random changes of it.
//!
//! ```text
//! NEARDUP_FUZZ_RUNS=100000 cargo test --no-default-features --release
//! ```
//!
//! Runs are the same each time. A failure prints the bytes, and writes them to `artifacts`.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};

use neardup_fuzz::TARGETS;
use neardup_fuzz::naive::SplitMix;

const RUNS: usize = 3_000;
/// Of inputs that are made anew.
const MOST_BYTES: u64 = 400;

fn runs() -> usize {
    let poll_reads = std::env::var("NEARDUP_FUZZ_RUNS");
    poll_reads.map_or(RUNS, |runs| runs.parse().expect("NEARDUP_FUZZ_RUNS: takes an integer"))
}

fn folder(kind: &str, target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(kind).join(target)
}

/// What was found interesting before, in the order of the names.
fn seeds(target: &str) -> Vec<Vec<u8>> {
    let files = fs::read_dir(folder("seeds", target)).expect("each target has seeds");
    let mut paths: Vec<PathBuf> = files.map(|file| file.expect("it is there").path()).collect();
    paths.sort();
    paths.iter().map(|path| fs::read(path).expect("a seed can be read")).collect()
}

/// A seed with some changes, or two that are joined, or any bytes.
fn changed(seeds: &[Vec<u8>], random: &mut SplitMix) -> Vec<u8> {
    let mut below = |end: u64| random.draw() % end;
    let seed = |number: u64| &seeds[number as usize];
    let many = seeds.len() as u64;
    let mut bytes = match below(8) {
        0 => (0..below(MOST_BYTES)).map(|_| below(256) as u8).collect(),
        1 => [&seed(below(many))[..], seed(below(many))].concat(),
        _ => seed(below(many)).clone(),
    };
    for _ in 0..below(6) {
        let at = below(bytes.len() as u64 + 1) as usize;
        match below(4) {
            0 => bytes.truncate(at),
            1 => bytes.insert(at, below(256) as u8),
            2 => bytes.extend((0..below(20)).map(|_| below(256) as u8)),
            _ => bytes.iter_mut().skip(at).take(1).for_each(|byte| *byte = below(256) as u8),
        }
    }
    bytes
}

fn try_one(target: &str, run: fn(&[u8]), bytes: &[u8]) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| run(bytes))) {
        let folder = folder("artifacts", target);
        let path = folder.join("short");
        let written = fs::create_dir_all(&folder).and_then(|()| fs::write(&path, bytes));
        println!("{target} fails on {bytes:?}, which is in {}: {written:?}", path.display());
        resume_unwind(panic);
    }
}

fn short(target: &str) {
    let (_, run) = TARGETS.into_iter().find(|(name, _)| *name == target).expect("it is one");
    let (seeds, mut random) = (seeds(target), SplitMix(1));
    for seed in &seeds {
        try_one(target, run, seed);
    }
    for _ in 0..runs() {
        try_one(target, run, &changed(&seeds, &mut random));
    }
}

#[test]
fn sign() {
    short("sign");
}

#[test]
fn markup() {
    short("markup");
}

#[test]
fn pages() {
    short("pages");
}

#[test]
fn values() {
    short("values");
}

#[test]
fn shard() {
    short("shard");
}
