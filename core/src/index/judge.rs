//! Judges a batch: what each document nearly repeats, and what becomes of it in each column.
//!
//! Documents are judged in their order. In a column, a document probes the bucket of its key:
//!
//! - an entry that is all but identical to the document absorbs it (`Rules::absorb`): the document
//!   isn't inserted there, since whatever matches it matches the entry, too;
//! - in a hot bucket (`Rules::leaders`), the leaders, which came first, are compared one by one. The
//!   first that is similar enough (`Rules::absorbs_similar`) absorbs the document, and no later entry
//!   is compared. If no leader does, and the bucket is full, any entry that similar does;
//! - otherwise the document is inserted. If the bucket is full (`Rules::capacity`), it goes on to an
//!   overflow bucket, where the same holds; see `overflow`. The last one drops its oldest entry.
//!
//! So a flood of texts from one mould ends in the first bucket of a key, after a few comparisons,
//! and adds nothing to it. What is forgotten, or older than the window, doesn't count; it leaves a
//! bucket with the next insertion. An entry that absorbs a document is renewed to its time.
//!
//! Every decision about a bucket depends only on its entries and the sketches. Nothing in a column
//! depends on another column, or on which index holds it. So verdicts don't depend on how the
//! columns are divided.
//!
//! A query is judged in the same way, but nothing changes: each sees the index as it is.

use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::batch::Batch;
use super::buckets::Buckets;
use super::candidates::{Candidates, NEVER};
use super::clock::{Clock, Dated};
use super::collisions::{Collision, Collisions};
use super::config::IndexConfig;
use super::decision::{Answer, Changes, Counts, Decision, Matches};
use super::ids::Identities;
use super::overflow::LEVELS;
use super::reader::{Damaged, IndexReader, Poll, Polled};
use super::repeated;

/// The least that is read at a time, so that few rounds are needed.
const TOGETHER: usize = 4096;
/// A candidate is read with seven others, each some bytes longer than its sketch.
const RECORDS_A_PAGE: usize = 8;
const RECORD_BYTES: usize = 60;
/// How many candidates are worth a piece of their own.
const LEAST_ROOM: usize = 4096;

/// What is judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Subject {
    Documents,
    /// `describes`: also return the buckets that each query met.
    Queries {
        describes: bool,
    },
}

/// Judges a batch, from its beginning to the decision.
pub struct Judge {
    config: Arc<IndexConfig>,
    batch: Arc<Batch>,
    subject: Subject,
    dates: Dated,
    ids: Identities,
    state: Option<BatchState>,
}

impl Judge {
    /// Begin to judge documents; `clock` is the one before them.
    pub fn new(config: Arc<IndexConfig>, batch: Arc<Batch>, clock: &Clock) -> Result<Self, String> {
        let dates = Dated::of(clock, &batch.times, &config.rules);
        Self::of(config, batch, dates, Subject::Documents)
    }

    /// Begin to judge queries, each as if it came next, alone. Their ids and sequence numbers don't
    /// count, and the decision changes nothing.
    pub fn query(
        config: Arc<IndexConfig>,
        batch: Arc<Batch>,
        clock: &Clock,
        describes: bool,
    ) -> Result<Self, String> {
        let oldest = |&time| clock.oldest_alone(time, &config.rules);
        let oldest = config.rules.window.map(|_| batch.times.iter().map(oldest).collect());
        let dates = Dated { oldest, clock: clock.clone(), ..Dated::default() };
        Self::of(config, batch, dates, Subject::Queries { describes })
    }

    fn of(
        config: Arc<IndexConfig>,
        batch: Arc<Batch>,
        dates: Dated,
        subject: Subject,
    ) -> Result<Self, String> {
        batch.check(config.columns.len(), config.slots)?;
        Ok(Self { config, batch, subject, dates, ids: Identities::default(), state: None })
    }

