//! The judging of one batch: each document after the other, each of its buckets by itself.

use std::collections::HashMap;
use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::batch::Batch;
use super::buckets::Buckets;
use super::candidates::{Candidates, NEVER};
use super::clock::{Clock, Dated};
use super::collisions::{Collision, Collisions};
use super::config::IndexConfig;
use super::decision::{Counts, Decision, Match, Matches};
use super::ids::Identities;
use super::judged::Judged;
use super::overflow::LEVELS;
use super::reader::{Damaged, IndexReader, Poll};
use super::repeated;
use super::walk::{Outcome, Probe, ProbePath};

/// The judging of a batch, from its beginning to the decision.
///
/// `step` goes on until something has to be read. Nothing that it sees may change meanwhile.
pub struct Judgement {
    config: Arc<IndexConfig>,
    batch: Arc<Batch>,
    dates: Dated,
    identities: Identities,
    judging: Option<Judging>,
}

impl Judgement {
    /// Begin to judge a batch; `clock` is the one before it.
    pub fn new(config: Arc<IndexConfig>, batch: Arc<Batch>, clock: &Clock) -> Result<Self, String> {
        batch.check(config.columns.len(), config.slots)?;
        let dates = Dated::of(clock, &batch.times, &config.rules);
        Ok(Self { config, batch, dates, identities: Identities::default(), judging: None })
    }

    /// Judge on; return the decision, if nothing has to be read for it any more.
    ///
    /// Once there was a decision, there is nothing to ask for.
    pub fn step(&mut self, reader: &mut impl IndexReader) -> Result<Poll<Decision>, Damaged> {
        let Self { config, batch, dates, identities, judging } = self;
        let judging = match judging {
            Some(judging) => judging,
            None => {
                ready!(identities.read(batch, config.rules.same_id, dates, reader)?);
                judging.insert(Judging::new(config, batch, dates, identities, reader))
            }
        };
        ready!(judging.judge(config, batch, dates, reader)?);
        let changes = ready!(judging.judged.changes(config, batch, dates, reader)?);
        let Some(Judging { judged, .. }) = self.judging.take() else {
            unreachable!("it was there")
        };
        let Judged { matches, mut counts, candidates, .. } = judged;
        let matches = Matches { ids: candidates.ids, ..matches };
        counts.repeated = identities.repeats.len() as u64;
        let matches = repeated::with_repeated(matches, batch, identities, &config.measures)?;
        let forgotten = batch.forgotten.iter().map(|one| &one.id);
        let known = forgotten.filter(|id| !identities.stored(id).is_empty()).cloned().collect();
        let dates = std::mem::take(&mut self.dates);
        Ok(Poll::Ready(Decision { dates, matches, counts, changes, known }))
    }
}

/// The least that is read at a time, so that few rounds are needed.
const TOGETHER: usize = 4096;
/// A candidate is read with seven others, each some bytes longer than its sketch.
const RECORDS_A_PAGE: usize = 8;
const RECORD_BYTES: usize = 60;
/// How many candidates are worth a piece of their own.
const LEAST_ROOM: usize = 4096;

/// The judging of those documents of a batch that were not sent again.
///
/// It goes piece by piece: of some documents, whatever has to be read is found at once, as far as
/// that is not too much to hold. They are judged, and their candidates are let go. A document that
/// meets full buckets has hundreds of candidates, so those of a whole batch may be gigabytes.
struct Judging {
    judged: Judged,
    /// How many of the in collision postings were judged.
    next: usize,
    /// Where the piece ends that is judged: all its documents are whole.
    end: usize,
    /// The postings that wait for something that has to be read.
    waiting: Vec<Collision>,
    /// Whether all postings were looked at once, to find what has to be read.
    looked: bool,
    /// The comparisons of the row of the next posting so far: places, and how many slots are equal.
    met: Vec<(u32, u32)>,
    /// The row that a document was met by last, by its place.
    met_by: Vec<u32>,
    compared: Vec<u32>,
    live: Vec<u32>,
}

impl Judging {
    fn new(
        config: &IndexConfig,
        batch: &Batch,
        dates: &Dated,
        identities: &Identities,
        reader: &mut impl IndexReader,
    ) -> Self {
        let mut again = identities.repeats.iter().map(|&(row, _)| row).peekable();
        let rows: Vec<u32> =
            (0..batch.len() as u32).filter(|&row| again.next_if_eq(&row).is_none()).collect();
        let mut candidates = Candidates::new(config.slots, dates.clock.clone(), reader.inserted());
        candidates.add_batch(batch, &dates.times);
        forget(batch, identities, &rows, &mut candidates);
        let mut buckets = Buckets::default();
        let postings = Collisions::of(batch, config.columns.len(), &rows, &mut buckets, reader);
        let judged = Judged {
            inserted: vec![false; batch.len()],
            rows,
            forgets: candidates.forgets(),
            candidates,
            buckets,
            postings,
            renewed: FxHashSet::default(),
            counts: Counts::default(),
            matches: Matches::default(),
        };
        Self {
            end: 0,
            judged,
            next: 0,
            waiting: Vec::new(),
            looked: false,
            met: Vec::new(),
            met_by: Vec::new(),
            compared: Vec::new(),
            live: Vec::new(),
        }
    }

