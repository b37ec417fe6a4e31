//! How a document goes through the buckets of one column: what it meets, and where it ends.
//!
//! A document comes to the bucket of a key. There,
//!
//! - an entry that is all but identical to the document stands for it (`Rules::absorb`);
//! - in a crowded bucket (`Rules::crowded`), those that came first are looked at one after the
//!   other. The first of them that covers the document (`Rules::covers`) stands for it, and no
//!   later one is looked at. If none does: in a full bucket, any entry that covers the document
//!   stands for it;
//! - else the document is inserted, or, if the bucket is full, goes on to a finer one; see `finer`.
//!   There the same holds.
//!
//! So a flood of texts from one mould ends in the first bucket of a key, after a few comparisons,
//! and adds nothing to it. Every decision about a bucket depends only on its entries and the
//! sketches. Nothing in one column depends on another column, or on which index holds it, so the
//! verdicts don't depend on how the columns are divided.

use super::batch::Batch;
use super::buckets::Buckets;
use super::cells::Contested;
use super::court::Court;
use super::finer::LEVELS;
use super::known::Known;
use super::sight::{Damaged, Seen, Sight};

/// The way of a document through the buckets of a column.
#[derive(Debug, Clone, Copy)]
pub struct Way {
    buckets: [u32; LEVELS + 1],
    /// How many buckets it met.
    met: usize,
    pub end: End,
}

/// What becomes of a document in a column. A level is that of a bucket on the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// It is inserted into the first bucket on the way that has room, or the last one.
    Inserted { level: usize },
    /// An entry stands for it: its document's place, and how many slots of both are equal.
    Covered { level: usize, by: u32, equal: u32 },
}

impl Way {
    /// The buckets that the document met, the coarsest first.
    pub fn met(&self) -> &[u32] {
        &self.buckets[..self.met]
    }

    /// The bucket where the document ended, and those before it.
    pub fn last(&self) -> (u32, &[u32]) {
        let (End::Inserted { level } | End::Covered { level, .. }) = self.end;
        (self.buckets[level], &self.buckets[..level])
    }
}

/// What a document's stay in one bucket comes to.
enum Stay {
    Covered { by: u32, equal: u32 },
    Passed { full: bool },
}

/// Leads documents through buckets; changes nothing but what is known.
pub struct Walk<'a, S> {
    pub court: &'a Court,
    pub batch: &'a Batch,
    /// The least time of an entry when each document comes.
    pub oldest: Option<&'a [i64]>,
    pub known: &'a mut Known,
    pub buckets: &'a mut Buckets,
    pub sight: &'a mut S,
    /// The places of the documents that the last one was compared with; some may be there twice.
    pub compared: &'a mut Vec<u32>,
    /// Whether all entries are live, whatever they are.
    pub all_live: bool,
    /// The places of a bucket's live entries.
    pub live: &'a mut Vec<u32>,
}

