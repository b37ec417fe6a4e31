//! What is removed leaves no trace in any bucket.

use super::*;
use crate::index::reader::Bucket;

const COLUMNS: usize = 3;
const SLOTS: usize = 16;

struct Chance(u64);

impl Chance {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
        (self.0 >> 33) % end
    }
}

fn empty(capacity: usize) -> MemoryIndex {
    let rules = Rules {
        threshold: 0.6,
        absorb: 0.9,
        capacity,
        max_matches: 4,
        window: None,
        same_id: SameId::Duplicate,
        containment: None,
        containment_error: 0.1,
        bands: 0,
        rows: 0,
        crowded: 2,
        now_rank: 1,
        now_of: 1,
        now_least: 1,
    };
    MemoryIndex::new(rules, COLUMNS, SLOTS).expect("good rules")
}

/// Documents of few texts and keys.
fn documents(count: usize, chance: &mut Chance) -> Given {
    Given {
        keys: (0..COLUMNS * count).map(|_| chance.below(3)).collect(),
        sketches: (0..count * SLOTS).map(|_| chance.below(5) as u8 / 4).collect(),
        shingles: vec![9; count],
    }
}

fn some_of(given: &Given, rows: &[usize]) -> Given {
    let count = given.shingles.len();
    let keys = (0..COLUMNS).flat_map(|column| rows.iter().map(move |row| column * count + row));
    let sketches = rows.iter().flat_map(|row| &given.sketches[row * SLOTS..(row + 1) * SLOTS]);
    Given {
        keys: keys.map(|at| given.keys[at]).collect(),
        sketches: sketches.copied().collect(),
        shingles: vec![9; rows.len()],
    }
}

/// All buckets, by key; `named` gives the entries.
fn buckets(index: &MemoryIndex, named: impl Fn(u64) -> u64) -> Vec<Vec<(u64, Bucket)>> {
    let each = index.columns.iter().map(|column| {
        let mut buckets = column.buckets();
        let entries = buckets.iter_mut().flat_map(|(_, bucket)| &mut bucket.entries);
        entries.for_each(|entry| *entry = named(*entry));
        buckets.sort_by_key(|(key, _)| *key);
        buckets
    });
    each.collect()
}

#[test]
fn buckets_are_as_if_what_was_removed_had_never_come() {
    let mut chance = Chance(3);
    for capacity in [1, 2, 3, 8] {
        for count in [1, 2, 10, 60, 400] {
            let (mut index, given) = (empty(capacity), documents(count, &mut chance));
            index.judge(&given, &vec![false; count]).expect("sound");
            let mut left: Vec<usize> = (0..count).collect();
            for some in 0..count.min(10) {
                let gone = 0..left.len().min(1 + 2 * some);
                let gone = gone.map(|_| left.remove(chance.below(left.len() as u64) as usize));
                let gone: Vec<usize> = gone.collect();
                index.remove(&gone, &left).expect("sound");
            }
            let mut without = empty(capacity);
            without.judge(&some_of(&given, &left), &vec![false; left.len()]).expect("sound");
            let expected = buckets(&without, |entry| left[entry as usize] as u64);
            assert_eq!(buckets(&index, |entry| entry), expected, "{capacity}, {count}");
        }
    }
}
