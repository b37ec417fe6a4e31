//! Writes down the changes that a batch makes to an index, when it is known what gets a number.

use rustc_hash::{FxHashMap, FxHashSet};

use super::buckets::{Held, Origin};
use super::candidates::NEVER;
use super::decision::{ChangedBucket, Changes, NewPosting};
use super::judge::{BatchState, Renewed};
use super::naming::Naming;
use super::reader::{IndexReader, Poll, Polled};
use super::record::Record;
use super::rules::SameId;
use super::verdict::{self, VerdictMatch};

/// The other numbers of entries, by their buckets' ids and their numbers until now.
type Moves = FxHashMap<(u32, u64), u64>;

impl BatchState {
    /// Return what changes. If something has to be read for that, it is asked again.
    pub fn changes(&mut self, reader: &mut impl IndexReader) -> Polled<Changes> {
        let mut made = Changes { forgotten: self.candidates.forgotten(), ..Changes::default() };
        let numbers = self.records(&mut made);
        let below = reader.moved_below().min(self.candidates.first);
        let moves = self.renewals(below, &numbers, &mut made);
        let last = self.rows.last().map(|&row| row as usize);
        let oldest = self.dates.oldest.as_ref().zip(last).map(|(oldest, row)| oldest[row]);
        ready!(self.buckets(&numbers, &moves, oldest, &mut made, reader)?);
        self.postings(&numbers, &mut made);
        if self.config.rules.same_id == SameId::Ignore {
            ready!(self.verdicts(&numbers, &mut made, reader)?);
        }
        Ok(Poll::Ready(made))
    }

    /// Write the records of the documents that get one; return the number of each, by row.
    fn records(&self, made: &mut Changes) -> Vec<Option<u64>> {
        let columns = self.config.columns.len();
        let mut all =
            vec![u8::MAX; if self.config.rules.rows == 0 { 0 } else { columns.div_ceil(8) }];
        if let (Some(last), 1..) = (all.last_mut(), columns % 8) {
            *last >>= 8 - columns % 8;
        }
        let mut numbers = vec![None; self.batch.len()];
        let mut new = all.clone();
        for &row in &self.rows {
            let at = row as usize;
            let collisions = self.collisions.of_row(at);
            let named = collisions.len() < columns || self.inserted[at];
            let kept = named || self.config.rules.same_id == SameId::Ignore;
            if !kept || self.candidates.document(row).gone_from != NEVER {
                continue;
            }
            new.copy_from_slice(&all);
            for posting in collisions {
                let held = self.buckets.get(posting.bucket);
                if let Some(byte) = new.get_mut(usize::from(posting.column / 8)) {
                    *byte &= !(u8::from(held.shared || !held.new) << (posting.column % 8));
                }
            }
            numbers[at] = Some(self.candidates.first + made.records.len() as u64);
            made.records.push(
                Record {
                    sequence: self.batch.sequences[at],
                    time: self.dates.times[at],
                    shingles: self.batch.shingles[at],
                    sketch: if named { self.batch.sketch(at, self.config.slots) } else { &[] },
                    new: if named { &new } else { &[] },
                    id: self.batch.ids.get(at),
                }
                .pack(),
            );
        }
        numbers
    }

    /// Write the renewals.
    ///
    /// A document that the index wants to move gets another number in the buckets where it was
    /// renewed, and still is. Returns these.
    fn renewals(&self, below: u64, numbers: &[Option<u64>], made: &mut Changes) -> Moves {
        let stays = |one: &&Renewed| !self.is_gone(one.number);
        let mut renewed: Vec<Renewed> = self.renewed.iter().filter(stays).copied().collect();
        renewed.sort_unstable();
        let mut moves = Moves::default();
        for some in renewed.chunk_by(|one, other| one.number == other.number) {
            let number = some[0].number;
            if number >= below {
                let renewals = self.candidates.renewals(number);
                made.renewals.extend(self.numbered(number, numbers).map(|own| (own, renewals)));
            } else {
                self.move_document(number, some, &mut moves, made);
            }
        }
        moves
    }

    fn move_document(&self, number: u64, some: &[Renewed], moves: &mut Moves, made: &mut Changes) {
        let there = |one: &&Renewed| self.buckets.get(one.bucket).entries.contains(&number);
        let held: Vec<&Renewed> = some.iter().filter(there).collect();
        let Some(place) = self.candidates.known(number).filter(|_| !held.is_empty()) else {
            return;
        };
        let other = self.candidates.first + made.records.len() as u64;
        made.records.push(self.candidates.record(place, true).pack());
        moves.extend(held.iter().map(|one| ((one.bucket, number), other)));
        let mut renewals = self.candidates.renewals(number);
        renewals.retain(|(column, _)| held.iter().any(|one| one.column == *column));
        made.renewals.push((other, renewals));
    }

