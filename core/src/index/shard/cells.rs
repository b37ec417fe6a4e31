//! Cells, the pages of runs that hold them, and how large filters are.
//!
//! A run holds the cells of successive documents, sorted by column and key. A page has the cells of
//! one column whose keys have the same highest bits, about 256: first all keys (8 bytes each), then
//! the lowest 31 bits of each one's document (4 bytes). Numbers are little-endian. Cells are of two
//! kinds: those of buckets, and marks, whose key is that of a bucket that has grown, changed by
//! `marked`.
//!
//! Runs have tiers. A run of a tier has eight times the documents of one of the tier below, and
//! eight times the pages.

use std::ops::Range;

use super::keyspace::{CELLS, Key, Place};
use super::seal::{self, seal, unseal};
use crate::index::sight::Damaged;

/// The bit of a cell's document that makes it a mark: its bucket has grown.
pub const MARK: u32 = 1 << 31;
/// Runs of one tier that are merged into one of the next.
pub const FAN_IN: usize = 8;
const FAN_IN_BITS: u32 = FAN_IN.ilog2();
const CELLS_A_PAGE: u64 = 256;
const CELL_BYTES: usize = 12;
/// Bits of filters for each cell, by tier; those of the last for all tiers above. Young runs are
/// asked by every look-up and are small; the oldest are the bulk. With 12 bits, 1 of 205 absent
/// cells passes.
const FILTER_BITS: [u64; 3] = [24, 18, 12];

/// The key of a bucket in a column, and the lowest 31 bits of its document, or `MARK` with them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cell {
    pub hash: u64,
    pub document: u32,
}

impl Cell {
    pub fn is_mark(self) -> bool {
        self.document & MARK != 0
    }
}

/// The key of the mark of a bucket with this key.
pub fn marked(hash: u64) -> u64 {
    hash ^ 0x9E37_79B9_7F4A_7C15
}

/// The shape of the runs of one tier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// How many highest bits of a key choose its page.
    page_bits: u32,
    /// How many words of the filter each page has.
    pub page_words: usize,
}

impl Shape {
    /// The shape in a store whose runs of tier 0 have so many documents, at least one.
    pub fn of(run_documents: u32, tier: u8) -> Self {
        let documents = u64::from(run_documents.max(1));
        let bits = documents.div_ceil(CELLS_A_PAGE).next_power_of_two().ilog2();
        let cells = documents.div_ceil(1 << bits);
        let each = FILTER_BITS[usize::from(tier).min(FILTER_BITS.len() - 1)];
        let page_words = (cells * each).div_ceil(64) as usize;
        Self { page_bits: bits + FAN_IN_BITS * u32::from(tier), page_words }
    }

    /// Whether the pages of all columns can be counted.
    pub fn fits(self) -> bool {
        self.page_bits <= 24
    }

    /// How many pages a column has.
    pub fn pages(self) -> u32 {
        1 << self.page_bits
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

/// The pages that have cells, sealed, of some that are successive in a column.
///
/// `cells` are sorted, and all of these pages.
pub fn pack_pages(
    run: u32,
    slot: u8,
    shape: Shape,
    pages: Range<u32>,
    cells: &[Cell],
) -> Vec<(Key, Vec<u8>)> {
    let mut left = cells;
    let mut packed = Vec::new();
    for page in pages {
        let count = left.iter().take_while(|cell| shape.page(cell.hash) == page).count();
        let (own, rest) = left.split_at(count);
        left = rest;
        if !own.is_empty() {
            let key = Place { run, slot, page }.key(CELLS);
            let mut value = Vec::with_capacity(CELL_BYTES * count + seal::BYTES);
            own.iter().for_each(|cell| value.extend_from_slice(&cell.hash.to_le_bytes()));
            own.iter().for_each(|cell| value.extend_from_slice(&cell.document.to_le_bytes()));
            let value = seal(&key, value);
            packed.push((key, value));
        }
    }
    packed
}

/// A page of cells, as it is stored.
#[derive(Debug, Clone, Copy)]
pub struct Page<'a> {
    hashes: &'a [[u8; 8]],
    documents: &'a [[u8; 4]],
}

impl<'a> Page<'a> {
    /// Check the page at a place: all cells must be its own, and in order.
    pub fn unpack(place: Place, shape: Shape, sealed: &'a [u8]) -> Result<Self, Damaged> {
        let packed = unseal(&place.key(CELLS), sealed)?;
        let wrong = |what| Damaged(format!("page {} of run {}: {what}", place.page, place.run));
        let count = packed.len() / CELL_BYTES;
        if count * CELL_BYTES != packed.len() {
            return Err(wrong("its bytes are not whole cells"));
        }
        let (hashes, documents) = packed.split_at(8 * count);
        let page = Self { hashes: hashes.as_chunks().0, documents: documents.as_chunks().0 };
        let mut before: Option<Cell> = None;
        for cell in page.cells() {
            let follows = before.is_none_or(|before| {
                let differ = before.is_mark() != cell.is_mark();
                before.hash < cell.hash || before.hash == cell.hash && differ
            });
            if !follows {
                return Err(wrong("its cells are not in order"));
            }
            before = Some(cell);
        }
        let ends = [page.hashes.first(), page.hashes.last()];
        if ends
            .into_iter()
            .flatten()
            .any(|hash| shape.page(u64::from_le_bytes(*hash)) != place.page)
        {
            return Err(wrong("it has cells of another page"));
        }
        Ok(page)
    }