    /// Judge on until something has to be read; return the decision if nothing has.
    ///
    /// Nothing that the reader sees may change meanwhile. After the decision, drop the judge.
    pub fn step(&mut self, reader: &mut impl IndexReader) -> Polled<Decision> {
        let Self { config, batch, subject, dates, ids, state } = self;
        let begun = match state {
            Some(begun) => begun,
            None => {
                if *subject == Subject::Documents {
                    ready!(ids.read(batch, config.rules.same_id, dates, reader)?);
                }
                let dates = std::mem::take(dates);
                let (config, batch) = (config.clone(), batch.clone());
                state.insert(BatchState::new(config, batch, *subject, dates, ids, reader))
            }
        };
        ready!(begun.judge(reader)?);
        let changes = match subject {
            Subject::Documents => ready!(begun.changes(reader)?),
            Subject::Queries { .. } => Changes::default(),
        };
        let Some(BatchState { matches, mut counts, candidates, answers, dates, .. }) = state.take()
        else {
            unreachable!("it was begun")
        };
        counts.repeated = ids.repeats.len() as u64;
        let matches = Matches { ids: candidates.ids, ..matches };
        let matches = repeated::with_repeated(matches, batch, ids, &config.measures)?;
        let forgotten = batch.forgotten.iter().map(|forgotten| &forgotten.id);
        let known = forgotten.filter(|id| !ids.stored(id).is_empty()).cloned().collect();
        Ok(Poll::Ready(Decision { dates, matches, counts, changes, known, answers }))
    }
}

/// The buckets that a document probes in a column, the first one first, and what becomes of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct ProbePath {
    pub(super) buckets: [u32; LEVELS + 1],
    /// How many buckets it probed.
    pub(super) probed: usize,
    outcome: Outcome,
}

/// What becomes of a document in a column. A level is that of a bucket on its path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It is inserted into the first bucket on the path that has room, or into the last one.
    Inserted { level: usize },
    /// An entry absorbs it: a candidate, of which so many slots are equal.
    Absorbed { level: usize, by: u32, equal: u32 },
}

/// What the comparison with the entries of one bucket comes to.
enum Comparison {
    Absorbed { by: u32, equal: u32 },
    Passed { full: bool },
}

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

/// What came of a batch so far, but for the documents that were sent again.
///
/// It is judged piece by piece: of some documents, whatever has to be read is found at once, as far
/// as that is not too much to hold. They are judged, and their candidates are let go. A document that
/// meets full buckets has hundreds of candidates, so those of a whole batch may be gigabytes.
pub struct BatchState {
    pub(super) config: Arc<IndexConfig>,
    pub(super) batch: Arc<Batch>,
    pub(super) dates: Dated,
    subject: Subject,
    /// The rows of the documents that were not sent again.
    pub(super) rows: Vec<u32>,
    pub(super) candidates: Candidates,
    pub(super) buckets: Buckets,
    pub(super) collisions: Collisions,
    /// Which documents were inserted into the bucket of a collision, by row.
    pub(super) inserted: Vec<bool>,
    pub(super) renewed: FxHashSet<Renewed>,
    pub(super) matches: Matches,
    pub(super) counts: Counts,
    pub(super) answers: Vec<Answer>,
    /// Whether no entry can be forgotten or too old.
    all_live: bool,
    /// How many of the collisions were judged.
    next: usize,
    /// Where the piece ends that is judged: all its documents are whole.
    end: usize,
    /// The collisions that wait for something that has to be read.
    waiting: Vec<Collision>,
    /// Whether the whole piece was looked at, to find what has to be read.
    looked: bool,
    /// The candidates that the last probe compared; some may be there twice.
    compared: Vec<u32>,
    /// The live entries of the bucket that was read last.
    pub(super) live: Vec<u32>,
    /// The comparisons of the next collision's row so far: candidates, and how many slots are equal.
    pub(super) met: Vec<(u32, u32)>,
    /// The row that met each candidate last.
    met_by: Vec<u32>,
}

