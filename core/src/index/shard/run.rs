//! Postings, the pages of runs that hold them, and how large filters are.
//!
//! A run holds the postings of successive documents, sorted by column and key. A page has the postings of
//! one column whose keys have the same highest bits, about 256: first all keys (8 bytes each), then
//! the lowest 31 bits of each one's document (4 bytes). Numbers are little-endian. Postings are of two
//! kinds: those of buckets, and marks, whose key is that of a bucket that has grown, changed by
//! `marked`.
//!
//! Runs have levels. A run of a level has eight times the documents of one of the level below, and
//! eight times the pages.

use std::ops::Range;

use super::checksum::{self, add_checksum, verify_checksum};
use super::keys::{Key, PAGES, Place};
use crate::index::reader::Damaged;

/// The bit of a posting's document that makes it a mark: its bucket has grown.
pub const MARK: u32 = 1 << 31;
/// Runs of one level that are merged into one of the next.
pub const FAN_IN: usize = 8;
const FAN_IN_BITS: u32 = FAN_IN.ilog2();
const PAGES_A_STEP: u32 = 16;
const POSTINGS_A_PAGE: u64 = 256;
const POSTING_BYTES: usize = 12;
/// Bits of filters for each posting, by level; those of the last for all levels above. Young runs are
/// asked by every look-up and are small; the oldest are the bulk. With 12 bits, 1 of 205 absent
/// postings passes.
const FILTER_BITS: [u64; 3] = [24, 18, 12];

/// The key of a bucket in a column, and the lowest 31 bits of its document, or `MARK` with them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Posting {
    pub hash: u64,
    pub document: u32,
}

impl Posting {
    pub fn is_mark(self) -> bool {
        self.document & MARK != 0
    }
}

/// The key of the mark of a bucket with this key.
pub fn marked(hash: u64) -> u64 {
    hash ^ 0x9E37_79B9_7F4A_7C15
}

/// The shape of the runs of one level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// How many highest bits of a key choose its page.
    page_bits: u32,
    /// How many words of the filter each page has.
    pub page_words: usize,
}

impl Shape {
    /// The shape in a store whose runs of level 0 have so many documents, at least one.
    pub fn of(run_documents: u32, level: u8) -> Self {
        let documents = u64::from(run_documents.max(1));
        let bits = documents.div_ceil(POSTINGS_A_PAGE).next_power_of_two().ilog2();
        let postings = documents.div_ceil(1 << bits);
        let each = FILTER_BITS[usize::from(level).min(FILTER_BITS.len() - 1)];
        let page_words = (postings * each).div_ceil(64) as usize;
        Self { page_bits: bits + FAN_IN_BITS * u32::from(level), page_words }
    }

    /// Whether the pages of all columns can be counted.
    pub fn fits(self) -> bool {
        self.page_bits <= 24
    }

    /// How many pages a column has.
    pub fn pages(self) -> u32 {
        1 << self.page_bits
    }

    /// How many pages of a column a step of a merge reads.
    pub fn pages_a_step(self) -> u32 {
        PAGES_A_STEP.min(self.pages())
    }

    /// How many pages of the new run a step of a merge makes.
    pub fn pages_into(self) -> u32 {
        self.pages_a_step() * FAN_IN as u32
    }

    /// How many steps a merge of runs of this shape takes.
    pub fn merge_steps(self, columns: usize) -> u32 {
        columns as u32 * (self.pages() / self.pages_a_step())
    }

    /// The slot and the page of the new run at which a step of a merge begins.
    pub fn parts_until(self, step: u32) -> (u8, u32) {
        let groups = self.pages() / self.pages_a_step();
        ((step / groups) as u8, step % groups * self.pages_into())
    }

    /// How many words of the filter a column has.
    pub fn words(self) -> usize {
        self.page_words << self.page_bits
    }

    /// The bits of a key below those that choose its page, as the highest ones.
    pub fn within_page(self, hash: u64) -> u64 {
        hash << self.page_bits
    }

    pub fn page(self, hash: u64) -> u32 {
        // A shift by all 64 bits would overflow.
        (((hash >> 32) << self.page_bits) >> 32) as u32
    }
}

/// The pages that have postings, with its checksum, of some that are successive in a column.
///
/// `postings` are sorted, and all of these pages.
pub fn pack_pages(
    run: u32,
    slot: u8,
    shape: Shape,
    pages: Range<u32>,
    postings: &[Posting],
) -> Vec<(Key, Vec<u8>)> {
    let mut left = postings;
    let mut packed = Vec::new();
    for page in pages {
        let count = left.iter().take_while(|posting| shape.page(posting.hash) == page).count();
        let (own, rest) = left.split_at(count);
        left = rest;
        if !own.is_empty() {
            let key = Place { run, slot, page }.key(PAGES);
            let mut value = Vec::with_capacity(POSTING_BYTES * count + checksum::BYTES);
            own.iter().for_each(|posting| value.extend_from_slice(&posting.hash.to_le_bytes()));
            own.iter().for_each(|posting| value.extend_from_slice(&posting.document.to_le_bytes()));
            let value = add_checksum(&key, value);
            packed.push((key, value));
        }
    }
    packed
}

/// A page of postings, as it is stored.
#[derive(Debug, Clone, Copy)]
pub struct Page<'a> {
    hashes: &'a [[u8; 8]],
    documents: &'a [[u8; 4]],
}

