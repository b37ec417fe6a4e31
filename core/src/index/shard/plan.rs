//! Leads a batch through a shard: what has to be read for it, then the decision, then the write.
//!
//! A plan does no I/O either. It belongs to the state that the shard is in: whatever is applied
//! meanwhile ends it.

use std::sync::Arc;

use super::eras::Dates;
use super::prepare::{Decided, Prepared, Preparing};
use super::reading::{Asked, Reading};
use super::sighting::Sighting;
use super::{Shard, Wanted, Writes};
use crate::index::batch::Batch;
use crate::index::clock::Clock;
use crate::index::court::Court;
use crate::index::decision::Decision;
use crate::index::judge::Judgement;
use crate::index::query::{Answers, Query};
use crate::index::sight::{Damaged, Seen};

/// Steps in a row that need nothing and come to nothing. A few may; more would never end.
const MOST_IDLE: usize = 8;

/// The keys that must be read now, and what was read so far.
struct Rounds {
    court: Arc<Court>,
    batch: Arc<Batch>,
    reading: Reading,
    /// Shared, so that whoever asks for them needs no lock while they are copied.
    wanted: Arc<Vec<Wanted>>,
}

impl Rounds {
    fn new(shard: &Shard, court: Arc<Court>, batch: Arc<Batch>) -> Result<Self, Damaged> {
        let reading = Reading::new(shard, Asked::of(&court, &batch))?;
        Ok(Self { court, batch, reading, wanted: Arc::default() })
    }

    fn give<'v>(
        &mut self,
        shard: &Shard,
        values: impl IntoIterator<Item = Option<&'v [u8]>>,
    ) -> Result<(), Damaged> {
        self.wanted = Arc::default();
        self.reading.give(shard, Asked::of(&self.court, &self.batch), values)
    }

    /// Go on until keys have to be read, or a step has a result.
    fn go_on<T>(
        &mut self,
        shard: &Shard,
        mut step: impl FnMut(&mut Sighting) -> Result<Seen<T>, Damaged>,
    ) -> Result<Option<T>, Damaged> {
        for _ in 0..MOST_IDLE {
            if self.wanted.is_empty() {
                self.wanted = self.reading.wanted().into();
            }
            if !self.wanted.is_empty() {
                return Ok(None);
            }
            let asked = Asked::of(&self.court, &self.batch);
            if let Seen::Here(found) = step(&mut Sighting::new(shard, asked, &mut self.reading))? {
                return Ok(Some(found));
            }
        }
        Err(Damaged("a judgement waits for what is never read".into()))
    }
}

enum Stage {
    Judging(Box<Judgement>),
    Judged,
    Preparing(Box<Preparing>),
    Written(Box<Prepared>),
    /// A step has failed.
    Failed,
}

/// A batch that is judged, and the write of what is decided.
pub struct Plan {
    rounds: Rounds,
    stage: Stage,
    decision: Arc<Decision>,
    /// Whether a write is wanted, too.
    is_to_write: bool,
}

impl Plan {
    /// Look a batch up in memory. It must be of the court's shape; see `Batch::check`.
    pub fn new(
        shard: &Shard,
        court: Arc<Court>,
        batch: Arc<Batch>,
        clock: &Clock,
    ) -> Result<Self, Damaged> {
        let judgement = Judgement::new(court.clone(), batch.clone(), clock).map_err(Damaged)?;
        let stage = Stage::Judging(Box::new(judgement));
        let rounds = Rounds::new(shard, court, batch)?;
        Ok(Self { rounds, stage, decision: Arc::default(), is_to_write: false })
    }

    /// Go on as far as possible; return the keys that must be read then, by table and ascending.
    ///
    /// There are none once the batch was judged, and after `prepare` once there can be a write.
    pub fn wanted(&mut self, shard: &Shard) -> Result<&[Wanted], Damaged> {
        let mut stage = std::mem::replace(&mut self.stage, Stage::Failed);
        if let Stage::Judging(judgement) = &mut stage
            && let Some(decision) = self.rounds.go_on(shard, |sight| judgement.step(sight))?
        {
            self.decision = decision.into();
            stage = Stage::Judged;
        }
        if let (Stage::Judged, true) = (&stage, self.is_to_write) {
            stage = Stage::Preparing(Box::new(Preparing::new(
                shard,
                &self.rounds.reading,
                self.decided(),
            )?));
        }
        if let (Stage::Preparing(preparing), true) = (&mut stage, self.open().is_empty()) {
            self.rounds.wanted = preparing.wanted().into();
        }
        self.stage = stage;
        Ok(&self.rounds.wanted)
    }