impl BatchState {
    fn new(
        config: Arc<IndexConfig>,
        batch: Arc<Batch>,
        subject: Subject,
        dates: Dated,
        ids: &Identities,
        reader: &mut impl IndexReader,
    ) -> Self {
        let mut again = ids.repeats.iter().map(|&(row, _)| row).peekable();
        let rows: Vec<u32> =
            (0..batch.len() as u32).filter(|&row| again.next_if_eq(&row).is_none()).collect();
        let mut candidates = Candidates::new(config.slots, dates.clock.clone(), reader.inserted());
        if subject == Subject::Documents {
            candidates.add_batch(&batch, &dates.times);
            candidates.forget(&batch, ids, &rows);
        }
        let mut buckets = Buckets::default();
        let collisions = Collisions::of(&batch, config.columns.len(), &rows, &mut buckets, reader);
        Self {
            all_live: dates.oldest.is_none() && reader.all_kept() && !candidates.forgets(),
            inserted: vec![false; batch.len()],
            matches: Matches { starts: vec![0], ..Matches::default() },
            config,
            batch,
            dates,
            subject,
            rows,
            candidates,
            buckets,
            collisions,
            renewed: FxHashSet::default(),
            counts: Counts::default(),
            answers: Vec::new(),
            next: 0,
            end: 0,
            waiting: Vec::new(),
            looked: false,
            compared: Vec::new(),
            live: Vec::new(),
            met: Vec::new(),
            met_by: Vec::new(),
        }
    }

    /// Judge the collisions, in order, until something has to be read.
    fn judge(&mut self, reader: &mut impl IndexReader) -> Polled<()> {
        loop {
            self.look(reader)?;
            if !self.waiting.is_empty() {
                return Ok(Poll::Pending);
            }
            loop {
                let Some(&collision) = self.collisions.all.get(self.next) else {
                    self.finish_rows(self.batch.len());
                    return Ok(Poll::Ready(()));
                };
                self.finish_rows(collision.row as usize);
                if self.next == self.end {
                    self.begin_piece(reader)?;
                }
                let Poll::Ready(path) = self.visit(collision, reader)? else { break };
                self.settle(collision, path, reader)?;
                self.next += 1;
            }
            // At first, whatever has to be read is found at once. What is missing later is missing
            // because documents of the batch have filled a bucket.
            let left = &self.collisions.all[self.next..self.end];
            let (stopped, buckets) = (left[0].bucket, &mut self.buckets);
            let concerned = left.iter().filter(|collision| {
                !self.looked
                    || collision.bucket == stopped
                    || buckets.get(collision.bucket).outgrown
            });
            self.waiting = concerned.copied().collect();
            for collision in &self.waiting {
                buckets.get_mut(collision.bucket).outgrown = false;
            }
            self.looked = true;
        }
    }

    /// Begin another piece: of so many documents as there is room to hold their candidates, at
    /// least one. If there is little, what is held goes before.
    fn begin_piece(&mut self, reader: &mut impl IndexReader) -> Result<(), Damaged> {
        let Self { candidates, buckets, .. } = self;
        let each =
            RECORDS_A_PAGE * (self.config.slots + RECORD_BYTES) + candidates.document_bytes();
        let mut room = reader.room_bytes(candidates.held_bytes()) / each;
        if room < LEAST_ROOM && candidates.held_bytes() > 0 {
            let renewed = self.renewed.iter().map(|entry| entry.number).collect();
            candidates.release(&renewed, &mut self.matches.matches);
            buckets.release();
            reader.release();
            room = reader.room_bytes(candidates.held_bytes()) / each;
        }
        self.looked = false;
        self.end = self.collisions.all.len();
        // Most buckets of a document have the same candidates, and a flood has the same buckets.
        let (mut new, mut counted) = (FxHashSet::<u64>::default(), vec![false; buckets.len()]);
        for (at, collision) in self.collisions.all.iter().enumerate().skip(self.next) {
            if new.len() > room && collision.row > self.collisions.all[at - 1].row {
                self.end = at;
                return Ok(());
            }
            if !std::mem::replace(&mut counted[collision.bucket as usize], true) {
                let _ = buckets.read(collision.bucket, reader)?;
                let entries = buckets.get(collision.bucket).entries.iter();
                new.extend(entries.filter(|&&number| candidates.known(number).is_none()));
            }
        }
        Ok(())
    }

    /// Look at the collisions that wait, as if all came next; some may not have to wait longer.
    fn look(&mut self, reader: &mut impl IndexReader) -> Result<(), Damaged> {
        let mut waiting = std::mem::take(&mut self.waiting);
        let mut damaged = None;
        waiting.retain(|&collision| {
            if reader.unread() >= TOGETHER {
                return true;
            }
            let path = self.visit(collision, reader);
            let pending = matches!(path, Ok(Poll::Pending));
            damaged = path.err().or(damaged.take());
            pending
        });
        self.waiting = waiting;
        damaged.map_or(Ok(()), Err)
    }

