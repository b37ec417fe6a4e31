//! The bytes of a document's record.
//!
//! A record is: the sequence number (8 bytes), the time in ms or a mark of the clock (8), the
//! number of shingles (4), the number of slots of its sketch (2), the number of bytes of `new` (1),
//! the sketch, `new`, then the id, to the record's end. Numbers are little-endian.

use super::bytes::Cursor;
use super::reader::Damaged;

/// What comes before the sketch.
const FIXED: usize = 8 + 8 + 4 + 2 + 1;

/// A document's record. A record of no bytes is that of a document that was forgotten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record<'a> {
    pub sequence: u64,
    /// As of when the document counts, in ms, or a mark.
    pub time: i64,
    pub shingles: u32,
    /// Empty if no bucket names the document.
    pub sketch: &'a [u8],
    /// Which of its buckets were new when it came, so that it is the only document in those that
    /// have not grown: a bit for each column of the index, the lowest ones first. Empty if that is
    /// not known.
    pub new: &'a [u8],
    pub id: &'a [u8],
}

impl<'a> Record<'a> {
    pub fn unpack(packed: &'a [u8]) -> Result<Self, Damaged> {
        let read = |packed| {
            let mut left = Cursor(packed);
            let (sequence, time, shingles) = (left.u64()?, left.i64()?, left.u32()?);
            let (slots, bits) = (usize::from(left.u16()?), usize::from(left.u8()?));
            let (sketch, new) = (left.take(slots)?, left.take(bits)?);
            Some(Self { sequence, time, shingles, sketch, new, id: left.0 })
        };
        read(packed).ok_or_else(|| Damaged(format!("{} bytes are not a record", packed.len())))
    }

    /// The bytes. A sketch has less than 65,536 slots, and `new` less than 256 bytes.
    pub fn pack(&self) -> Vec<u8> {
        let variable = self.sketch.len() + self.new.len() + self.id.len();
        let mut packed = Vec::with_capacity(FIXED + variable);
        self.pack_into(&mut packed);
        packed
    }

    /// Append the bytes; see `pack`.
    pub fn pack_into(&self, packed: &mut Vec<u8>) {
        let slots = u16::try_from(self.sketch.len()).expect("a sketch has less than 65,536 slots");
        let bits = u8::try_from(self.new.len()).expect("an index has at most 256 columns");
        packed.extend_from_slice(&self.sequence.to_le_bytes());
        packed.extend_from_slice(&self.time.to_le_bytes());
        packed.extend_from_slice(&self.shingles.to_le_bytes());
        packed.extend_from_slice(&slots.to_le_bytes());
        packed.push(bits);
        [self.sketch, self.new, self.id].iter().for_each(|part| packed.extend_from_slice(part));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_what_it_was_packed_from() {
        let record = Record {
            sequence: 7,
            time: -3,
            shingles: 40,
            sketch: &[1, 2, 3],
            new: &[255],
            id: b"one",
        };
        assert_eq!(Record::unpack(&record.pack()), Ok(record));
    }

    #[test]
    fn too_few_bytes_are_no_record() {
        let packed =
            Record { sequence: 7, time: 0, shingles: 1, sketch: &[1, 2], new: &[3], id: b"" }
                .pack();
        assert!((0..packed.len()).all(|end| Record::unpack(&packed[..end]).is_err()));
    }
}
