//! The cells of a batch that have to be judged.
//!
//! A cell is *contested* if its bucket exists, or several documents of the batch share it. All
//! others are new buckets of one document, whatever is decided. On a feed of mostly new documents,
//! these are nearly all cells.

use super::batch::Batch;
use super::buckets::Buckets;
use super::sight::{Cell, Sight};

/// A contested cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Contested {
    pub row: u32,
    /// The column's place.
    pub column: u16,
    /// The id of its bucket.
    pub bucket: u32,
}

/// The contested cells of a batch, in sequence order, those of a document by column.
#[derive(Debug, Default)]
pub struct Cells {
    pub contested: Vec<Contested>,
    /// Where the cells of each row begin, and after the last one.
    starts: Vec<usize>,
    words: usize,
    bits: Vec<u64>,
}

const NOBODY: u32 = u32::MAX;
/// Mixes keys, so that their low bits matter, too: 2^64 divided by the golden ratio.
const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;

impl Cells {
    /// Find the contested cells of some rows, and add their buckets.
    pub fn of(
        batch: &Batch,
        columns: usize,
        rows: &[u32],
        buckets: &mut Buckets,
        sight: &mut impl Sight,
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
                    let cell = Cell { column: usize::from(column), row: row as usize };
                    bucket_of[row as usize] = NOBODY;
                    if sight.may_exist(cell) {
                        let bucket = buckets.add(column, key, row);
                        bucket_of[row as usize] = bucket;
                        found.push(Contested { row, column, bucket });
                    }
                    continue;
                }
                let mut bucket = bucket_of[first as usize];
                if bucket == NOBODY {
                    bucket = buckets.add(column, key, first);
                    bucket_of[first as usize] = bucket;
                    found.push(Contested { row: first, column, bucket });
                }
                buckets.get_mut(bucket).shared = true;
                found.push(Contested { row, column, bucket });
            }
        }
        Self::ordered(&found, batch.len(), columns)
    }

    /// Put cells, which are in the order of their columns, in that of their rows.
    fn ordered(found: &[Contested], rows: usize, columns: usize) -> Self {
        let words = columns.div_ceil(64);
        let mut made = Self {
            contested: vec![Contested { row: 0, column: 0, bucket: 0 }; found.len()],
            starts: vec![0; rows + 1],
            words,
            bits: vec![0; rows * words],
        };
        for cell in found {
            made.starts[cell.row as usize + 1] += 1;
            let (row, column) = (cell.row as usize, usize::from(cell.column));
            made.bits[row * words + column / 64] |= 1 << (column % 64);
        }
        for row in 0..rows {
            made.starts[row + 1] += made.starts[row];
        }
        let mut next = made.starts.clone();
        for &cell in found {
            let place = &mut next[cell.row as usize];
            made.contested[*place] = cell;
            *place += 1;
        }
        made
    }

    /// The contested cells of a row.
    pub fn of_row(&self, row: usize) -> &[Contested] {
        &self.contested[self.starts[row]..self.starts[row + 1]]
    }

    pub fn is_contested(&self, column: usize, row: usize) -> bool {
        self.bits[row * self.words + column / 64] >> (column % 64) & 1 == 1
    }
}