    /// The keys that `wanted` returned last, whose values `give` takes.
    pub fn open(&self) -> &Arc<Vec<Wanted>> {
        &self.rounds.wanted
    }

    /// Take the values of the keys that `wanted` returned last, in their order.
    pub fn give<'v>(
        &mut self,
        shard: &Shard,
        values: impl IntoIterator<Item = Option<&'v [u8]>>,
    ) -> Result<(), Damaged> {
        let given = match &mut self.stage {
            Stage::Preparing(preparing) => {
                self.rounds.wanted = Arc::default();
                preparing.give(values)
            }
            _ => self.rounds.give(shard, values),
        };
        given.inspect_err(|_| self.stage = Stage::Failed)
    }

    /// The decision, once nothing is wanted for it.
    pub fn decision(&self) -> Option<&Arc<Decision>> {
        match self.stage {
            Stage::Judging(_) | Stage::Failed => None,
            Stage::Judged | Stage::Preparing(_) | Stage::Written(_) => Some(&self.decision),
        }
    }

    fn decided(&self) -> Decided<'_> {
        let dates = &self.decision.dates;
        let dates = Dates { now: dates.clock.now, latest: dates.latest };
        let columns = &self.rounds.court.columns;
        Decided { columns, changes: &self.decision.changes, dates }
    }

    /// Have the write of the decision prepared, too.
    pub fn prepare(&mut self) {
        self.is_to_write = true;
    }

    /// Return the write, and the clock after it; none if something has to be read before, or if it
    /// was returned.
    pub fn write(&mut self, shard: &Shard) -> Result<Option<(Writes, &Clock)>, Damaged> {
        self.prepare();
        if !self.wanted(shard)?.is_empty() {
            return Ok(None);
        }
        match std::mem::replace(&mut self.stage, Stage::Failed) {
            Stage::Preparing(preparing) => {
                let made = preparing.finish(shard, &self.rounds.reading, self.decided())?;
                let (writes, prepared) = made;
                self.stage = Stage::Written(Box::new(prepared));
                Ok(Some((writes, &self.decision.dates.clock)))
            }
            other => {
                self.stage = other;
                Ok(None)
            }
        }
    }

    /// About how many bytes the next step works on beside those of the batch.
    pub fn weight(&self, shard: &Shard) -> usize {
        match &self.stage {
            Stage::Judging(_) | Stage::Failed => self.rounds.reading.given_bytes(),
            Stage::Judged => 0,
            Stage::Preparing(preparing) => preparing.weight(shard, self.decided()),
            Stage::Written(prepared) => prepared.weight(shard),
        }
    }

    /// Whether there is a write, which may be applied.
    pub fn is_written(&self) -> bool {
        matches!(self.stage, Stage::Written(_))
    }

    /// Apply the write, which is in the store; return the clock after it, or none if there is no
    /// write.
    pub fn apply(self, shard: &mut Shard) -> Option<Clock> {
        let Stage::Written(prepared) = self.stage else { return None };
        shard.apply(self.rounds.reading, *prepared);
        Some(self.decision.dates.clock.clone())
    }
}

/// Queries, which change nothing.
pub struct Inquiry {
    rounds: Rounds,
    query: Query,
    answers: Option<Arc<Answers>>,
}

impl Inquiry {
    /// Look queries up in memory. The batch must be of the court's shape; see `Batch::check`.
    pub fn new(
        shard: &Shard,
        court: Arc<Court>,
        batch: Arc<Batch>,
        clock: &Clock,
    ) -> Result<Self, Damaged> {
        let query = Query::new(court.clone(), batch.clone(), clock).map_err(Damaged)?;
        Ok(Self { rounds: Rounds::new(shard, court, batch)?, query, answers: None })
    }

    /// Go on as far as possible; return the keys that must be read then: none once there are answers.
    pub fn wanted(&mut self, shard: &Shard) -> Result<&[Wanted], Damaged> {
        if self.answers.is_none() {
            let Self { rounds, query, .. } = self;
            self.answers = rounds.go_on(shard, |sighting| query.step(sighting))?.map(Arc::new);
        }
        Ok(&self.rounds.wanted)
    }

    /// The keys that `wanted` returned last, whose values `give` takes.
    pub fn open(&self) -> &Arc<Vec<Wanted>> {
        &self.rounds.wanted
    }

