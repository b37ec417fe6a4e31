//! The judging of one batch: each document after the other, each of its buckets by itself.

use std::collections::HashMap;
use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::batch::Batch;
use super::buckets::Buckets;
use super::cells::{Cells, Contested};
use super::clock::{Clock, Dated};
use super::court::Court;
use super::decision::{Counts, Decision, Match, Matches};
use super::finer::LEVELS;
use super::judged::Judged;
use super::known::{Known, NEVER};
use super::repeated;
use super::same_id::Identities;
use super::sight::{Damaged, Seen, Sight};
use super::walk::{End, Walk, Way};

/// The judging of a batch, from its beginning to the decision.
///
/// `step` goes on until something has to be read. Nothing that it sees may change meanwhile.
pub struct Judgement {
    court: Arc<Court>,
    batch: Arc<Batch>,
    dates: Dated,
    identities: Identities,
    judging: Option<Judging>,
}

impl Judgement {
    /// Begin to judge a batch; `clock` is the one before it.
    pub fn new(court: Arc<Court>, batch: Arc<Batch>, clock: &Clock) -> Result<Self, String> {
        batch.check(court.columns.len(), court.slots)?;
        let dates = Dated::of(clock, &batch.times, &court.rules);
        Ok(Self { court, batch, dates, identities: Identities::default(), judging: None })
    }