impl<S: Sight> Walk<'_, S> {
    /// Lead a document through the buckets of a column. If something is unread, all of it is noted
    /// that is sure to be needed.
    pub fn visit(&mut self, cell: Contested) -> Result<Seen<Way>, Damaged> {
        self.compared.clear();
        let mut buckets = [cell.bucket; LEVELS + 1];
        let mut room = None;
        for level in 0..=LEVELS {
            if level > 0 {
                buckets[level] = self.finer(cell, level);
            }
            if self.buckets.read(buckets[level], self.sight)? == Seen::Unread {
                return self.read_finer(cell, level);
            }
            let stay = seen!(self.stay(cell, buckets[level])?);
            let met = level + 1;
            let full = match stay {
                Stay::Passed { full } => full,
                Stay::Covered { by, equal } => {
                    let end = End::Covered { level, by, equal };
                    return Ok(Seen::Here(Way { buckets, met, end }));
                }
            };
            if room.is_none() && (!full || level == LEVELS) {
                room = Some(level);
            }
            // What a bucket had before is in its finer ones, even if it has room by now.
            let goes_on = level < LEVELS && (full || self.buckets.get(buckets[level]).beyond);
            if let (Some(level), false) = (room, goes_on) {
                let end = End::Inserted { level };
                return Ok(Seen::Here(Way { buckets, met, end }));
            }
        }
        unreachable!("the finest bucket takes every document");
    }

    /// The id of a finer bucket on a document's way.
    fn finer(&mut self, cell: Contested, level: usize) -> u32 {
        let (batch, column) = (self.batch, usize::from(cell.column));
        let hash = batch.key(column, cell.row as usize);
        let sketch = batch.sketch(cell.row as usize, self.court.slots);
        let key = self.court.finer.key(column, hash, level, sketch);
        self.buckets.finer(cell.column, key)
    }

    /// Have the finer buckets be read that are behind one that is unread.
    ///
    /// Among unlike documents, hardly any goes beyond the first finer bucket; in a flood, one that
    /// does mostly goes far. So these are read at once.
    fn read_finer(&mut self, cell: Contested, level: usize) -> Result<Seen<Way>, Damaged> {
        if level > 1 {
            for level in level + 1..=LEVELS {
                let id = self.finer(cell, level);
                self.buckets.read(id, self.sight)?;
            }
        }
        Ok(Seen::Unread)
    }

    /// Compare a document with the entries of a bucket.
    fn stay(&mut self, cell: Contested, bucket: u32) -> Result<Seen<Stay>, Damaged> {
        let entries = self.buckets.get(bucket).entries.len();
        if entries >= self.court.heads {
            let found = if self.all_live {
                seen!(self.first_that_covers(cell, bucket)?)
            } else {
                seen!(self.read_live(cell, bucket, self.court.heads)?);
                self.covering_head(cell)
            };
            if let Some((by, equal)) = found {
                return Ok(Seen::Here(Stay::Covered { by, equal }));
            }
        }
        seen!(self.read_live(cell, bucket, entries)?);
        if let Some((by, equal)) = self.covering_head(cell) {
            return Ok(Seen::Here(Stay::Covered { by, equal }));
        }
        let full = self.live.len() >= self.court.rules.capacity;
        let mut best = None;
        for at in 0..self.live.len() {
            let place = self.live[at];
            let equal = self.compare(cell.row, place);
            if best.is_none_or(|(_, most)| equal > most) {
                best = Some((place, equal));
            }
        }
        let measures = &self.court.measures;
        let least = if full { measures.covers } else { measures.absorbs };
        Ok(Seen::Here(match best {
            Some((by, equal)) if equal >= least => Stay::Covered { by, equal },
            _ => Stay::Passed { full },
        }))
    }

    /// Compare a document with the first entries of a crowded bucket, all of which are live, one
    /// after the other.
    ///
    /// Records are read by ones, twos and fours.
    fn first_that_covers(
        &mut self,
        cell: Contested,
        bucket: u32,
    ) -> Result<Seen<Option<(u32, u32)>>, Damaged> {
        for at in 0..self.court.heads {
            let Seen::Here(place) = self.place(bucket, at)? else {
                for next in at + 1..self.court.heads.min((2 * at).max(1)) {
                    self.place(bucket, next)?;
                }
                return Ok(Seen::Unread);
            };
            let equal = self.compare(cell.row, place);
            if equal >= self.court.measures.covers {
                return Ok(Seen::Here(Some((place, equal))));
            }
        }
        Ok(Seen::Here(None))
    }

    /// The first of the live entries that covers a document, if there are enough of them to be
    /// crowded, and it is among the first ones.
    fn covering_head(&mut self, cell: Contested) -> Option<(u32, u32)> {
        if self.live.len() < self.court.heads {
            return None;
        }
        (0..self.court.heads).find_map(|at| {
            let place = self.live[at];
            let equal = self.compare(cell.row, place);
            (equal >= self.court.measures.covers).then_some((place, equal))
        })
    }

    /// Find the live ones among the first entries of a bucket.
    pub fn read_live(
        &mut self,
        cell: Contested,
        bucket: u32,
        entries: usize,
    ) -> Result<Seen<()>, Damaged> {
        self.live.clear();
        let column = self.court.columns[usize::from(cell.column)];
        let oldest = self.oldest.map(|oldest| oldest[cell.row as usize]);
        let mut read = true;
        for at in 0..entries {
            let Seen::Here(place) = self.place(bucket, at)? else {
                read = false;
                continue;
            };
            match self.known.live(place, column, cell.row, oldest, self.sight)? {
                Seen::Here(true) => self.live.push(place),
                Seen::Here(false) => {}
                Seen::Unread => read = false,
            }
        }
        Ok(if read { Seen::Here(()) } else { Seen::Unread })
    }

    /// The place of a document that a bucket names.
    #[inline]
    fn place(&mut self, bucket: u32, at: usize) -> Result<Seen<u32>, Damaged> {
        let held = self.buckets.get_mut(bucket);
        if let Some(place) = held.place(at) {
            return Ok(Seen::Here(place));
        }
        let place = seen!(self.known.place(held.entries[at], self.sight)?);
        held.note_place(at, place);
        Ok(Seen::Here(place))
    }

    #[inline]
    fn compare(&mut self, row: u32, place: u32) -> u32 {
        self.compared.push(place);
        self.known.equal(self.batch, row, place, &self.court.measures)
    }
}