    /// Write the buckets that have changed, without what is forgotten or too old after the self.batch.
    fn buckets(
        &mut self,
        numbers: &[Option<u64>],
        moves: &Moves,
        oldest: Option<i64>,
        made: &mut Changes,
        reader: &mut impl IndexReader,
    ) -> Polled<()> {
        let moved: FxHashSet<u32> = moves.keys().map(|&(bucket, _)| bucket).collect();
        let mut read = true;
        for (id, held) in self.buckets.iter() {
            if !held.changed && !moved.contains(&id) {
                continue;
            }
            if held.new && !held.shared && held.origin != Origin::Overflow {
                let (column, hash) = (usize::from(held.column), held.hash);
                let number = held.entries.first().and_then(|&own| self.numbered(own, numbers));
                let posting = |number| NewPosting { column, hash, number, may_exist: true };
                made.postings.extend(number.map(posting));
                continue; // There was no collision, after all.
            }
            let column = self.config.columns[usize::from(held.column)];
            let mut entries = Vec::with_capacity(held.entries.len());
            for &number in &held.entries {
                // Nobody has looked at those that aren't known.
                if let Some(place) = self.candidates.known(number) {
                    match self.candidates.live(place, column, NEVER - 1, oldest, reader)? {
                        Poll::Ready(true) => {}
                        Poll::Ready(false) => continue,
                        Poll::Pending => {
                            read = false;
                            continue;
                        }
                    }
                }
                let other = moves.get(&(id, number)).copied();
                entries.extend(other.or_else(|| self.numbered(number, numbers)));
            }
            // Empty buckets aren't written, but what was dropped must not come back.
            let has_overflow = held.has_overflow || held.dropped && entries.is_empty();
            let Held { column, hash, new, origin, .. } = *held;
            let column = usize::from(column);
            match entries[..] {
                [] if !has_overflow => {}
                [number] if new && !has_overflow && origin != Origin::Overflow => {
                    made.postings.push(NewPosting { column, hash, number, may_exist: true });
                }
                _ => made.buckets.push(ChangedBucket { column, hash, entries, has_overflow }),
            }
        }
        Ok(if read { Poll::Ready(()) } else { Poll::Pending })
    }

    /// Write the postings that nobody contests.
    fn postings(&self, numbers: &[Option<u64>], made: &mut Changes) {
        let collisions = self.collisions.all.len();
        made.postings.reserve(self.rows.len() * self.config.columns.len() - collisions);
        for column in 0..self.config.columns.len() {
            let keys = &self.batch.keys[column * self.batch.len()..(column + 1) * self.batch.len()];
            for (row, (&hash, number)) in keys.iter().zip(numbers).enumerate() {
                if let (Some(number), false) = (*number, self.collisions.collides(column, row)) {
                    made.postings.push(NewPosting { column, hash, number, may_exist: false });
                }
            }
        }
    }

    /// Write the verdicts of documents that get a number.
    fn verdicts(
        &self,
        numbers: &[Option<u64>],
        made: &mut Changes,
        reader: &mut impl IndexReader,
    ) -> Polled<()> {
        let of = |row: usize| {
            &self.matches.matches[self.matches.starts[row]..self.matches.starts[row + 1]]
        };
        let own = numbers.iter().enumerate().filter_map(|(row, &number)| Some((number?, of(row))));
        let own: Vec<_> = own.filter(|(_, matches)| !matches.is_empty()).collect();
        let sequences = own.iter().flat_map(|(_, matches)| matches.iter().map(|one| one.sequence));
        let naming = Naming { candidates: &self.candidates, numbers };
        let names = ready!(naming.names(sequences.collect(), &mut made.records, reader)?);
        for (number, matches) in own {
            let verdict: Vec<VerdictMatch> = matches
                .iter()
                .map(|one| VerdictMatch {
                    sequence: one.sequence,
                    similarity: self.config.measures.estimate(u32::from(one.equal)),
                    number: names[&one.sequence],
                    containment: one.containment,
                })
                .collect();
            made.verdicts.push((number, verdict::pack(&verdict)));
        }
        Ok(Poll::Ready(()))
    }

    /// Whether a document is forgotten at the end of the self.batch.
    fn is_gone(&self, number: u64) -> bool {
        let place = self.candidates.known(number);
        place.is_none_or(|place| self.candidates.document(place).gone_from != NEVER)
    }

    /// The number of a document in the index, also of one of the self.batch.
    fn numbered(&self, number: u64, numbers: &[Option<u64>]) -> Option<u64> {
        match number.checked_sub(self.candidates.first) {
            None => Some(number),
            Some(row) => numbers[row as usize],
        }
    }
}
