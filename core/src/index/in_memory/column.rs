//! The keys of all documents in one column, and the column's buckets, some ten bytes each.
//!
//! Most buckets have one document. So the table has that document's row alone: the bucket's key is
//! the document's. Buckets with more entries, and overflow buckets, are elsewhere, with their keys.

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

use crate::index::reader::Bucket;

/// So many rows can be told from places in `Column::several`.
pub const MOST_ROWS: usize = SEVERAL as usize;
const SEVERAL: u32 = 1 << 31;
/// What stands for a bucket that doesn't exist.
pub const NONE: u32 = u32::MAX;
/// Mixes keys, so that all bits of a hash matter: 2^64 divided by the golden ratio.
const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;

/// A bucket that has not just one document, or whose key isn't that of its document.
#[derive(Debug, Clone)]
struct Several {
    key: u64,
    entries: Box<[u32]>,
    has_overflow: bool,
}

#[derive(Debug, Clone, Default)]
pub struct Column {
    keys: Vec<u64>,
    /// A row; or a place in `several`, to which `SEVERAL` is added.
    table: HashTable<u32>,
    several: Vec<Several>,
    /// The places in `several` of buckets that were removed.
    free: Vec<u32>,
}

fn hash(key: u64) -> u64 {
    key.wrapping_mul(FACTOR).rotate_left(32)
}

impl Column {
    /// The keys of all documents, by row.
    pub fn keys(&self) -> &[u64] {
        &self.keys
    }

    /// Append the keys of further documents, which come to no bucket by that.
    pub fn append(&mut self, keys: &[u64]) {
        extend(&mut self.keys, keys);
    }

    /// What the table has of each key's bucket, or `NONE`.
    pub fn find_all(&self, keys: &[u64], found: &mut Vec<u32>) {
        found.extend(keys.iter().map(|&key| self.find(key)));
    }

    fn find(&self, key: u64) -> u32 {
        let Self { keys, several, .. } = self;
        let found = self.table.find(hash(key), |&value| key_of(value, keys, several) == key);
        found.copied().unwrap_or(NONE)
    }

    /// The bucket of a key; an empty one if there is none.
    pub fn bucket(&self, key: u64) -> Bucket {
        self.bucket_of(self.find(key))
    }

    /// The bucket of which the table has a value.
    pub fn bucket_of(&self, value: u32) -> Bucket {
        match value.checked_sub(SEVERAL) {
            None => Bucket { entries: vec![u64::from(value)], has_overflow: false },
            Some(_) if value == NONE => Bucket::default(),
            Some(place) => {
                let Several { entries, has_overflow, .. } = &self.several[place as usize];
                let entries = entries.iter().map(|&row| u64::from(row)).collect();
                Bucket { entries, has_overflow: *has_overflow }
            }
        }
    }

    /// All buckets, in no order.
    #[cfg(test)]
    pub fn buckets(&self) -> Vec<(u64, Bucket)> {
        let key = |value| key_of(value, &self.keys, &self.several);
        self.table.iter().map(|&value| (key(value), self.bucket_of(value))).collect()
    }

    /// Insert a bucket that doesn't exist, with the row of a document that has its key.
    pub fn insert(&mut self, key: u64, row: u32) {
        let Self { keys, table, several, .. } = self;
        table.insert_unique(hash(key), row, |&value| hash(key_of(value, keys, several)));
    }

    /// Insert or replace a bucket. One without entries and overflow buckets is removed.
    pub fn put(&mut self, key: u64, entries: Box<[u32]>, has_overflow: bool) {
        let Self { keys, table, several, free } = self;
        let same = |value: &u32| key_of(*value, keys, several) == key;
        let held = table.entry(hash(key), same, |&value| hash(key_of(value, keys, several)));
        if entries.is_empty() && !has_overflow {
            if let Entry::Occupied(held) = held {
                let (value, _) = held.remove();
                if let Some(place) = value.checked_sub(SEVERAL) {
                    several[place as usize].entries = Box::default();
                    free.push(place);
                }
            }
            return;
        }
        let made = Several { key, entries, has_overflow };
        let value = match &held {
            Entry::Occupied(held) => held.get().checked_sub(SEVERAL),
            Entry::Vacant(_) => None,
        };
        match value.or_else(|| free.pop()) {
            Some(place) => {
                held.insert(SEVERAL + place);
                several[place as usize] = made;
            }
            None => {
                // Each has a key of its own, so there are fewer of them than rows.
                held.insert(SEVERAL + several.len() as u32);
                several.push(made);
            }
        }
    }
}

/// The row that is the only one in the bucket of which a table has a value, if that has no more.
pub fn singleton_of(value: u32) -> Option<u64> {
    (value < SEVERAL).then_some(u64::from(value))
}

/// The key of the bucket that a value of the table stands for.
#[inline]
fn key_of(value: u32, keys: &[u64], several: &[Several]) -> u64 {
    match value.checked_sub(SEVERAL) {
        None => keys[value as usize],
        Some(place) => several[place as usize].key,
    }
}

/// Append items; at most a fifth of the room is left empty.
pub fn extend<T: Copy>(items: &mut Vec<T>, others: &[T]) {
    let length = items.len() + others.len();
    if length > items.capacity() {
        items.reserve_exact((items.len() + items.len() / 4).max(length) - items.len());
    }
    items.extend_from_slice(others);
}
