//! The postings of a batch that have to be judged.
//!
//! A posting is a *collision* if its bucket exists, or several documents of the batch share it. All
//! others are new buckets of one document, whatever is decided. On a feed of mostly new documents,
//! these are nearly all postings.

use super::batch::Batch;
use super::buckets::Buckets;
use super::reader::{IndexReader, Posting};

/// A posting that has to be judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Collision {
    pub row: u32,
    /// The column's place.
    pub column: u16,
    /// The id of its bucket.
    pub bucket: u32,
}

/// The collisions of a batch, in sequence order, those of a document by column.
#[derive(Debug, Default)]
pub struct Collisions {
    pub all: Vec<Collision>,
    /// Where the postings of each row begin, and after the last one.
    starts: Vec<usize>,
    words: usize,
    bits: Vec<u64>,
}

const NOBODY: u32 = u32::MAX;
/// Mixes keys, so that their low bits matter, too: 2^64 divided by the golden ratio.
const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;

impl Collisions {
    /// Find the collisions of some rows, and add their buckets.
    pub fn of(
        batch: &Batch,
        columns: usize,
        rows: &[u32],
        buckets: &mut Buckets,
        reader: &mut impl IndexReader,
    ) -> Self {
        let size = (2 * rows.len()).next_power_of_two().max(2);
        let shift = 64 - size.trailing_zeros();
        let mut firsts = vec![NOBODY; size];
        let mut bucket_of = vec![NOBODY; batch.len()];
        let mut found = Vec::new();
        for column in 0..columns {
            let keys = &batch.keys[column * batch.len()..(column + 1) * batch.len()];
            firsts.fill(NOBODY);
            let column = column as u16;
            for &row in rows {
                let key = keys[row as usize];
                let mut slot = (key.wrapping_mul(FACTOR) >> shift) as usize;
                while firsts[slot] != NOBODY && keys[firsts[slot] as usize] != key {
                    slot = (slot + 1) & (size - 1);
                }
                let first = firsts[slot];
                if first == NOBODY {
                    firsts[slot] = row;
                    let posting = Posting { column: usize::from(column), row: row as usize };
                    bucket_of[row as usize] = NOBODY;
                    if reader.may_exist(posting) {
                        let bucket = buckets.add(column, key, row);
                        bucket_of[row as usize] = bucket;
                        found.push(Collision { row, column, bucket });
                    }
                    continue;
                }
                let mut bucket = bucket_of[first as usize];
                if bucket == NOBODY {
                    bucket = buckets.add(column, key, first);
                    bucket_of[first as usize] = bucket;
                    found.push(Collision { row: first, column, bucket });
                }
                buckets.get_mut(bucket).shared = true;
                found.push(Collision { row, column, bucket });
            }
        }
        Self::ordered(&found, batch.len(), columns)
    }

    /// Put postings, which are in the order of their columns, in that of their rows.
    fn ordered(found: &[Collision], rows: usize, columns: usize) -> Self {
        let words = columns.div_ceil(64);
        let mut made = Self {
            all: vec![Collision { row: 0, column: 0, bucket: 0 }; found.len()],
            starts: vec![0; rows + 1],
            words,
            bits: vec![0; rows * words],
        };
        for posting in found {
            made.starts[posting.row as usize + 1] += 1;
            let (row, column) = (posting.row as usize, usize::from(posting.column));
            made.bits[row * words + column / 64] |= 1 << (column % 64);
        }
        for row in 0..rows {
            made.starts[row + 1] += made.starts[row];
        }
        let mut next = made.starts.clone();
        for &posting in found {
            let place = &mut next[posting.row as usize];
            made.all[*place] = posting;
            *place += 1;
        }
        made
    }

    /// The collisions of a row.
    pub fn of_row(&self, row: usize) -> &[Collision] {
        &self.all[self.starts[row]..self.starts[row + 1]]
    }

    pub fn collides(&self, column: usize, row: usize) -> bool {
        self.bits[row * self.words + column / 64] >> (column % 64) & 1 == 1
    }
}