    /// Find a document's path, which changes nothing, and have what its outcome needs be read.
    fn visit(&mut self, collision: Collision, reader: &mut impl IndexReader) -> Polled<ProbePath> {
        let path = ready!(self.probe(collision, reader)?);
        match self.subject {
            Subject::Documents => {
                if let (Outcome::Absorbed { by, .. }, Some(_)) =
                    (path.outcome, self.config.rules.window)
                {
                    let column = self.column(collision);
                    ready!(self.candidates.renewed_time(by, column, reader)?);
                }
            }
            Subject::Queries { describes: false } => {}
            Subject::Queries { describes: true } => {
                for &bucket in &path.buckets[..path.probed] {
                    let entries = self.buckets.get(bucket).entries.len();
                    ready!(self.read_live(collision, bucket, entries, reader)?);
                }
            }
        }
        Ok(Poll::Ready(path))
    }

    /// Probe the buckets of a column. If something is unread, all of it is noted that is sure to be
    /// needed.
    fn probe(&mut self, collision: Collision, reader: &mut impl IndexReader) -> Polled<ProbePath> {
        self.compared.clear();
        let mut buckets = [collision.bucket; LEVELS + 1];
        let mut room = None;
        for level in 0..=LEVELS {
            if level > 0 {
                buckets[level] = self.overflow(collision, level);
            }
            if self.buckets.read(buckets[level], reader)?.is_pending() {
                // Among unlike documents, hardly any goes beyond the first overflow bucket; in a
                // flood, one that does mostly goes far. So these are read at once.
                for level in (level + 1..=LEVELS).filter(|_| level > 1) {
                    let next = self.overflow(collision, level);
                    let _ = self.buckets.read(next, reader)?;
                }
                return Ok(Poll::Pending);
            }
            let probed = level + 1;
            let full = match ready!(self.compare_all(collision, buckets[level], reader)?) {
                Comparison::Passed { full } => full,
                Comparison::Absorbed { by, equal } => {
                    let outcome = Outcome::Absorbed { level, by, equal };
                    return Ok(Poll::Ready(ProbePath { buckets, probed, outcome }));
                }
            };
            if room.is_none() && (!full || level == LEVELS) {
                room = Some(level);
            }
            // What a bucket had before is in its overflow buckets, even if it has room by now.
            let goes_on = level < LEVELS && (full || self.buckets.get(buckets[level]).has_overflow);
            if let (Some(level), false) = (room, goes_on) {
                let outcome = Outcome::Inserted { level };
                return Ok(Poll::Ready(ProbePath { buckets, probed, outcome }));
            }
        }
        unreachable!("the last overflow bucket takes every document");
    }

    /// Return the id of an overflow bucket on a document's path.
    fn overflow(&mut self, collision: Collision, level: usize) -> u32 {
        let (column, row) = (usize::from(collision.column), collision.row as usize);
        let sketch = self.batch.sketch(row, self.config.slots);
        let hash = self.batch.key(column, row);
        let key = self.config.overflow.key(column, hash, level, sketch);
        self.buckets.overflow(collision.column, key)
    }

    /// Compare a document with the entries of a bucket.
    fn compare_all(
        &mut self,
        collision: Collision,
        bucket: u32,
        reader: &mut impl IndexReader,
    ) -> Polled<Comparison> {
        let entries = self.buckets.get(bucket).entries.len();
        if entries >= self.config.leaders {
            let absorbing = if self.all_live {
                ready!(self.absorbing_entry(collision, bucket, reader)?)
            } else {
                ready!(self.read_live(collision, bucket, self.config.leaders, reader)?);
                self.absorbing_leader(collision)
            };
            if let Some((by, equal)) = absorbing {
                return Ok(Poll::Ready(Comparison::Absorbed { by, equal }));
            }
        }
        ready!(self.read_live(collision, bucket, entries, reader)?);
        if let Some((by, equal)) = self.absorbing_leader(collision) {
            return Ok(Poll::Ready(Comparison::Absorbed { by, equal }));
        }
        let full = self.live.len() >= self.config.rules.capacity;
        let mut best = None;
        for at in 0..self.live.len() {
            let candidate = self.live[at];
            let equal = self.compare(collision.row, candidate);
            if best.is_none_or(|(_, most)| equal > most) {
                best = Some((candidate, equal));
            }
        }
        let measures = &self.config.measures;
        let least = if full { measures.absorbs_similar } else { measures.absorbs };
        Ok(Poll::Ready(match best {
            Some((by, equal)) if equal >= least => Comparison::Absorbed { by, equal },
            _ => Comparison::Passed { full },
        }))
    }