    /// Judge on; return the decision, if nothing has to be read for it any more.
    ///
    /// Once there was a decision, there is nothing to ask for.
    pub fn step(&mut self, sight: &mut impl Sight) -> Result<Seen<Decision>, Damaged> {
        let Self { court, batch, dates, identities, judging } = self;
        let judging = match judging {
            Some(judging) => judging,
            None => {
                seen!(identities.read(batch, court.rules.same_id, dates, sight)?);
                judging.insert(Judging::new(court, batch, dates, identities, sight))
            }
        };
        seen!(judging.judge(court, batch, dates, sight)?);
        let changes = seen!(judging.judged.changes(court, batch, dates, sight)?);
        let Some(Judging { judged, .. }) = self.judging.take() else {
            unreachable!("it was there")
        };
        let Judged { matches, mut counts, known, .. } = judged;
        let matches = Matches { ids: known.ids, ..matches };
        counts.repeated = identities.repeats.len() as u64;
        let matches = repeated::with_repeated(matches, batch, identities, &court.measures)?;
        let forgotten = batch.forgotten.iter().map(|one| &one.id);
        let known = forgotten.filter(|id| !identities.stored(id).is_empty()).cloned().collect();
        let dates = std::mem::take(&mut self.dates);
        Ok(Seen::Here(Decision { dates, matches, counts, changes, known }))
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
    /// How many of the contested cells were judged.
    next: usize,
    /// Where the piece ends that is judged: all its documents are whole.
    end: usize,
    /// The cells that wait for something that has to be read.
    waiting: Vec<Contested>,
    /// Whether all cells were looked at once, to find what has to be read.
    looked: bool,
    /// The comparisons of the row of the next cell so far: places, and how many slots are equal.
    met: Vec<(u32, u32)>,
    /// The row that a document was met by last, by its place.
    met_by: Vec<u32>,
    compared: Vec<u32>,
    live: Vec<u32>,
}

impl Judging {
    fn new(
        court: &Court,
        batch: &Batch,
        dates: &Dated,
        identities: &Identities,
        sight: &mut impl Sight,
    ) -> Self {
        let mut again = identities.repeats.iter().map(|&(row, _)| row).peekable();
        let rows: Vec<u32> =
            (0..batch.len() as u32).filter(|&row| again.next_if_eq(&row).is_none()).collect();
        let mut known = Known::new(court.slots, dates.clock.clone(), sight.inserted());
        known.add_batch(batch, &dates.times);
        forget(batch, identities, &rows, &mut known);
        let mut buckets = Buckets::default();
        let cells = Cells::of(batch, court.columns.len(), &rows, &mut buckets, sight);
        let judged = Judged {
            inserted: vec![false; batch.len()],
            rows,
            forgets: known.forgets(),
            known,
            buckets,
            cells,
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

    /// Judge the contested cells, in order, until something has to be read.
    fn judge(
        &mut self,
        court: &Court,
        batch: &Batch,
        dates: &Dated,
        sight: &mut impl Sight,
    ) -> Result<Seen<()>, Damaged> {
        loop {
            self.look(court, batch, dates, sight)?;
            if !self.waiting.is_empty() {
                return Ok(Seen::Unread);
            }
            loop {
                let cell = self.judged.cells.contested.get(self.next).copied();
                let end = cell.map_or(batch.len(), |cell| cell.row as usize);
                self.finish_rows(court, batch, end);
                let Some(cell) = cell else { return Ok(Seen::Here(())) };
                if self.next == self.end {
                    self.begin(court, sight)?;
                    continue;
                }
                let Seen::Here(way) = self.visit(cell, court, batch, dates, sight)? else { break };
                self.settle(cell, way, court, dates, sight)?;
                self.next += 1;
            }
            // At first, whatever has to be read is found at once. What is missing later is missing
            // because documents of the batch have filled a bucket.
            let left = &self.judged.cells.contested[self.next..self.end];
            let (stopped, buckets) = (left[0].bucket, &mut self.judged.buckets);
            let concerned = left.iter().filter(|cell| {
                !self.looked || cell.bucket == stopped || buckets.get(cell.bucket).outgrown
            });
            self.waiting = concerned.copied().collect();
            self.waiting.iter().for_each(|cell| buckets.get_mut(cell.bucket).outgrown = false);
            self.looked = true;
        }
    }

    /// Begin another piece: of so many documents as there is room to hold their candidates, at
    /// least one. If there is little, what is held goes before.
    fn begin(&mut self, court: &Court, sight: &mut impl Sight) -> Result<(), Damaged> {
        let Judged { known, buckets, renewed, matches, cells, .. } = &mut self.judged;
        let each = RECORDS_A_PAGE * (court.slots + RECORD_BYTES) + known.document_bytes();
        let mut room = sight.room_bytes(known.held_bytes()) / each;
        if room < LEAST_ROOM && known.held_bytes() > 0 {
            let renewed = renewed.iter().map(|one| one.number).collect();
            known.release(&renewed, &mut matches.matches);
            buckets.release();
            sight.release();
            room = sight.room_bytes(known.held_bytes()) / each;
        }
        self.looked = false;
        self.end = cells.contested.len();
        // Most buckets of a document have the same candidates, and a flood has the same buckets.
        let (mut new, mut counted) = (FxHashSet::<u64>::default(), vec![false; buckets.len()]);
        for (at, cell) in cells.contested.iter().enumerate().skip(self.next) {
            if new.len() > room && cell.row > cells.contested[at - 1].row {
                self.end = at;
                return Ok(());
            }
            if !std::mem::replace(&mut counted[cell.bucket as usize], true) {
                buckets.read(cell.bucket, sight)?;
                let entries = buckets.get(cell.bucket).entries.iter();
                new.extend(entries.filter(|&&number| known.place_if_known(number).is_none()));
            }
        }
        Ok(())
    }

    /// Look at the cells that wait, as if all of them came next; some may not have to wait longer.
    fn look(
        &mut self,
        court: &Court,
        batch: &Batch,
        dates: &Dated,
        sight: &mut impl Sight,
    ) -> Result<(), Damaged> {
        let mut waiting = std::mem::take(&mut self.waiting);
        let mut damaged = None;
        waiting.retain(|&cell| {
            if sight.unread() >= TOGETHER {
                return true;
            }
            let seen = self.visit(cell, court, batch, dates, sight);
            let unread = matches!(seen, Ok(Seen::Unread));
            damaged = seen.err().or(damaged.take());
            unread
        });
        self.waiting = waiting;
        damaged.map_or(Ok(()), Err)
    }

    /// Lead a document through its buckets, which don't change. What its end needs is read, too.
    fn visit(
        &mut self,
        cell: Contested,
        court: &Court,
        batch: &Batch,
        dates: &Dated,
        sight: &mut impl Sight,
    ) -> Result<Seen<Way>, Damaged> {
        let oldest = dates.oldest.as_deref();
        let mut walk = Walk {
            court,
            batch,
            oldest,
            all_live: oldest.is_none() && sight.all_kept() && !self.judged.forgets,
            known: &mut self.judged.known,
            buckets: &mut self.judged.buckets,
            sight,
            compared: &mut self.compared,
            live: &mut self.live,
        };
        let way = seen!(walk.visit(cell)?);
        if let (End::Covered { by, .. }, Some(_)) = (way.end, court.rules.window) {
            let column = court.columns[usize::from(cell.column)];
            seen!(self.judged.known.renewed_time(by, column, sight)?);
        }
        Ok(Seen::Here(way))
    }

    /// Carry out what became of a document in a column.
    fn settle(
        &mut self,
        cell: Contested,
        way: Way,
        court: &Court,
        dates: &Dated,
        sight: &mut impl Sight,
    ) -> Result<(), Damaged> {
        self.meet(cell.row);
        let judged = &mut self.judged;
        let (last, before) = way.last();
        let column = court.columns[usize::from(cell.column)];
        let changing = match way.end {
            End::Covered { by, equal, .. } => {
                judged.counts.absorbed += 1;
                judged.counts.covered += u64::from(equal < court.measures.absorbs);
                court.rules.window.is_some()
                    && judged.renew(cell.row, by, column, last, dates, sight)?
            }
            End::Inserted { level } => {
                judged.inserted[cell.row as usize] = true;
                let oldest = dates.oldest.as_ref().map(|oldest| oldest[cell.row as usize]);
                judged.insert(cell.row, column, last, oldest, court.rules.capacity, sight)?;
                if level < LEVELS && judged.buckets.get(last).entries.len() >= court.rules.capacity
                {
                    judged.buckets.get_mut(cell.bucket).outgrown = true;
                }
                true
            }
        };
        if changing {
            judged.divide(before, court.rules.window.is_some());
        }
        Ok(())
    }

    /// Add the comparisons of the last visit to those of its row.
    fn meet(&mut self, row: u32) {
        let known = &self.judged.known;
        self.met_by.resize(known.documents().len(), NEVER);
        for &place in &self.compared {
            let by = &mut self.met_by[place as usize];
            if *by != row {
                *by = row;
                self.met.push((place, known.last_equal(place)));
            }
        }
    }

    /// Write down the matches of all rows before one. Only the first of them has met anything.
    fn finish_rows(&mut self, court: &Court, batch: &Batch, end: usize) {
        let Judged { matches, counts, known, .. } = &mut self.judged;
        if matches.starts.len() > end {
            return;
        }
        if matches.starts.is_empty() {
            matches.starts.push(0);
        }
        if let Some(row) = (matches.starts.len() - 1 < end).then(|| matches.starts.len() - 1) {
            counts.candidates += self.met.len() as u64;
            let shingles = batch.shingles[row];
            matching(court, known, shingles, &mut self.met, &mut matches.matches);
            self.met.clear();
        }
        let so_far = matches.matches.len();
        matches.starts.resize(end + 1, so_far);
    }
}

/// Add the matches among comparisons, best first: most similar first, ties oldest first.
pub(super) fn matching(
    court: &Court,
    known: &Known,
    shingles: u32,
    met: &mut [(u32, u32)],
    matches: &mut Vec<Match>,
) {
    let from = matches.len();
    for &(place, equal) in met.iter() {
        let document = known.document(place);
        let containment = court.measures.share(equal, shingles, document.shingles);
        if equal >= court.measures.matches || containment > 0.0 {
            let (sequence, id) = (document.sequence, document.id.clone());
            matches.push(Match { sequence, equal: equal as u16, containment, id });
        }
    }
    let found = &mut matches[from..];
    found.sort_by_key(|one| (std::cmp::Reverse(one.equal), one.sequence));
    // A document that was renewed may have several numbers.
    let mut kept = from;
    for at in from..matches.len() {
        if kept - from == court.rules.max_matches {
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
fn forget(batch: &Batch, identities: &Identities, rows: &[u32], known: &mut Known) {
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
            known.forget(number, from);
        }
        let left = own.get_mut(&one.id[..]).into_iter();
        for rows in left {
            while let Some(row) = rows.pop_if(|row| *row < from) {
                known.forget_own(row as usize, from);
            }
        }
    }
}
