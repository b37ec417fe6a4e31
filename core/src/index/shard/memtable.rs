//! The memtable: the newest postings, in memory, until there are enough of them for a run.
//!
//! A hash table for each column, by open addressing: a key's first place is its highest bits, so
//! the postings of a column are nearly sorted. All tables have the same size, which doubles before one
//! is too full.
//!
//! The postings that a write adds are packed as their slots (1 byte each), their keys (8) and their
//! documents (4), little-endian.

use super::checksum;
use super::huge;
use super::layout::low_of;
use super::prefetch::prefetch;
use super::run::{MARK, Posting};
use crate::index::reader::Damaged;

const SMALLEST_BITS: u32 = 8;
/// Of five places, three may be taken.
const FULLEST: (usize, usize) = (3, 5);
const AHEAD: usize = 24;
const PACKED: usize = 1 + 8 + 4;

/// A posting that is added, in the column of a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Added {
    pub slot: u8,
    pub posting: Posting,
}

pub fn pack_added(added: &[Added]) -> Vec<u8> {
    let mut packed = Vec::with_capacity(PACKED * added.len() + checksum::BYTES);
    packed.extend(added.iter().map(|one| one.slot));
    added.iter().for_each(|one| packed.extend_from_slice(&one.posting.hash.to_le_bytes()));
    added.iter().for_each(|one| packed.extend_from_slice(&one.posting.document.to_le_bytes()));
    packed
}

/// The postings of a write, of columns with these slots.
pub fn unpack_added(packed: &[u8], columns: usize) -> Result<Vec<Added>, Damaged> {
    let count = packed.len() / PACKED;
    if count * PACKED != packed.len() {
        return Err(Damaged(format!("{} bytes are not whole postings", packed.len())));
    }
    let (slots, rest) = packed.split_at(count);
    let (hashes, documents) = rest.split_at(8 * count);
    if let Some(slot) = slots.iter().find(|&&slot| usize::from(slot) >= columns) {
        return Err(Damaged(format!("a posting of column {slot} of {columns}")));
    }
    let pairs = hashes.as_chunks::<8>().0.iter().zip(documents.as_chunks::<4>().0);
    let postings = pairs.map(|(hash, document)| Posting {
        hash: u64::from_le_bytes(*hash),
        document: u32::from_le_bytes(*document),
    });
    Ok(slots.iter().zip(postings).map(|(&slot, posting)| Added { slot, posting }).collect())
}

/// A place of a table: the two halves of a key, then the document's number in the run from 1, with
/// `MARK` in that of a mark. A free place has 0 there.
type Entry = [u32; 3];

pub struct Memtable {
    /// The number of its first document.
    pub first: u64,
    columns: usize,
    bits: u32,
    counts: Vec<usize>,
    entries: Vec<Entry>,
}

impl Memtable {
    pub fn new(columns: usize, first: u64) -> Self {
        Self::with_bits(columns, first, SMALLEST_BITS)
    }

    fn with_bits(columns: usize, first: u64, bits: u32) -> Self {
        let entries = huge::zeros(columns << bits);
        Self { first, columns, bits, counts: vec![0; columns], entries }
    }

    /// Empty it; its size stays. The memory is used again: to clear new pages would take longer.
    pub fn empty(&mut self, first: u64) {
        self.first = first;
        self.counts.fill(0);
        self.entries.fill([0; 3]);
    }

    /// How many postings it has.
    pub fn postings(&self) -> usize {
        self.counts.iter().sum()
    }

    pub fn size_bytes(&self) -> usize {
        size_of::<Entry>() * self.entries.len()
    }

    fn column(&self, slot: u8) -> &[Entry] {
        let start = usize::from(slot) << self.bits;
        &self.entries[start..start + (1 << self.bits)]
    }

    fn first_place(&self, hash: u64) -> usize {
        (hash >> (64 - self.bits)) as usize
    }