    /// Return the first leader of a hot bucket, all of whose entries are live, that absorbs a
    /// document. Leaders are read one by one, then by twos and fours.
    fn absorbing_entry(
        &mut self,
        collision: Collision,
        bucket: u32,
        reader: &mut impl IndexReader,
    ) -> Polled<Option<(u32, u32)>> {
        for at in 0..self.config.leaders {
            let Poll::Ready(candidate) = self.candidate(bucket, at, reader)? else {
                for next in at + 1..self.config.leaders.min((2 * at).max(1)) {
                    let _ = self.candidate(bucket, next, reader)?;
                }
                return Ok(Poll::Pending);
            };
            let equal = self.compare(collision.row, candidate);
            if equal >= self.config.measures.absorbs_similar {
                return Ok(Poll::Ready(Some((candidate, equal))));
            }
        }
        Ok(Poll::Ready(None))
    }

    /// Return the first leader among the live entries that absorbs a document, if there are enough
    /// entries for a hot bucket.
    fn absorbing_leader(&mut self, collision: Collision) -> Option<(u32, u32)> {
        if self.live.len() < self.config.leaders {
            return None;
        }
        (0..self.config.leaders).find_map(|at| {
            let candidate = self.live[at];
            let equal = self.compare(collision.row, candidate);
            (equal >= self.config.measures.absorbs_similar).then_some((candidate, equal))
        })
    }

    /// Find the live ones among the first entries of a bucket.
    pub(super) fn read_live(
        &mut self,
        collision: Collision,
        bucket: u32,
        entries: usize,
        reader: &mut impl IndexReader,
    ) -> Polled<()> {
        self.live.clear();
        let (column, oldest) = (self.column(collision), self.oldest(collision.row));
        let mut read = Poll::Ready(());
        for at in 0..entries {
            let Poll::Ready(candidate) = self.candidate(bucket, at, reader)? else {
                read = Poll::Pending;
                continue;
            };
            match self.candidates.live(candidate, column, collision.row, oldest, reader)? {
                Poll::Ready(true) => self.live.push(candidate),
                Poll::Ready(false) => {}
                Poll::Pending => read = Poll::Pending,
            }
        }
        Ok(read)
    }

    /// Return the candidate of a bucket's entry.
    #[inline]
    fn candidate(&mut self, bucket: u32, at: usize, reader: &mut impl IndexReader) -> Polled<u32> {
        let held = self.buckets.get_mut(bucket);
        if let Some(candidate) = held.candidate(at) {
            return Ok(Poll::Ready(candidate));
        }
        let candidate = ready!(self.candidates.read(held.entries[at], reader)?);
        held.note_candidate(at, candidate);
        Ok(Poll::Ready(candidate))
    }

    #[inline]
    fn compare(&mut self, row: u32, candidate: u32) -> u32 {
        self.compared.push(candidate);
        self.candidates.equal(&self.batch, row, candidate, &self.config.measures)
    }

    /// Return the number of a collision's column.
    fn column(&self, collision: Collision) -> u8 {
        self.config.columns[usize::from(collision.column)]
    }

    /// Return the least time of an entry when the document of a row comes.
    fn oldest(&self, row: u32) -> Option<i64> {
        self.dates.oldest.as_ref().map(|oldest| oldest[row as usize])
    }

