//! What was read or written lately: values by key, up to a number of bytes.
//!
//! There are two generations. What is new, or asked for again, goes into the young one. Once that
//! has half of the bytes, it becomes the old one, and the former old one goes. So nothing is ever
//! searched for something to drop, and what is asked for all the time stays.

use std::hash::Hash;

use rustc_hash::FxHashMap;

/// About what a value takes beside its bytes: its key, its place, and room in the map.
const OVERHEAD: usize = 48;

pub struct Recent<K> {
    most_bytes: usize,
    young: Generation<K>,
    old: Generation<K>,
}

struct Generation<K> {
    places: FxHashMap<K, Place>,
    bytes: Vec<u8>,
}

#[derive(Clone, Copy)]
struct Place {
    start: usize,
    length: u32,
}

impl<K: Hash + Eq + Copy> Generation<K> {
    fn empty() -> Self {
        Self { places: FxHashMap::default(), bytes: Vec::new() }
    }

    fn size_bytes(&self) -> usize {
        self.bytes.len() + OVERHEAD * self.places.len()
    }

    fn get(&self, key: &K) -> Option<&[u8]> {
        let place = self.places.get(key)?;
        self.bytes.get(place.start..place.start + place.length as usize)
    }

    fn put(&mut self, key: K, value: &[u8]) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(value);
        self.places.insert(key, Place { start, length: value.len() as u32 });
    }

    /// Nothing may be left of the bytes: they may be those of a document that is forgotten.
    fn forget(&mut self, key: &K) {
        if let Some(place) = self.places.remove(key) {
            self.bytes[place.start..place.start + place.length as usize].fill(0);
        }
    }
}

/// In which generation a value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Age {
    Young,
    /// It goes unless it is kept.
    Old,
}

impl<K: Hash + Eq + Copy> Recent<K> {
    pub fn new(most_bytes: usize) -> Self {
        Self { most_bytes, young: Generation::empty(), old: Generation::empty() }
    }

    /// About how much memory it takes.
    pub fn size_bytes(&self) -> usize {
        self.young.size_bytes() + self.old.size_bytes()
    }

    /// Take about so much memory from now on. What doesn't fit goes.
    pub fn limit(&mut self, most_bytes: usize) {
        self.most_bytes = most_bytes;
        if self.young.size_bytes() > most_bytes / 2 {
            self.age();
        }
        if self.size_bytes() > most_bytes {
            self.old = Generation::empty();
        }
    }

    pub fn get(&self, key: &K) -> Option<(&[u8], Age)> {
        let young = self.young.get(key).map(|value| (value, Age::Young));
        young.or_else(|| self.old.get(key).map(|value| (value, Age::Old)))
    }

    /// Add a value, or replace it. One that is too long for a generation isn't kept.
    pub fn put(&mut self, key: K, value: &[u8]) {
        self.forget(&key);
        self.add(key, value);
    }

    /// Add a value whose key isn't here.
    pub fn add(&mut self, key: K, value: &[u8]) {
        let size = value.len() + OVERHEAD;
        if size > self.most_bytes / 2 || u32::try_from(value.len()).is_err() {
            return;
        }
        if self.young.size_bytes() + size > self.most_bytes / 2 {
            self.age();
        }
        self.young.put(key, value);
    }

    /// Keep a value of the old generation.
    pub fn keep(&mut self, key: K) {
        if let Some(value) = self.old.get(&key) {
            let value = value.to_vec();
            self.put(key, &value);
        }
    }

    pub fn forget(&mut self, key: &K) {
        self.young.forget(key);
        self.old.forget(key);
    }

    fn age(&mut self) {
        self.old = std::mem::replace(&mut self.young, Generation::empty());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_stays_and_others_go() {
        let mut recent = Recent::new(100 * (OVERHEAD + 2));
        for key in 0..1000u32 {
            recent.put(key, &(key as u16).to_le_bytes());
            recent.keep(3);
        }
        let here: Vec<u32> = (0..1000).filter(|key| recent.get(key).is_some()).collect();
        assert_eq!(recent.get(&3).map(|(_, age)| age), Some(Age::Young));
        assert!(here.len() >= 50 && recent.size_bytes() <= 100 * (OVERHEAD + 2));
        assert_eq!((here[0], here[here.len() - 1]), (3, 999));
        for key in here {
            let value = recent.get(&key).map(|(value, _)| value);
            assert_eq!(value, Some(&(key as u16).to_le_bytes()[..]));
        }
    }

    #[test]
    fn nothing_is_left_of_what_is_forgotten_or_too_long() {
        let mut recent = Recent::new(1000);
        recent.put(1, b"secret");
        recent.put(1, &[0; 2000]);
        assert_eq!(recent.get(&1), None);
        recent.put(1, b"secret");
        recent.forget(&1);
        assert!(recent.young.bytes.iter().all(|&byte| byte == 0));
        recent.put(2, b"other");
        recent.limit(0);
        assert_eq!((recent.get(&2), recent.size_bytes()), (None, 0));
    }
}