    /// The number of the document of a bucket's posting, or of a mark; none if it isn't here.
    pub fn find(&self, slot: u8, hash: u64, mark: bool) -> Option<u64> {
        let column = self.column(slot);
        let entry = column[self.place(column, hash, mark)];
        (entry[2] != 0).then(|| self.first + u64::from(entry[2] & !MARK) - 1)
    }

    /// Call `found` with the place of each key of a column whose posting, or mark, is here, and its
    /// document.
    pub fn find_each(
        &self,
        slot: u8,
        hashes: &[u64],
        mark: bool,
        mut found: impl FnMut(usize, u64),
    ) {
        let column = self.column(slot);
        for (at, &hash) in hashes.iter().enumerate() {
            if let Some(&next) = hashes.get(at + AHEAD) {
                prefetch(&column[self.first_place(next)]);
            }
            if column[self.first_place(hash)][2] != 0
                && let Some(number) = self.find(slot, hash, mark)
            {
                found(at, number);
            }
        }
    }

    /// Where a posting or a mark is, or would be. A table always has free places.
    fn place(&self, column: &[Entry], hash: u64, mark: bool) -> usize {
        let mut place = self.first_place(hash);
        loop {
            let [low, high, document] = column[place];
            let same = u64::from(high) << 32 | u64::from(low) == hash;
            if document == 0 || same && (document & MARK != 0) == mark {
                return place;
            }
            place = (place + 1) & (column.len() - 1);
        }
    }

    /// Add postings, or replace the documents of those that are here.
    pub fn put(&mut self, added: &[Added]) {
        for (at, one) in added.iter().enumerate() {
            if let Some(next) = added.get(at + AHEAD) {
                prefetch(&self.column(next.slot)[self.first_place(next.posting.hash)]);
            }
            let slot = usize::from(one.slot);
            if (self.counts[slot] + 1) * FULLEST.1 > FULLEST.0 << self.bits {
                self.grow();
            }
            let entry = entry_of(one.posting, self.first);
            self.counts[slot] += usize::from(self.insert(one.slot, entry));
        }
    }

    /// Whether it may have to grow for some postings.
    pub fn outgrown_by(&self, added: &[Added]) -> bool {
        let mut counts = self.counts.clone();
        for one in added {
            let Some(count) = counts.get_mut(usize::from(one.slot)) else { return true };
            *count += 1;
        }
        counts.iter().any(|count| count * FULLEST.1 > FULLEST.0 << self.bits)
    }

    /// Return whether it is a new one.
    fn insert(&mut self, slot: u8, entry: Entry) -> bool {
        let hash = u64::from(entry[1]) << 32 | u64::from(entry[0]);
        let place = self.place(self.column(slot), hash, entry[2] & MARK != 0);
        let place = &mut self.entries[(usize::from(slot) << self.bits) + place];
        let new = place[2] == 0;
        *place = entry;
        new
    }

    fn grow(&mut self) {
        let mut larger = Self::with_bits(self.columns, self.first, self.bits + 1);
        for slot in 0..self.columns {
            let start = slot << self.bits;
            for &entry in &self.entries[start..start + (1 << self.bits)] {
                if entry[2] != 0 {
                    larger.insert(slot as u8, entry);
                }
            }
        }
        larger.counts.clone_from(&self.counts);
        *self = larger;
    }

    /// The postings of a column, sorted, with more of them, which replace their equals.
    pub fn sorted(&self, slot: u8, more: &[Added]) -> Vec<Posting> {
        let mut postings = self.nearly_sorted(slot);
        let more = more.iter().filter(|one| one.slot == slot).map(|one| one.posting);
        let before = postings.len();
        postings.extend(more);
        if !sort_nearly_sorted(&mut postings[..before]) || postings.len() > before {
            // Stable, so that the last one of equals is the newest.
            postings.sort_by_key(order);
        }
        postings.dedup_by(|next, kept| {
            let same = order(next) == order(kept);
            if same {
                *kept = *next;
            }
            same
        });
        postings
    }