    /// Carry out what becomes of a document in a column.
    fn settle(
        &mut self,
        collision: Collision,
        path: ProbePath,
        reader: &mut impl IndexReader,
    ) -> Result<(), Damaged> {
        self.meet(collision.row);
        if let Subject::Queries { describes } = self.subject {
            return if describes { self.describe(collision, path, reader) } else { Ok(()) };
        }
        let windowed = self.config.rules.window.is_some();
        let (level, changed) = match path.outcome {
            Outcome::Absorbed { level, by, equal } => {
                self.counts.absorbed += 1;
                let similar = equal < self.config.measures.absorbs;
                self.counts.absorbed_similar += u64::from(similar);
                let bucket = path.buckets[level];
                (level, windowed && self.renew(collision, by, bucket, reader)?)
            }
            Outcome::Inserted { level } => {
                self.insert(collision, level, path.buckets[level], reader)?;
                (level, true)
            }
        };
        // With a window, that there are overflow buckets is written anew: what is older is dropped.
        for &bucket in path.buckets[..level].iter().filter(|_| changed) {
            let held = self.buckets.get_mut(bucket);
            self.counts.divided += u64::from(!held.has_overflow);
            held.changed |= windowed || !held.has_overflow;
            held.has_overflow = true;
        }
        Ok(())
    }

    /// Renew an entry to the time of a document that it absorbs; return whether that is later.
    fn renew(
        &mut self,
        collision: Collision,
        by: u32,
        bucket: u32,
        reader: &mut impl IndexReader,
    ) -> Result<bool, Damaged> {
        let column = self.column(collision);
        let Poll::Ready(time) = self.candidates.renewed_time(by, column, reader)? else {
            return Err(Damaged("what was read is gone".into()));
        };
        let own = self.dates.times[collision.row as usize];
        if self.candidates.later(own, time) == time {
            return Ok(false);
        }
        let number = self.candidates.document(by).number;
        self.candidates.renew(number, column, own);
        self.renewed.insert(Renewed { number, column, bucket });
        Ok(true)
    }

    /// Insert a document into a bucket. What is forgotten or too old leaves it, and the oldest
    /// entries, if there is no room.
    fn insert(
        &mut self,
        collision: Collision,
        level: usize,
        bucket: u32,
        reader: &mut impl IndexReader,
    ) -> Result<(), Damaged> {
        let (column, oldest) = (self.column(collision), self.oldest(collision.row));
        let (row, capacity) = (collision.row, self.config.rules.capacity);
        let Self { candidates, buckets, .. } = self;
        let held = buckets.get_mut(bucket);
        let mut kept = Vec::with_capacity(held.entries.len());
        for at in 0..held.entries.len() {
            let candidate = held.candidate(at).or_else(|| candidates.known(held.entries[at]));
            let candidate = candidate.expect("it was compared with all entries");
            if candidates.live(candidate, column, row, oldest, reader)? == Poll::Ready(true) {
                kept.push(at);
            }
        }
        let dropped = (kept.len() + 1).saturating_sub(capacity);
        self.counts.dropped += u64::from(dropped > 0);
        held.dropped |= dropped > 0;
        held.refill(&kept[dropped..], candidates.first + u64::from(row), row);
        if level < LEVELS && held.entries.len() >= capacity {
            buckets.get_mut(collision.bucket).outgrown = true;
        }
        self.inserted[row as usize] = true;
        Ok(())
    }

    /// Add the comparisons of the last probe to those of its row.
    fn meet(&mut self, row: u32) {
        self.met_by.resize(self.candidates.documents().len(), NEVER);
        for &candidate in &self.compared {
            let by = &mut self.met_by[candidate as usize];
            if *by != row {
                *by = row;
                self.met.push((candidate, self.candidates.last_equal(candidate)));
            }
        }
    }

    /// Write down the matches of all rows before one. Only the first of them has met anything.
    fn finish_rows(&mut self, end: usize) {
        let row = self.matches.starts.len() - 1;
        if row >= end {
            return;
        }
        self.counts.candidates += self.met.len() as u64;
        let matches = &mut self.matches.matches;
        let shingles = self.batch.shingles[row];
        self.candidates.add_matches(&self.config, shingles, &self.met, matches);
        let so_far = matches.len();
        self.matches.starts.resize(end + 1, so_far);
        if self.subject != Subject::Documents {
            self.finish_queries(row, end);
        }
        self.met.clear();
    }
}
