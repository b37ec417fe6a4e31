//! What a document is whose id came before, and what is forgotten: `Rules::same_id`, tombstones.
//!
//! - `Duplicate`: a document like any other. It may match the earlier one.
//! - `Replace`: the earlier one is forgotten just before, as by a tombstone. So they never match.
//! - `Ignore`: it was sent again. Its matches are those of the first one, and it changes nothing.
//!
//! To be ignored, a document needs a first one that isn't older than the window by now, and was not
//! forgotten. Ids, times and what is forgotten decide that, and nothing else. So all indexes that
//! divide the columns of the same documents agree.

use std::collections::{HashMap, HashSet};

use super::batch::{Batch, Forgotten};
use super::clock::Dated;
use super::reader::{Damaged, IndexReader, Poll, Polled};
use super::record::Record;
use super::rules::SameId;
use super::verdict::{self, VerdictMatch};

/// The first document with an id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum First {
    /// One of the batch.
    Row(u32),
    /// One of the index.
    Stored(u64),
}

/// A match of a stored verdict, and the id of its document; empty if that was forgotten.
pub type StoredMatch = (VerdictMatch, Vec<u8>);

/// What ids say about the documents of a batch.
///
/// Hash maps are keyed at random: whoever writes documents chooses their ids.
#[derive(Debug, Default)]
pub struct Identities {
    /// The documents of the index that have an id.
    stored: HashMap<Vec<u8>, Vec<u64>>,
    /// The newest one of each, and as of when it counts.
    newest: HashMap<Vec<u8>, (u64, i64)>,
    /// The matches of those of the index that were sent again.
    verdicts: HashMap<u64, Vec<StoredMatch>>,
    /// The first documents of those rows that were sent again, ascending.
    pub repeats: Vec<(u32, First)>,
    /// What is forgotten, also by what takes its place.
    pub forgotten: Vec<Forgotten>,
}

impl Identities {
    /// Read what ids say. It is asked again after `Pending`, until it is `Ready`.
    pub fn read(
        &mut self,
        batch: &Batch,
        same_id: SameId,
        dates: &Dated,
        reader: &mut impl IndexReader,
    ) -> Polled<()> {
        let tombstones = batch.forgotten.iter().map(|one| &one.id[..]);
        let ids = batch.ids.iter().filter(|_| same_id != SameId::Duplicate);
        let mut read = true;
        for id in tombstones.chain(ids) {
            if self.stored.contains_key(id) {
                continue;
            }
            match reader.identified(id)? {
                Poll::Ready(numbers) => {
                    if let Some(number) = numbers.iter().find(|&&one| one >= reader.inserted()) {
                        let message =
                            format!("an id is that of document {number}, which isn't there");
                        return Err(Damaged(message));
                    }
                    self.stored.insert(id.to_vec(), numbers);
                }
                Poll::Pending => read = false,
            }
        }
        if !read {
            return Ok(Poll::Pending);
        }
        match same_id {
            SameId::Duplicate => self.forgotten.clone_from(&batch.forgotten),
            SameId::Replace => self.forgotten = self.with_replaced(batch),
            SameId::Ignore => {
                ready!(self.read_newest(batch, dates, reader)?);
                self.repeats = self.repeats_in(batch, dates);
                ready!(self.read_verdicts(reader)?);
                self.forgotten.clone_from(&batch.forgotten);
            }
        }
        Ok(Poll::Ready(()))
    }

    /// The documents of the index that have an id.
    pub fn stored(&self, id: &[u8]) -> &[u64] {
        self.stored.get(id).map_or(&[], Vec::as_slice)
    }

    /// The stored matches of a document of the index that was sent again.
    pub fn verdict(&self, number: u64) -> &[StoredMatch] {
        self.verdicts.get(&number).map_or(&[], Vec::as_slice)
    }