    /// Judge the in collision postings, in order, until something has to be read.
    fn judge(
        &mut self,
        config: &IndexConfig,
        batch: &Batch,
        dates: &Dated,
        reader: &mut impl IndexReader,
    ) -> Result<Poll<()>, Damaged> {
        loop {
            self.look(config, batch, dates, reader)?;
            if !self.waiting.is_empty() {
                return Ok(Poll::Pending);
            }
            loop {
                let posting = self.judged.postings.collisions.get(self.next).copied();
                let end = posting.map_or(batch.len(), |posting| posting.row as usize);
                self.finish_rows(config, batch, end);
                let Some(posting) = posting else { return Ok(Poll::Ready(())) };
                if self.next == self.end {
                    self.begin(config, reader)?;
                    continue;
                }
                let Poll::Ready(path) = self.visit(posting, config, batch, dates, reader)? else {
                    break;
                };
                self.settle(posting, path, config, dates, reader)?;
                self.next += 1;
            }
            // At first, whatever has to be read is found at once. What is missing later is missing
            // because documents of the batch have filled a bucket.
            let left = &self.judged.postings.collisions[self.next..self.end];
            let (stopped, buckets) = (left[0].bucket, &mut self.judged.buckets);
            let concerned = left.iter().filter(|posting| {
                !self.looked || posting.bucket == stopped || buckets.get(posting.bucket).outgrown
            });
            self.waiting = concerned.copied().collect();
            self.waiting
                .iter()
                .for_each(|posting| buckets.get_mut(posting.bucket).outgrown = false);
            self.looked = true;
        }
    }

    /// Begin another piece: of so many documents as there is room to hold their candidates, at
    /// least one. If there is little, what is held goes before.
    fn begin(
        &mut self,
        config: &IndexConfig,
        reader: &mut impl IndexReader,
    ) -> Result<(), Damaged> {
        let Judged { candidates, buckets, renewed, matches, postings, .. } = &mut self.judged;
        let each = RECORDS_A_PAGE * (config.slots + RECORD_BYTES) + candidates.document_bytes();
        let mut room = reader.room_bytes(candidates.held_bytes()) / each;
        if room < LEAST_ROOM && candidates.held_bytes() > 0 {
            let renewed = renewed.iter().map(|one| one.number).collect();
            candidates.release(&renewed, &mut matches.matches);
            buckets.release();
            reader.release();
            room = reader.room_bytes(candidates.held_bytes()) / each;
        }
        self.looked = false;
        self.end = postings.collisions.len();
        // Most buckets of a document have the same candidates, and a flood has the same buckets.
        let (mut new, mut counted) = (FxHashSet::<u64>::default(), vec![false; buckets.len()]);
        for (at, posting) in postings.collisions.iter().enumerate().skip(self.next) {
            if new.len() > room && posting.row > postings.collisions[at - 1].row {
                self.end = at;
                return Ok(());
            }
            if !std::mem::replace(&mut counted[posting.bucket as usize], true) {
                let _ = buckets.read(posting.bucket, reader)?;
                let entries = buckets.get(posting.bucket).entries.iter();
                new.extend(entries.filter(|&&number| candidates.place_if_known(number).is_none()));
            }
        }
        Ok(())
    }

    /// Look at the postings that wait, as if all of them came next; some may not have to wait longer.
    fn look(
        &mut self,
        config: &IndexConfig,
        batch: &Batch,
        dates: &Dated,
        reader: &mut impl IndexReader,
    ) -> Result<(), Damaged> {
        let mut waiting = std::mem::take(&mut self.waiting);
        let mut damaged = None;
        waiting.retain(|&posting| {
            if reader.unread() >= TOGETHER {
                return true;
            }
            let seen = self.visit(posting, config, batch, dates, reader);
            let unread = matches!(seen, Ok(Poll::Pending));
            damaged = seen.err().or(damaged.take());
            unread
        });
        self.waiting = waiting;
        damaged.map_or(Ok(()), Err)
    }

    /// Lead a document through its buckets, which don't change. What its end needs is read, too.
    fn visit(
        &mut self,
        posting: Collision,
        config: &IndexConfig,
        batch: &Batch,
        dates: &Dated,
        reader: &mut impl IndexReader,
    ) -> Result<Poll<ProbePath>, Damaged> {
        let oldest = dates.oldest.as_deref();
        let mut probe = Probe {
            config,
            batch,
            oldest,
            all_live: oldest.is_none() && reader.all_kept() && !self.judged.forgets,
            candidates: &mut self.judged.candidates,
            buckets: &mut self.judged.buckets,
            reader,
            compared: &mut self.compared,
            live: &mut self.live,
        };
        let path = ready!(probe.visit(posting)?);
        if let (Outcome::Absorbed { by, .. }, Some(_)) = (path.end, config.rules.window) {
            let column = config.columns[usize::from(posting.column)];
            ready!(self.judged.candidates.renewed_time(by, column, reader)?);
        }
        Ok(Poll::Ready(path))
    }

