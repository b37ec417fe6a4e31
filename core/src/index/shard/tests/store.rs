//! A store in memory: for an index that isn't kept, and for tests.

use std::collections::BTreeMap;
use std::ops::Bound;

use super::super::keys::{Key, Range};
use super::super::open::Opening;
use super::super::reads::ReadKey;
use super::super::state::{Settings, Shard};
use super::super::writes::{TableWrite, Writes};
use crate::index::reader::Damaged;

/// Keys and values, and the tables of runs.
#[derive(Debug, Clone, Default)]
pub struct Memory {
    keys: BTreeMap<Key, Vec<u8>>,
    tables: BTreeMap<u32, BTreeMap<Key, Vec<u8>>>,
    /// What is in files of tables that aren't finished.
    unfinished: BTreeMap<u32, BTreeMap<Key, Vec<u8>>>,
}

impl Memory {
    /// The values of keys, in their order.
    pub fn get(&self, reads: &[ReadKey]) -> Vec<Option<&[u8]>> {
        let get = |reads: &ReadKey| {
            let keys = match reads.table {
                Some(run) => self.tables.get(&run)?,
                None => &self.keys,
            };
            keys.get(&reads.key).map(Vec::as_slice)
        };
        reads.iter().map(get).collect()
    }

    /// All keys in a range, ascending, and their values.
    pub fn range(&self, range: &Range) -> impl Iterator<Item = (&[u8], &[u8])> {
        let bounds = (Bound::Included(range.low.clone()), Bound::Excluded(range.high.clone()));
        self.keys.range(bounds).map(|(key, value)| (key.as_slice(), value.as_slice()))
    }

    /// Write what comes before the atomic write.
    fn put_tables(&mut self, tables: Vec<TableWrite>) {
        for TableWrite { run, pages, finished, .. } in tables {
            let unfinished = self.unfinished.entry(run).or_default();
            unfinished.extend(pages);
            if finished {
                self.tables.entry(run).or_default().append(unfinished);
            }
        }
    }

    /// Write, as `Writes` says.
    pub fn write(&mut self, writes: Writes) {
        self.put_tables(writes.tables);
        for range in &writes.ranges {
            let keys: Vec<Key> = self.range(range).map(|(key, _)| Key::from_slice(key)).collect();
            keys.iter().for_each(|key| drop(self.keys.remove(key)));
        }
        for key in &writes.deletes {
            self.keys.remove(key);
        }
        self.keys.extend(writes.puts);
        for run in writes.replaced {
            self.tables.remove(&run);
            self.unfinished.remove(&run);
        }
    }

    /// All keys, with the runs in whose tables they are, and their values: to break some.
    pub fn values_mut(&mut self) -> impl Iterator<Item = (Option<u32>, &Key, &mut Vec<u8>)> {
        let keys = self.keys.iter_mut().map(|(key, value)| (None, key, value));
        let tables = self.tables.iter_mut().flat_map(|(&run, table)| {
            table.iter_mut().map(move |(key, value)| (Some(run), key, value))
        });
        keys.chain(tables)
    }

    /// Flip a bit of a value. `below` returns a number below another one.
    #[cfg(test)]
    pub fn flip(&mut self, mut below: impl FnMut(usize) -> usize) {
        let mut values: Vec<&mut Vec<u8>> = self.values_mut().map(|(_, _, value)| value).collect();
        let value = below(values.len());
        let bit = below(8 * values[value].len());
        values[value][bit / 8] ^= 1 << (bit % 8);
    }

    #[cfg(test)]
    pub fn table_runs(&self) -> impl Iterator<Item = u32> {
        self.tables.keys().copied()
    }

    /// Open the shard that is kept here, with so many documents.
    pub fn open(&mut self, settings: Settings, inserted: u64) -> Result<Shard, Damaged> {
        self.unfinished.clear();
        let mut opening = Opening::new(settings, inserted);
        let values = opening.keys().map(|key| self.keys.get(&key).map(Vec::as_slice));
        opening.handle_values(values)?;
        let (named, new) = opening.tables();
        if let Some(run) = named.iter().find(|run| !self.tables.contains_key(run)) {
            return Err(Damaged(format!("the tables of run {run} are missing")));
        }
        self.tables.retain(|run, _| named.contains(run) || new.contains(run));
        for (range, _) in opening.ranges() {
            for (key, value) in self.range(&range) {
                opening.take(key, value)?;
            }
        }
        opening.finish()
    }
}