    pub fn cells(&self) -> impl ExactSizeIterator<Item = Cell> + use<'a> {
        let pairs = self.hashes.iter().zip(self.documents);
        pairs.map(|(hash, document)| Cell {
            hash: u64::from_le_bytes(*hash),
            document: u32::from_le_bytes(*document),
        })
    }

    /// The document of a bucket's key; see `Cell`. None if it isn't here.
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

    fn cells(shape: Shape, pages: Range<u32>) -> Vec<Cell> {
        let hashes = (0..4000u64).map(|at| at.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let mut cells: Vec<Cell> = hashes
            .filter(|&hash| pages.contains(&shape.page(hash)))
            .map(|hash| Cell { hash, document: hash as u32 })
            .collect();
        cells.sort_unstable();
        cells
    }

    #[test]
    fn pages_have_all_cells() {
        let shape = Shape::of(4000, 0);
        let own = cells(shape, 2..9);
        let packed = pack_pages(5, 3, shape, 2..9, &own);
        let mut found = Vec::new();
        for (key, value) in &packed {
            let page = Page::unpack(Place::of(key).unwrap(), shape, value).unwrap();
            found.extend(page.cells());
            for cell in page.cells() {
                let expected = Some(cell.document).filter(|_| !cell.is_mark());
                assert_eq!(page.find(cell.hash), expected);
            }
            assert_eq!(page.find(own[0].hash ^ 1), None);
        }
        assert_eq!(found, own);
    }

    #[test]
    fn flipped_bits_and_foreign_pages_are_refused() {
        let shape = Shape::of(4000, 0);
        let (key, value) = pack_pages(5, 3, shape, 0..1, &cells(shape, 0..1)).remove(0);
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
        let sealed = |cells: &[Cell]| {
            let mut value: Vec<u8> = cells.iter().flat_map(|c| c.hash.to_le_bytes()).collect();
            value.extend(cells.iter().flat_map(|c| c.document.to_le_bytes()));
            seal(&place.key(CELLS), value)
        };
        let mut own = cells(shape, 1..2);
        own.truncate(2);
        assert!(Page::unpack(place, shape, &sealed(&own)).is_ok());
        own.reverse();
        assert!(Page::unpack(place, shape, &sealed(&own)).is_err());
        assert!(Page::unpack(place, shape, &sealed(&[own[0], own[0]])).is_err());
        assert!(Page::unpack(place, shape, &sealed(&cells(shape, 0..1))).is_err());
        assert!(Page::unpack(place, shape, &seal(&place.key(CELLS), vec![0; 13])).is_err());
    }

    #[test]
    fn pages_of_a_tier_divide_those_below() {
        let (low, high) = (Shape::of(1 << 16, 1), Shape::of(1 << 16, 2));
        for cell in cells(Shape::of(1, 0), 0..1) {
            assert_eq!(high.page(cell.hash) / FAN_IN as u32, low.page(cell.hash));
        }
    }
}