    /// The postings of a column, each at most about as many places from its own as it was in the table.
    fn nearly_sorted(&self, slot: u8) -> Vec<Posting> {
        let mut postings = Vec::with_capacity(self.counts[usize::from(slot)]);
        let mut wrapped = Vec::new();
        for (place, &[low, high, document]) in self.column(slot).iter().enumerate() {
            if document == 0 {
                continue;
            }
            let hash = u64::from(high) << 32 | u64::from(low);
            let number = low_of(self.first + u64::from(document & !MARK) - 1);
            let posting = Posting { hash, document: number | document & MARK };
            // One that found no place at the end of the table is at its beginning.
            let into = if self.first_place(hash) > place { &mut wrapped } else { &mut postings };
            into.push(posting);
        }
        postings.append(&mut wrapped);
        postings
    }
}

fn order(posting: &Posting) -> (u64, bool) {
    (posting.hash, posting.is_mark())
}

/// Sort postings by insertion. Return whether that is done: keys that someone has chosen may be far
/// from their places.
fn sort_nearly_sorted(postings: &mut [Posting]) -> bool {
    let mut left = 16 * postings.len();
    for end in 1..postings.len() {
        let mut at = end;
        while at > 0 && order(&postings[at - 1]) > order(&postings[at]) {
            if left == 0 {
                return false;
            }
            left -= 1;
            postings.swap(at - 1, at);
            at -= 1;
        }
    }
    true
}

fn entry_of(posting: Posting, first: u64) -> Entry {
    let within = posting.document.wrapping_sub(low_of(first)) & !MARK;
    let number = (within + 1) | posting.document & MARK;
    [posting.hash as u32, (posting.hash >> 32) as u32, number]
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn added(slot: u8, hash: u64, number: u64, mark: bool) -> Added {
        let document = low_of(number) | if mark { MARK } else { 0 };
        Added { slot, posting: Posting { hash, document } }
    }

    #[test]
    fn it_has_what_was_put_last() {
        let first = (1 << 40) + (1 << 31) - 100;
        let mut run = Memtable::new(3, first);
        let mut expected = BTreeMap::new();
        let steps: u64 = if cfg!(miri) { 300 } else { 5000 };
        for step in 0..steps {
            // Many share their highest bits, and some are put again.
            let hash = (step % 3000).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (8 * (step % 3));
            let (slot, mark) = ((step % 3) as u8, step % 5 == 0);
            run.put(&[added(slot, hash, first + step, mark)]);
            expected.insert((slot, hash, mark), first + step);
        }
        for (&(slot, hash, mark), &number) in &expected {
            assert_eq!(run.find(slot, hash, mark), Some(number));
            assert_eq!(run.find(slot, hash ^ 1 << 20, mark), None);
        }
        assert_eq!(run.postings(), expected.len());
        let mut sorted = Vec::new();
        for slot in 0..3 {
            sorted.extend(run.sorted(slot, &[]).into_iter().map(|posting| (slot, posting)));
        }
        let all = expected
            .iter()
            .map(|(&(slot, hash, mark), &n)| (slot, added(slot, hash, n, mark).posting));
        assert_eq!(sorted, all.collect::<Vec<_>>());
    }

    #[test]
    fn more_cells_replace_their_equals() {
        let mut run = Memtable::new(1, 0);
        run.put(&[added(0, 5, 0, false), added(0, 5, 1, true)]);
        let sorted = run.sorted(0, &[added(0, 5, 2, false), added(0, 3, 2, false)]);
        let documents: Vec<u32> = sorted.iter().map(|posting| posting.document).collect();
        assert_eq!(documents, [2, 2, 1 | MARK]);
    }

    #[test]
    fn the_cells_of_a_write_are_what_they_were() {
        let some = [added(2, 1 << 60, 7, false), added(0, 3, 8, true)];
        let packed = pack_added(&some);
        assert_eq!(unpack_added(&packed, 3).unwrap(), some);
        assert!(unpack_added(&packed, 2).is_err());
        assert!(unpack_added(&packed[1..], 3).is_err());
    }
}