    /// What is forgotten if a document forgets the earlier one with its id just before it comes.
    fn with_replaced(&self, batch: &Batch) -> Vec<Forgotten> {
        let mut known: HashSet<&[u8]> = HashSet::new();
        let again = batch.ids.iter().enumerate().filter(|(_, id)| {
            let new = known.insert(id);
            !new || !self.stored(id).is_empty()
        });
        let again = again.map(|(row, id)| Forgotten { row, id: id.to_vec() });
        let mut both: Vec<Forgotten> = batch.forgotten.iter().cloned().chain(again).collect();
        both.sort_by_key(|one| one.row);
        both
    }

    /// Find the newest document of each id. One that has moved has several numbers; its verdict is
    /// under the lowest.
    fn read_newest(
        &mut self,
        batch: &Batch,
        dates: &Dated,
        reader: &mut impl IndexReader,
    ) -> Polled<()> {
        let mut read = true;
        for id in batch.ids.iter() {
            let numbers = self.stored.get(id).map_or(&[][..], Vec::as_slice);
            if numbers.is_empty() || self.newest.contains_key(id) {
                continue;
            }
            let mut newest: Option<(u64, u64, i64)> = None;
            let mut all = true;
            for &number in numbers {
                let Poll::Ready(packed) = reader.record(number)? else {
                    all = false;
                    continue;
                };
                let Record { sequence, time, .. } = Record::unpack(packed)?;
                let later =
                    |&(other, least, _): &(u64, u64, i64)| (sequence, least) > (other, number);
                if newest.as_ref().is_none_or(later) {
                    newest = Some((sequence, number, time));
                }
            }
            match newest {
                Some((_, number, time)) if all => {
                    self.newest.insert(id.to_vec(), (number, dates.clock.settled(time)));
                }
                _ => read = false,
            }
        }
        Ok(if read { Poll::Ready(()) } else { Poll::Pending })
    }

    fn repeats_in(&self, batch: &Batch, dates: &Dated) -> Vec<(u32, First)> {
        let mut own: HashMap<&[u8], Option<(First, i64)>> = HashMap::new();
        let mut left = batch.forgotten.iter().peekable();
        let mut repeats = Vec::new();
        for (row, id) in batch.ids.iter().enumerate() {
            while let Some(one) = left.next_if(|one| one.row <= row) {
                own.insert(&one.id, None);
            }
            let stored =
                || self.newest.get(id).map(|&(number, time)| (First::Stored(number), time));
            let first = own.entry(id).or_insert_with(stored);
            let least = dates.oldest.as_ref().map(|oldest| oldest[row]);
            match *first {
                Some((of, time)) if least.is_none_or(|least| time >= least) => {
                    repeats.push((row as u32, of));
                }
                // One that is older than the window now is the first of none.
                _ => *first = Some((First::Row(row as u32), dates.times[row])),
            }
        }
        repeats
    }

    fn read_verdicts(&mut self, reader: &mut impl IndexReader) -> Polled<()> {
        let mut read = true;
        for &(_, first) in &self.repeats {
            let First::Stored(number) = first else { continue };
            if self.verdicts.contains_key(&number) {
                continue;
            }
            let Poll::Ready(packed) = reader.verdict(number)? else {
                read = false;
                continue;
            };
            let mut found = Vec::new();
            let mut all = true;
            for one in verdict::unpack(&packed.unwrap_or_default())? {
                let id = match one.number {
                    None => Vec::new(),
                    Some(number) => match reader.record(number)? {
                        Poll::Ready([]) => Vec::new(),
                        Poll::Ready(packed) => Record::unpack(packed)?.id.to_vec(),
                        Poll::Pending => {
                            all = false;
                            continue;
                        }
                    },
                };
                found.push((one, id));
            }
            if all {
                self.verdicts.insert(number, found);
            } else {
                read = false;
            }
        }
        Ok(if read { Poll::Ready(()) } else { Poll::Pending })
    }
}
