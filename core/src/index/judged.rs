//! What came of a batch so far: who was inserted, what has changed, and what matches.

use rustc_hash::FxHashSet;

use super::buckets::Buckets;
use super::candidates::Candidates;
use super::clock::Dated;
use super::collisions::Collisions;
use super::decision::{Counts, Matches};
use super::reader::{Damaged, IndexReader, Poll};

/// An entry that was renewed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Renewed {
    /// Its document's number.
    pub number: u64,
    /// The number of its bucket's column.
    pub column: u8,
    /// The id of its bucket.
    pub bucket: u32,
}

/// What came of the documents of a batch.
pub struct Judged {
    /// The rows of the documents that were not sent again.
    pub rows: Vec<u32>,
    pub candidates: Candidates,
    pub buckets: Buckets,
    pub postings: Collisions,
    /// Whether some documents are forgotten in the batch.
    pub forgets: bool,
    /// Which documents were inserted into the bucket of a collision, by row.
    pub inserted: Vec<bool>,
    pub renewed: FxHashSet<Renewed>,
    pub counts: Counts,
    pub matches: Matches,
}

impl Judged {
    /// Renew an entry to the time of a row's document; return whether that is later.
    ///
    /// `by` is the place of the entry's document. Its renewals were read.
    pub fn renew(
        &mut self,
        row: u32,
        by: u32,
        column: u8,
        bucket: u32,
        dates: &Dated,
        reader: &mut impl IndexReader,
    ) -> Result<bool, Damaged> {
        let Poll::Ready(time) = self.candidates.renewed_time(by, column, reader)? else {
            return Err(Damaged("what was read is gone".into()));
        };
        let own = dates.times[row as usize];
        if self.candidates.later(own, time) == time {
            return Ok(false);
        }
        let number = self.candidates.document(by).number;
        self.candidates.renew(number, column, own);
        self.renewed.insert(Renewed { number, column, bucket });
        Ok(true)
    }

    /// Insert a row's document into a bucket, whose entries were read. What is forgotten or too old
    /// leaves it, and the oldest ones, if there is no room.
    pub fn insert(
        &mut self,
        row: u32,
        column: u8,
        bucket: u32,
        oldest: Option<i64>,
        capacity: usize,
        reader: &mut impl IndexReader,
    ) -> Result<(), Damaged> {
        let Self { candidates, buckets, .. } = self;
        let held = buckets.get_mut(bucket);
        let mut kept = Vec::with_capacity(held.entries.len());
        for at in 0..held.entries.len() {
            let place = held.place(at).or_else(|| candidates.place_if_known(held.entries[at]));
            let place = place.expect("it was compared with all entries");
            if candidates.live(place, column, row, oldest, reader)? == Poll::Ready(true) {
                kept.push(at);
            }
        }
        let leaving = (kept.len() + 1).saturating_sub(capacity);
        self.counts.dropped += u64::from(leaving > 0);
        held.dropped |= leaving > 0;
        held.refill(&kept[leaving..], candidates.first + u64::from(row), row);
        Ok(())
    }

    /// Note in buckets that they have overflow buckets; `anew`: have it written where that is noted, too.
    ///
    /// With a window, it is written anew, since what is older is given back.
    pub fn divide(&mut self, buckets: &[u32], anew: bool) {
        for &bucket in buckets {
            let held = self.buckets.get_mut(bucket);
            self.counts.divided += u64::from(!held.has_overflow);
            held.changed |= anew || !held.has_overflow;
            held.has_overflow = true;
        }
    }
}
