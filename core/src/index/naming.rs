//! The numbers by which verdicts that are kept name documents; see `verdict`.
//!
//! An index may give back space by number. What is in front of `IndexReader::moved_below` goes before the
//! documents of the batch, so a match that is there gets one more record, without a sketch.

use rustc_hash::FxHashMap;

use super::candidates::{Candidates, NEVER};
use super::reader::{IndexReader, Poll, Polled};
use super::record::Record;

/// Finds the numbers under which the documents of verdicts stay as long as the verdicts.
pub struct Naming<'a> {
    pub candidates: &'a Candidates,
    /// The numbers of the batch's documents, by row.
    pub numbers: &'a [Option<u64>],
}

/// The numbers of documents by sequence number; none of what is forgotten.
type Names = FxHashMap<u64, Option<u64>>;

impl Naming<'_> {
    /// Return the names of documents that are known. Records may be added.
    pub fn names(
        &self,
        mut sequences: Vec<u64>,
        records: &mut Vec<Vec<u8>>,
        reader: &mut impl IndexReader,
    ) -> Polled<Names> {
        sequences.sort_unstable();
        sequences.dedup();
        let mut names = Names::default();
        if sequences.is_empty() {
            return Ok(Poll::Ready(names));
        }
        // Of a document that has moved, the last number.
        let mut places: FxHashMap<u64, u32> = FxHashMap::default();
        for (place, document) in (0..).zip(self.candidates.documents()) {
            let last = places.entry(document.sequence).or_insert(place);
            if self.candidates.document(*last).number < document.number {
                *last = place;
            }
        }
        let mut old = Vec::new();
        for sequence in sequences {
            let document = self.candidates.document(places[&sequence]);
            let name = match document.number.checked_sub(self.candidates.first) {
                _ if document.gone_from != NEVER => None,
                Some(row) => self.numbers[row as usize],
                None if document.number >= reader.moved_below() => Some(document.number),
                None => {
                    old.push((sequence, places[&sequence]));
                    continue;
                }
            };
            names.insert(sequence, name);
        }
        let mut read = true;
        for (sequence, place) in old {
            match self.moved(sequence, place, reader)? {
                Poll::Pending => read = false,
                Poll::Ready(Some(number)) => drop(names.insert(sequence, Some(number))),
                Poll::Ready(None) => {
                    names.insert(sequence, Some(self.candidates.first + records.len() as u64));
                    records.push(self.candidates.record(place, false).pack());
                }
            }
        }
        Ok(if read { Poll::Ready(names) } else { Poll::Pending })
    }

    /// Return the last number of a document that has been moved, if it was.
    fn moved(
        &self,
        sequence: u64,
        place: u32,
        reader: &mut impl IndexReader,
    ) -> Polled<Option<u64>> {
        let mut others = ready!(reader.identified(self.candidates.id(place))?);
        others.retain(|&number| number >= reader.moved_below());
        let (mut found, mut read) = (None, true);
        for number in others {
            match reader.record(number)? {
                Poll::Pending => read = false,
                Poll::Ready([]) => {}
                Poll::Ready(packed) => {
                    if Record::unpack(packed)?.sequence == sequence {
                        found = found.max(Some(number));
                    }
                }
            }
        }
        Ok(if read { Poll::Ready(found) } else { Poll::Pending })
    }
}