impl<'a> Page<'a> {
    /// Check the page at a place: all postings must be its own, and in order.
    pub fn unpack(place: Place, shape: Shape, stored: &'a [u8]) -> Result<Self, Damaged> {
        let packed = verify_checksum(&place.key(PAGES), stored)?;
        let wrong = |what| Damaged(format!("page {} of run {}: {what}", place.page, place.run));
        let count = packed.len() / POSTING_BYTES;
        if count * POSTING_BYTES != packed.len() {
            return Err(wrong("its bytes are not whole postings"));
        }
        let (hashes, documents) = packed.split_at(8 * count);
        let page = Self { hashes: hashes.as_chunks().0, documents: documents.as_chunks().0 };
        let mut before: Option<Posting> = None;
        for posting in page.postings() {
            let follows = before.is_none_or(|before| {
                let differ = before.is_mark() != posting.is_mark();
                before.hash < posting.hash || before.hash == posting.hash && differ
            });
            if !follows {
                return Err(wrong("its postings are not in order"));
            }
            before = Some(posting);
        }
        let ends = [page.hashes.first(), page.hashes.last()];
        if ends
            .into_iter()
            .flatten()
            .any(|hash| shape.page(u64::from_le_bytes(*hash)) != place.page)
        {
            return Err(wrong("it has postings of another page"));
        }
        Ok(page)
    }

    pub fn postings(&self) -> impl ExactSizeIterator<Item = Posting> + use<'a> {
        let pairs = self.hashes.iter().zip(self.documents);
        pairs.map(|(hash, document)| Posting {
            hash: u64::from_le_bytes(*hash),
            document: u32::from_le_bytes(*document),
        })
    }

    /// The document of a bucket's key; see `Posting`. None if it isn't here.
    pub fn find(&self, hash: u64) -> Option<u32> {
        let first = self.hashes.partition_point(|other| u64::from_le_bytes(*other) < hash);
        let same = self.hashes[first..].iter().zip(&self.documents[first..]);
        let same = same.take_while(|(other, _)| u64::from_le_bytes(**other) == hash);
        same.map_while(|(_, document)| Some(u32::from_le_bytes(*document)))
            .find(|document| document & MARK == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn postings(shape: Shape, pages: Range<u32>) -> Vec<Posting> {
        let hashes = (0..4000u64).map(|at| at.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let mut postings: Vec<Posting> = hashes
            .filter(|&hash| pages.contains(&shape.page(hash)))
            .map(|hash| Posting { hash, document: hash as u32 })
            .collect();
        postings.sort_unstable();
        postings
    }

    #[test]
    fn pages_have_all_cells() {
        let shape = Shape::of(4000, 0);
        let own = postings(shape, 2..9);
        let packed = pack_pages(5, 3, shape, 2..9, &own);
        let mut found = Vec::new();
        for (key, value) in &packed {
            let page = Page::unpack(Place::of(key).unwrap(), shape, value).unwrap();
            found.extend(page.postings());
            for posting in page.postings() {
                let expected = Some(posting.document).filter(|_| !posting.is_mark());
                assert_eq!(page.find(posting.hash), expected);
            }
            assert_eq!(page.find(own[0].hash ^ 1), None);
        }
        assert_eq!(found, own);
    }

    #[test]
    fn flipped_bits_and_foreign_pages_are_refused() {
        let shape = Shape::of(4000, 0);
        let (key, value) = pack_pages(5, 3, shape, 0..1, &postings(shape, 0..1)).remove(0);
        let place = Place::of(&key).unwrap();
        assert!(Page::unpack(place, shape, &value).is_ok());
        assert!(Page::unpack(Place { slot: 4, ..place }, shape, &value).is_err());
        for bit in 0..8 * value.len() {
            let mut other = value.clone();
            other[bit / 8] ^= 1 << (bit % 8);
            assert!(Page::unpack(place, shape, &other).is_err());
        }
    }

    #[test]
    fn cells_out_of_order_or_of_another_page_are_refused() {
        let shape = Shape::of(4000, 0);
        let place = Place { run: 1, slot: 0, page: 1 };
        let stored = |postings: &[Posting]| {
            let mut value: Vec<u8> = postings.iter().flat_map(|c| c.hash.to_le_bytes()).collect();
            value.extend(postings.iter().flat_map(|c| c.document.to_le_bytes()));
            add_checksum(&place.key(PAGES), value)
        };
        let mut own = postings(shape, 1..2);
        own.truncate(2);
        assert!(Page::unpack(place, shape, &stored(&own)).is_ok());
        own.reverse();
        assert!(Page::unpack(place, shape, &stored(&own)).is_err());
        assert!(Page::unpack(place, shape, &stored(&[own[0], own[0]])).is_err());
        assert!(Page::unpack(place, shape, &stored(&postings(shape, 0..1))).is_err());
        assert!(Page::unpack(place, shape, &add_checksum(&place.key(PAGES), vec![0; 13])).is_err());
    }

    #[test]
    fn pages_of_a_tier_divide_those_below() {
        let (low, high) = (Shape::of(1 << 16, 1), Shape::of(1 << 16, 2));
        for posting in postings(Shape::of(1, 0), 0..1) {
            assert_eq!(high.page(posting.hash) / FAN_IN as u32, low.page(posting.hash));
        }
    }
}
