//! The numbers by which verdicts that are kept name documents; see `verdict`.
//!
//! An index may give back space by number. What is in front of `Sight::moved_below` goes before the
//! documents of the batch, so a match that is there gets one more record, without a sketch.

use rustc_hash::FxHashMap;

use super::known::{Known, NEVER};
use super::record::Record;
use super::sight::{Damaged, Seen, Sight};

/// Finds the numbers under which the documents of verdicts stay as long as the verdicts.
pub struct Naming<'a> {
    pub known: &'a Known,
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
        sight: &mut impl Sight,
    ) -> Result<Seen<Names>, Damaged> {
        sequences.sort_unstable();
        sequences.dedup();
        let mut names = Names::default();
        if sequences.is_empty() {
            return Ok(Seen::Here(names));
        }
        // Of a document that has moved, the last number.
        let mut places: FxHashMap<u64, u32> = FxHashMap::default();
        for (place, document) in (0..).zip(self.known.documents()) {
            let last = places.entry(document.sequence).or_insert(place);
            if self.known.document(*last).number < document.number {
                *last = place;
            }
        }
        let mut old = Vec::new();
        for sequence in sequences {
            let document = self.known.document(places[&sequence]);
            let name = match document.number.checked_sub(self.known.first) {
                _ if document.gone_from != NEVER => None,
                Some(row) => self.numbers[row as usize],
                None if document.number >= sight.moved_below() => Some(document.number),
                None => {
                    old.push((sequence, places[&sequence]));
                    continue;
                }
            };
            names.insert(sequence, name);
        }
        let mut read = true;
        for (sequence, place) in old {
            match self.moved(sequence, place, sight)? {
                Seen::Unread => read = false,
                Seen::Here(Some(number)) => drop(names.insert(sequence, Some(number))),
                Seen::Here(None) => {
                    names.insert(sequence, Some(self.known.first + records.len() as u64));
                    records.push(self.known.record(place, false).pack());
                }
            }
        }
        Ok(if read { Seen::Here(names) } else { Seen::Unread })
    }

    /// Return the last number of a document that has been moved, if it was.
    fn moved(
        &self,
        sequence: u64,
        place: u32,
        sight: &mut impl Sight,
    ) -> Result<Seen<Option<u64>>, Damaged> {
        let mut others = seen!(sight.identified(self.known.id(place))?);
        others.retain(|&number| number >= sight.moved_below());
        let (mut found, mut read) = (None, true);
        for number in others {
            match sight.record(number)? {
                Seen::Unread => read = false,
                Seen::Here([]) => {}
                Seen::Here(packed) => {
                    if Record::unpack(packed)?.sequence == sequence {
                        found = found.max(Some(number));
                    }
                }
            }
        }
        Ok(if read { Seen::Here(found) } else { Seen::Unread })
    }
}