    /// About how many bytes the next step works on beside those of the batch.
    pub fn weight(&self) -> usize {
        self.rounds.reading.given_bytes()
    }

    /// Take the values of the keys that `wanted` returned last, in their order.
    pub fn give<'v>(
        &mut self,
        shard: &Shard,
        values: impl IntoIterator<Item = Option<&'v [u8]>>,
    ) -> Result<(), Damaged> {
        self.rounds.give(shard, values)
    }

    /// The answers, once nothing is wanted.
    pub fn answers(&self) -> Option<&Arc<Answers>> {
        self.answers.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::rules::{Rules, SameId};
    use crate::index::shard::Settings;
    use crate::index::shard::memory::Memory;

    const COLUMNS: usize = 6;
    const SLOTS: usize = 16;
    const FAMILIES: u64 = 40;
    const CAPACITY: u64 = 8;

    fn mixed(number: u64) -> u64 {
        let number = (number ^ number >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        (number ^ number >> 27).wrapping_mul(0x94D0_49BB_1331_11EB)
    }

    /// One document of each family, which shares the keys of one column with all of its family.
    fn batch(first: u64, shares: impl Fn(usize) -> bool) -> Arc<Batch> {
        let numbers = || first..first + FAMILIES;
        let key = |column: usize, number: u64| {
            let family = number % FAMILIES;
            mixed(if shares(column) { family + 1 } else { number << 20 } ^ (column as u64) << 60)
        };
        Arc::new(Batch {
            sequences: numbers().collect(),
            times: vec![0; FAMILIES as usize],
            ids: numbers().map(u64::to_le_bytes).collect(),
            shingles: vec![9; FAMILIES as usize],
            keys: (0..COLUMNS).flat_map(|c| numbers().map(move |n| key(c, n))).collect(),
            sketches: numbers()
                .flat_map(|n| (0..SLOTS as u64).map(move |slot| mixed(n << 8 | slot) as u8))
                .collect(),
            forgotten: Vec::new(),
        })
    }

    #[test]
    fn a_batch_that_meets_full_buckets_takes_no_more_memory_than_it_may() {
        let rules = Rules {
            threshold: 0.5,
            absorb: 0.9,
            capacity: CAPACITY as usize,
            max_matches: 4,
            window: None,
            same_id: SameId::Duplicate,
            containment: None,
            containment_error: 0.1,
            bands: 0,
            rows: 0,
            crowded: CAPACITY as usize,
            now_rank: 1,
            now_of: 1,
            now_least: 1,
        };
        let court = Arc::new(Court::new(rules, (0..COLUMNS as u8).collect(), SLOTS).unwrap());
        let settings = Settings { run_documents: 1 << 12, window: None };
        let (mut memory, mut clock) = (Memory::default(), Clock::default());
        let mut shard = memory.open(settings, 0).unwrap();
        for part in 0..COLUMNS as u64 * CAPACITY {
            let some = batch(FAMILIES * part, |column| column as u64 == part / CAPACITY);
            let mut plan = Plan::new(&shard, court.clone(), some, &clock).unwrap();
            plan.prepare();
            while let wanted @ [_, ..] = &plan.wanted(&shard).unwrap().to_vec()[..] {
                plan.give(&shard, memory.get(wanted)).unwrap();
            }
            let (writes, after) = plan.write(&shard).unwrap().unwrap();
            clock = after.clone();
            memory.write(writes);
            plan.apply(&mut shard);
        }
        let last = batch(FAMILIES * COLUMNS as u64 * CAPACITY, |_| true);
        let mut found = Vec::new();
        for most in [usize::MAX, 30_000] {
            shard.limit(0, 0, most);
            let mut plan = Plan::new(&shard, court.clone(), last.clone(), &clock).unwrap();
            let mut held = 0;
            while let wanted @ [_, ..] = &plan.wanted(&shard).unwrap().to_vec()[..] {
                plan.give(&shard, memory.get(wanted)).unwrap();
                held = held.max(plan.rounds.reading.held_bytes());
            }
            found.push((held, plan.decision().unwrap().counts));
        }
        assert_eq!(found[0].1, found[1].1);
        assert_eq!(found[0].1.candidates, FAMILIES * COLUMNS as u64 * CAPACITY);
        assert!(found[0].0 > 100_000 && found[1].0 < 2 * 30_000, "{found:?}");
    }
}
