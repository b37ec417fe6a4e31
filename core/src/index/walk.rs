//! How a document goes through the buckets of one column: what it meets, and where it ends.
//!
//! A document comes to the bucket of a key. There,
//!
//! - an entry that is all but identical to the document stands for it (`Rules::absorb`);
//! - in a hot bucket (`Rules::hot`), those that came first are looked at one after the
//!   other. The first of them that covers the document (`Rules::absorbs_similar`) stands for it, and no
//!   later one is looked at. If none does: in a full bucket, any entry that covers the document
//!   stands for it;
//! - else the document is inserted, or, if the bucket is full, goes on to an overflow bucket; see `overflow`.
//!   There the same holds.
//!
//! So a flood of texts from one mould ends in the first bucket of a key, after a few comparisons,
//! and adds nothing to it. Every decision about a bucket depends only on its entries and the
//! sketches. Nothing in one column depends on another column, or on which index holds it, so the
//! verdicts don't depend on how the columns are divided.

use super::batch::Batch;
use super::buckets::Buckets;
use super::candidates::Candidates;
use super::collisions::Collision;
use super::config::IndexConfig;
use super::overflow::LEVELS;
use super::reader::{Damaged, IndexReader, Poll};

/// The way of a document through the buckets of a column.
#[derive(Debug, Clone, Copy)]
pub struct ProbePath {
    buckets: [u32; LEVELS + 1],
    /// How many buckets it met.
    met: usize,
    pub end: Outcome,
}

/// What becomes of a document in a column. A level is that of a bucket on the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It is inserted into the first bucket on the way that has room, or the last one.
    Inserted { level: usize },
    /// An entry stands for it: its document's place, and how many slots of both are equal.
    Absorbed { level: usize, by: u32, equal: u32 },
}

impl ProbePath {
    /// The buckets that the document met, the coarsest first.
    pub fn met(&self) -> &[u32] {
        &self.buckets[..self.met]
    }

    /// The bucket where the document ended, and those before it.
    pub fn last(&self) -> (u32, &[u32]) {
        let (Outcome::Inserted { level } | Outcome::Absorbed { level, .. }) = self.end;
        (self.buckets[level], &self.buckets[..level])
    }
}

/// What a document's stay in one bucket comes to.
enum Comparison {
    Absorbed { by: u32, equal: u32 },
    Passed { full: bool },
}

/// Leads documents through buckets; changes nothing but what is known.
pub struct Probe<'a, S> {
    pub config: &'a IndexConfig,
    pub batch: &'a Batch,
    /// The least time of an entry when each document comes.
    pub oldest: Option<&'a [i64]>,
    pub candidates: &'a mut Candidates,
    pub buckets: &'a mut Buckets,
    pub reader: &'a mut S,
    /// The places of the documents that the last one was compared with; some may be there twice.
    pub compared: &'a mut Vec<u32>,
    /// Whether all entries are live, whatever they are.
    pub all_live: bool,
    /// The places of a bucket's live entries.
    pub live: &'a mut Vec<u32>,
}

