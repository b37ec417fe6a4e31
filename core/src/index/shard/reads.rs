//! The one place where keys of the store are asked for, and their values come in.

use std::collections::hash_map::Entry;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::checksum::{self, verify_checksum};
use super::keys::Key;
use crate::index::reader::{Damaged, Poll, Polled};

/// The most keys that are named at a time, so that their values take a few megabytes.
const MOST_KEYS: usize = 4096;

/// A key that must be read.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ReadKey {
    /// The run whose page it is; none: it is among all others.
    pub table: Option<u32>,
    pub key: Key,
}

/// What a key has in the store, if anything.
type Value = Option<Vec<u8>>;

/// Keys that were asked for, and values that nobody has taken yet.
#[derive(Default)]
pub struct Reads {
    /// The keys that weren't named yet.
    wants: Vec<ReadKey>,
    /// The keys that were named last.
    named: Arc<Vec<ReadKey>>,
    /// None was not given yet.
    values: FxHashMap<ReadKey, Option<Value>>,
    /// How long the values are that were given last.
    pub given_bytes: usize,
    /// How long the values are that nobody has taken yet.
    pub held_bytes: usize,
}

impl Reads {
    /// Have a key be read, unless it is already asked for.
    pub fn want(&mut self, key: ReadKey) {
        if let Entry::Vacant(new) = self.values.entry(key) {
            self.wants.push(new.key().clone());
            new.insert(None);
        }
    }

    /// Take what a key has, with its checksum. If it wasn't read, it will be.
    pub fn take(&mut self, key: ReadKey) -> Poll<Value> {
        match self.values.entry(key) {
            Entry::Occupied(held) => match held.get() {
                Some(value) => {
                    self.held_bytes -= value.as_ref().map_or(0, Vec::len);
                    Poll::Ready(held.remove().flatten())
                }
                None => Poll::Pending,
            },
            Entry::Vacant(new) => {
                self.wants.push(new.key().clone());
                new.insert(None);
                Poll::Pending
            }
        }
    }

    /// Take what a key has that is in no table, without its checksum.
    pub fn take_verified(&mut self, key: Key) -> Polled<Value> {
        let mut value = ready!(self.take(ReadKey { table: None, key: key.clone() }));
        if let Some(value) = &mut value {
            verify_checksum(&key, value)?;
            value.truncate(value.len() - checksum::BYTES);
        }
        Ok(Poll::Ready(value))
    }

    /// How many keys must be read next.
    pub fn unread(&self) -> usize {
        self.wants.len()
    }

    /// The keys that must be read next, by table and ascending; give all their values to
    /// `handle_values`.
    pub fn poll(&mut self) -> Arc<Vec<ReadKey>> {
        let mut wants = std::mem::take(&mut self.wants);
        wants.sort_unstable();
        self.wants = wants.split_off(wants.len().min(MOST_KEYS));
        self.named = wants.into();
        self.named.clone()
    }

    /// Take the values of the keys that `poll` returned last, in their order.
    pub fn handle_values<'v>(
        &mut self,
        values: impl IntoIterator<Item = Option<&'v [u8]>>,
    ) -> Result<(), Damaged> {
        let mut values = values.into_iter();
        self.given_bytes = 0;
        for key in &*std::mem::take(&mut self.named) {
            let value = values.next().ok_or_else(|| Damaged("a value wasn't given".into()))?;
            self.given_bytes += value.map_or(0, <[u8]>::len);
            self.held_bytes += value.map_or(0, <[u8]>::len);
            if let Some(held) = self.values.get_mut(key) {
                *held = Some(value.map(<[u8]>::to_vec));
            }
        }
        Ok(())
    }
}