    /// Carry out what became of a document in a column.
    fn settle(
        &mut self,
        posting: Collision,
        path: ProbePath,
        config: &IndexConfig,
        dates: &Dated,
        reader: &mut impl IndexReader,
    ) -> Result<(), Damaged> {
        self.meet(posting.row);
        let judged = &mut self.judged;
        let (last, before) = path.last();
        let column = config.columns[usize::from(posting.column)];
        let changing = match path.end {
            Outcome::Absorbed { by, equal, .. } => {
                judged.counts.absorbed += 1;
                judged.counts.absorbed_similar += u64::from(equal < config.measures.absorbs);
                config.rules.window.is_some()
                    && judged.renew(posting.row, by, column, last, dates, reader)?
            }
            Outcome::Inserted { level } => {
                judged.inserted[posting.row as usize] = true;
                let oldest = dates.oldest.as_ref().map(|oldest| oldest[posting.row as usize]);
                judged.insert(posting.row, column, last, oldest, config.rules.capacity, reader)?;
                if level < LEVELS && judged.buckets.get(last).entries.len() >= config.rules.capacity
                {
                    judged.buckets.get_mut(posting.bucket).outgrown = true;
                }
                true
            }
        };
        if changing {
            judged.divide(before, config.rules.window.is_some());
        }
        Ok(())
    }

    /// Add the comparisons of the last visit to those of its row.
    fn meet(&mut self, row: u32) {
        let candidates = &self.judged.candidates;
        self.met_by.resize(candidates.documents().len(), NEVER);
        for &place in &self.compared {
            let by = &mut self.met_by[place as usize];
            if *by != row {
                *by = row;
                self.met.push((place, candidates.last_equal(place)));
            }
        }
    }

    /// Write down the matches of all rows before one. Only the first of them has met anything.
    fn finish_rows(&mut self, config: &IndexConfig, batch: &Batch, end: usize) {
        let Judged { matches, counts, candidates, .. } = &mut self.judged;
        if matches.starts.len() > end {
            return;
        }
        if matches.starts.is_empty() {
            matches.starts.push(0);
        }
        if let Some(row) = (matches.starts.len() - 1 < end).then(|| matches.starts.len() - 1) {
            counts.candidates += self.met.len() as u64;
            let shingles = batch.shingles[row];
            matching(config, candidates, shingles, &mut self.met, &mut matches.matches);
            self.met.clear();
        }
        let so_far = matches.matches.len();
        matches.starts.resize(end + 1, so_far);
    }
}

/// Add the matches among comparisons, best first: most similar first, ties oldest first.
pub(super) fn matching(
    config: &IndexConfig,
    candidates: &Candidates,
    shingles: u32,
    met: &mut [(u32, u32)],
    matches: &mut Vec<Match>,
) {
    let from = matches.len();
    for &(place, equal) in met.iter() {
        let document = candidates.document(place);
        let containment = config.measures.share(equal, shingles, document.shingles);
        if equal >= config.measures.matches || containment > 0.0 {
            let (sequence, id) = (document.sequence, document.id.clone());
            matches.push(Match { sequence, equal: equal as u16, containment, id });
        }
    }
    let found = &mut matches[from..];
    found.sort_by_key(|one| (std::cmp::Reverse(one.equal), one.sequence));
    // A document that was renewed may have several numbers.
    let mut kept = from;
    for at in from..matches.len() {
        if kept - from == config.rules.max_matches {
            break;
        }
        if kept == from || matches[kept - 1].sequence != matches[at].sequence {
            matches.swap(kept, at);
            kept += 1;
        }
    }
    matches.truncate(kept);
}

/// Note from which rows on documents are forgotten: those of the index, and of the batch before.
fn forget(batch: &Batch, identities: &Identities, rows: &[u32], candidates: &mut Candidates) {
    if identities.forgotten.is_empty() {
        return;
    }
    let mut own: HashMap<&[u8], Vec<u32>> =
        identities.forgotten.iter().map(|one| (&one.id[..], Vec::new())).collect();
    for &row in rows.iter().rev() {
        if let Some(rows) = own.get_mut(batch.ids.get(row as usize)) {
            rows.push(row);
        }
    }
    for one in &identities.forgotten {
        let from = one.row as u32;
        for &number in identities.stored(&one.id) {
            candidates.forget(number, from);
        }
        let left = own.get_mut(&one.id[..]).into_iter();
        for rows in left {
            while let Some(row) = rows.pop_if(|row| *row < from) {
                candidates.forget_own(row as usize, from);
            }
        }
    }
}
