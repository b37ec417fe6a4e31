//! The keys of a shard in its store, in order.
//!
//! ===========  ==================================================================================
//! `f6`         verdicts of documents, by number (8 bytes)
//! `f7`         the store's own: pages of records with former bytes still in files
//! `f8`         earlier documents with the same id, by number (8 bytes); see `id_list`
//! `f9`         renewals of documents, by number (8 bytes); see `layout`
//! `fa`         grown buckets, by time slice (4 bytes), column and key; see `layout`
//! `fb`         pages of postings, by run, slot of the column, and page; see `postings`
//! `fc`         filters of runs, in parts: by run, slot of the column, and first page
//! `fd`         postings of the memtable, by the number of the first document of a write (8 bytes)
//! `fe`         pages of document records, by number (8 bytes); see `record_pages`
//! `ffgone`     is there if a document was ever forgotten
//! `ffruns`     the runs; see `run_list`
//! ===========  ==================================================================================
//!
//! Numbers in keys are big-endian. Keys from `ffheader` on that are not named here are the store's.

use smallvec::{SmallVec, smallvec};

use super::checksum::hex;
use crate::index::reader::Damaged;

pub const VERDICTS: u8 = 0xf6;
pub const ID_LISTS: u8 = 0xf8;
pub const RENEWALS: u8 = 0xf9;
pub const GROWN: u8 = 0xfa;
pub const PAGES: u8 = 0xfb;
pub const FILTERS: u8 = 0xfc;
pub const MEMTABLE: u8 = 0xfd;
pub const RECORDS: u8 = 0xfe;
pub const GONE: &[u8] = b"\xffgone";
pub const RUNS: &[u8] = b"\xffruns";

/// Most keys have at most 16 bytes: they take no memory of their own.
pub type Key = SmallVec<[u8; 16]>;

/// A half-open range of keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Range {
    pub low: Key,
    pub high: Key,
}

impl Range {
    /// All keys of a kind.
    pub fn all(kind: u8) -> Self {
        Self { low: smallvec![kind], high: smallvec![kind + 1] }
    }

    /// The keys of one run in `PAGES` or `FILTERS`.
    pub fn of_run(kind: u8, run: u32) -> Self {
        Self { low: run_key(kind, run), high: run_key(kind, run + 1) }
    }

    /// The keys of a kind with numbers below one.
    pub fn below(kind: u8, number: u64) -> Self {
        Self { low: smallvec![kind], high: number_key(kind, number) }
    }

    /// The grown buckets of the time slices before one.
    pub fn grown_before(slice: u32) -> Self {
        Self { low: smallvec![GROWN], high: run_key(GROWN, slice) }
    }
}

fn joined<const PARTS: usize>(parts: [&[u8]; PARTS]) -> Key {
    let mut key = Key::new();
    parts.iter().for_each(|part| key.extend_from_slice(part));
    key
}

/// A kind, then a number of 4 bytes: that of a run or of a time slice.
fn run_key(kind: u8, number: u32) -> Key {
    joined([&[kind], &number.to_be_bytes()])
}

/// The key of a number in `MEMTABLE`, `RECORDS` and the like.
pub fn number_key(kind: u8, number: u64) -> Key {
    joined([&[kind], &number.to_be_bytes()])
}

/// The number in a key that `number_key` made.
pub fn number_in(key: &[u8]) -> Result<u64, Damaged> {
    match key.split_first_chunk::<1>() {
        Some((_, number)) if number.len() == 8 => {
            Ok(number.iter().fold(0, |high, &byte| high << 8 | u64::from(byte)))
        }
        _ => Err(Damaged(format!("{} is not the key of a number", hex(key)))),
    }
}

/// The key of what a bucket has grown to in a time slice.
pub fn grown_key(slice: u32, column: u8, hash: u64) -> Key {
    joined([&[GROWN], &slice.to_be_bytes(), &[column], &hash.to_be_bytes()])
}

/// The place of a page, or of a part of a filter: a run, a column's slot, a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    pub run: u32,
    pub slot: u8,
    pub page: u32,
}

impl Place {
    /// Its key in `PAGES` or `FILTERS`.
    pub fn key(self, kind: u8) -> Key {
        joined([&[kind], &self.run.to_be_bytes(), &[self.slot], &self.page.to_be_bytes()])
    }

    /// The place in a key that `key` made.
    pub fn of(key: &[u8]) -> Result<Self, Damaged> {
        match *key {
            [_, a, b, c, d, slot, e, f, g, h] => Ok(Self {
                run: u32::from_be_bytes([a, b, c, d]),
                slot,
                page: u32::from_be_bytes([e, f, g, h]),
            }),
            _ => Err(Damaged(format!("{} is not the key of a page", hex(key)))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_what_they_were_made_of() {
        let place = Place { run: 1 << 20, slot: 7, page: 300 };
        assert_eq!(Place::of(&place.key(PAGES)), Ok(place));
        assert!(Place::of(&place.key(PAGES)[1..]).is_err());
        assert_eq!(number_in(&number_key(RECORDS, 1 << 40)), Ok(1 << 40));
        assert!(number_in(&number_key(RECORDS, 1)[..8]).is_err());
    }

    #[test]
    fn the_range_of_a_run_has_its_pages_only() {
        let key = |run| Place { run, slot: 255, page: u32::MAX }.key(FILTERS);
        let range = Range::of_run(FILTERS, 255);
        assert!(key(254) < range.low && range.low <= key(255));
        assert!(key(255) < range.high && range.high <= key(256));
    }
}