impl<S: IndexReader> Probe<'_, S> {
    /// Lead a document through the buckets of a column. If something is unread, all of it is noted
    /// that is sure to be needed.
    pub fn visit(&mut self, posting: Collision) -> Result<Poll<ProbePath>, Damaged> {
        self.compared.clear();
        let mut buckets = [posting.bucket; LEVELS + 1];
        let mut room = None;
        for level in 0..=LEVELS {
            if level > 0 {
                buckets[level] = self.overflow(posting, level);
            }
            if self.buckets.read(buckets[level], self.reader)? == Poll::Pending {
                return self.read_overflow(posting, level);
            }
            let stay = ready!(self.stay(posting, buckets[level])?);
            let met = level + 1;
            let full = match stay {
                Comparison::Passed { full } => full,
                Comparison::Absorbed { by, equal } => {
                    let end = Outcome::Absorbed { level, by, equal };
                    return Ok(Poll::Ready(ProbePath { buckets, met, end }));
                }
            };
            if room.is_none() && (!full || level == LEVELS) {
                room = Some(level);
            }
            // What a bucket had before is in its overflow buckets, even if it has room by now.
            let goes_on = level < LEVELS && (full || self.buckets.get(buckets[level]).has_overflow);
            if let (Some(level), false) = (room, goes_on) {
                let end = Outcome::Inserted { level };
                return Ok(Poll::Ready(ProbePath { buckets, met, end }));
            }
        }
        unreachable!("the finest bucket takes every document");
    }

    /// The id of an overflow bucket on a document's way.
    fn overflow(&mut self, posting: Collision, level: usize) -> u32 {
        let (batch, column) = (self.batch, usize::from(posting.column));
        let hash = batch.key(column, posting.row as usize);
        let sketch = batch.sketch(posting.row as usize, self.config.slots);
        let key = self.config.overflow.key(column, hash, level, sketch);
        self.buckets.overflow(posting.column, key)
    }

    /// Have the overflow buckets be read that are behind one that is unread.
    ///
    /// Among unlike documents, hardly any goes beyond the first overflow bucket; in a flood, one that
    /// does mostly goes far. So these are read at once.
    fn read_overflow(
        &mut self,
        posting: Collision,
        level: usize,
    ) -> Result<Poll<ProbePath>, Damaged> {
        if level > 1 {
            for level in level + 1..=LEVELS {
                let id = self.overflow(posting, level);
                let _ = self.buckets.read(id, self.reader)?;
            }
        }
        Ok(Poll::Pending)
    }

    /// Compare a document with the entries of a bucket.
    fn stay(&mut self, posting: Collision, bucket: u32) -> Result<Poll<Comparison>, Damaged> {
        let entries = self.buckets.get(bucket).entries.len();
        if entries >= self.config.leaders {
            let found = if self.all_live {
                ready!(self.first_that_absorbs(posting, bucket)?)
            } else {
                ready!(self.read_live(posting, bucket, self.config.leaders)?);
                self.absorbing_leader(posting)
            };
            if let Some((by, equal)) = found {
                return Ok(Poll::Ready(Comparison::Absorbed { by, equal }));
            }
        }
        ready!(self.read_live(posting, bucket, entries)?);
        if let Some((by, equal)) = self.absorbing_leader(posting) {
            return Ok(Poll::Ready(Comparison::Absorbed { by, equal }));
        }
        let full = self.live.len() >= self.config.rules.capacity;
        let mut best = None;
        for at in 0..self.live.len() {
            let place = self.live[at];
            let equal = self.compare(posting.row, place);
            if best.is_none_or(|(_, most)| equal > most) {
                best = Some((place, equal));
            }
        }
        let measures = &self.config.measures;
        let least = if full { measures.absorbs_similar } else { measures.absorbs };
        Ok(Poll::Ready(match best {
            Some((by, equal)) if equal >= least => Comparison::Absorbed { by, equal },
            _ => Comparison::Passed { full },
        }))
    }

    /// Compare a document with the first entries of a hot bucket, all of which are live, one
    /// after the other.
    ///
    /// Records are read by ones, twos and fours.
    fn first_that_absorbs(
        &mut self,
        posting: Collision,
        bucket: u32,
    ) -> Result<Poll<Option<(u32, u32)>>, Damaged> {
        for at in 0..self.config.leaders {
            let Poll::Ready(place) = self.place(bucket, at)? else {
                for next in at + 1..self.config.leaders.min((2 * at).max(1)) {
                    let _ = self.place(bucket, next)?;
                }
                return Ok(Poll::Pending);
            };
            let equal = self.compare(posting.row, place);
            if equal >= self.config.measures.absorbs_similar {
                return Ok(Poll::Ready(Some((place, equal))));
            }
        }
        Ok(Poll::Ready(None))
    }

    /// The first of the live entries that covers a document, if there are enough of them to be
    /// hot, and it is among the first ones.
    fn absorbing_leader(&mut self, posting: Collision) -> Option<(u32, u32)> {
        if self.live.len() < self.config.leaders {
            return None;
        }
        (0..self.config.leaders).find_map(|at| {
            let place = self.live[at];
            let equal = self.compare(posting.row, place);
            (equal >= self.config.measures.absorbs_similar).then_some((place, equal))
        })
    }

    /// Find the live ones among the first entries of a bucket.
    pub fn read_live(
        &mut self,
        posting: Collision,
        bucket: u32,
        entries: usize,
    ) -> Result<Poll<()>, Damaged> {
        self.live.clear();
        let column = self.config.columns[usize::from(posting.column)];
        let oldest = self.oldest.map(|oldest| oldest[posting.row as usize]);
        let mut read = true;
        for at in 0..entries {
            let Poll::Ready(place) = self.place(bucket, at)? else {
                read = false;
                continue;
            };
            match self.candidates.live(place, column, posting.row, oldest, self.reader)? {
                Poll::Ready(true) => self.live.push(place),
                Poll::Ready(false) => {}
                Poll::Pending => read = false,
            }
        }
        Ok(if read { Poll::Ready(()) } else { Poll::Pending })
    }

    /// The place of a document that a bucket names.
    #[inline]
    fn place(&mut self, bucket: u32, at: usize) -> Result<Poll<u32>, Damaged> {
        let held = self.buckets.get_mut(bucket);
        if let Some(place) = held.place(at) {
            return Ok(Poll::Ready(place));
        }
        let place = ready!(self.candidates.place(held.entries[at], self.reader)?);
        held.note_place(at, place);
        Ok(Poll::Ready(place))
    }

    #[inline]
    fn compare(&mut self, row: u32, place: u32) -> u32 {
        self.compared.push(place);
        self.candidates.equal(self.batch, row, place, &self.config.measures)
    }
}
