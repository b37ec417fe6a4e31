//! The documents that are judged together.

use std::ops::Range;

use super::clock::{NO_TIME, is_time};

/// Ids, one after the other.
#[derive(Debug, Clone, Default)]
pub struct Ids {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Ids {
    pub fn push(&mut self, id: &[u8]) {
        self.bytes.extend_from_slice(id);
        self.ends.push(self.bytes.len());
    }

    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Where an id is in `bytes`.
    pub fn range(&self, place: usize) -> Range<usize> {
        let start = if place == 0 { 0 } else { self.ends[place - 1] };
        start..self.ends[place]
    }

    pub fn get(&self, place: usize) -> &[u8] {
        &self.bytes[self.range(place)]
    }

    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.len()).map(|place| self.get(place))
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl<T: AsRef<[u8]>> FromIterator<T> for Ids {
    fn from_iter<I: IntoIterator<Item = T>>(ids: I) -> Self {
        let mut made = Self::default();
        ids.into_iter().for_each(|id| made.push(id.as_ref()));
        made
    }
}

/// An id that is forgotten: whatever documents have it, in earlier batches or before `row`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forgotten {
    /// The row of the batch's first document after it; n if there is none.
    pub row: usize,
    pub id: Vec<u8>,
}

/// n documents in sequence order, with their keys in the c columns of one index.
#[derive(Debug, Clone, Default)]
pub struct Batch {
    pub sequences: Vec<u64>,
    /// The documents' own times, in ms, or `clock::NO_TIME`.
    pub times: Vec<i64>,
    pub ids: Ids,
    /// The number of shingles of each: of different ones, if the rules have a containment.
    pub shingles: Vec<u32>,
    /// n keys for each column, one column after the other.
    pub keys: Vec<u64>,
    /// The sketches, one after the other.
    pub sketches: Vec<u8>,
    /// In their order; rows ascend.
    pub forgotten: Vec<Forgotten>,
}

impl Batch {
    pub fn len(&self) -> usize {
        self.sequences.len()
    }

    pub fn is_empty(&self) -> bool {
        self.sequences.is_empty()
    }

    /// The key of a document in a column.
    pub fn key(&self, column: usize, row: usize) -> u64 {
        self.keys[column * self.len() + row]
    }

    pub fn sketch(&self, row: usize, slots: usize) -> &[u8] {
        &self.sketches[row * slots..(row + 1) * slots]
    }

    /// About the size of its parts, in bytes.
    pub fn bytes(&self) -> usize {
        8 * self.keys.len() + self.sketches.len() + self.ids.bytes().len() + 20 * self.len()
    }

    /// Return what is wrong with the shape of the batch, if anything is.
    pub fn check(&self, columns: usize, slots: usize) -> Result<(), String> {
        let rows = self.len();
        let lengths = [
            ("times", self.times.len(), rows),
            ("ids", self.ids.len(), rows),
            ("shingles", self.shingles.len(), rows),
            ("keys", self.keys.len(), rows * columns),
            ("sketches", self.sketches.len(), rows * slots),
        ];
        if let Some((name, got, takes)) = lengths.into_iter().find(|(_, got, takes)| got != takes) {
            return Err(format!("{name}: got {got}, takes {takes} for {rows} documents"));
        }
        if u32::try_from(rows).is_err() {
            return Err(format!("got {rows} documents, takes less than 2^32"));
        }
        if let Some(time) = self.times.iter().find(|&&time| !is_time(time)) {
            return Err(format!("times: got {time}, takes times in ms, or {NO_TIME}"));
        }
        let forgotten = &self.forgotten;
        if forgotten.iter().any(|one| one.row > rows) || !forgotten.is_sorted_by_key(|one| one.row)
        {
            return Err(format!("forgotten: takes ascending rows from 0 to {rows}"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_that_would_be_read_as_marks_are_refused() {
        let with = |time| Batch {
            sequences: vec![0],
            times: vec![time],
            ids: Ids::from_iter([b"a"]),
            shingles: vec![1],
            ..Batch::default()
        };
        for time in [NO_TIME, -(1 << 62), -1, 0, i64::MAX] {
            assert_eq!(with(time).check(0, 0), Ok(()));
        }
        for time in [NO_TIME + 1, -(1 << 62) - 1] {
            assert!(with(time).check(0, 0).is_err_and(|text| text.starts_with("times: got")));
        }
    }
}
