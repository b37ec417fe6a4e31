//! Leads a batch through a shard: what has to be read for it, then the decision, then the write.
//!
//! A plan does no I/O either. It belongs to the state that the shard is in: whatever is applied
//! meanwhile ends it.

use std::sync::Arc;

use super::commit::Commit;
use super::fetch::{BatchKeys, Fetcher};
use super::reader::ShardReader;
use super::reads::ReadKey;
use super::state::Shard;
use super::write::PendingWrite;
use super::writes::Writes;
use crate::index::batch::Batch;
use crate::index::clock::Clock;
use crate::index::config::IndexConfig;
use crate::index::decision::Decision;
use crate::index::judge::Judge;
use crate::index::reader::{Damaged, Poll};

/// Steps in a row that need nothing and come to nothing. A few may; more would never end.
const MOST_IDLE: usize = 8;

enum Stage {
    Judging(Box<Judge>),
    Judged,
    Committing(Box<Commit>),
    Written(Box<PendingWrite>),
    /// A step has failed.
    Failed,
}

/// A batch that is judged, and the write of what is decided; or queries, which have no write.
pub struct Plan {
    config: Arc<IndexConfig>,
    batch: Arc<Batch>,
    fetcher: Fetcher,
    /// The keys that must be read now. They are shared, so that whoever asks for them needs no lock
    /// while they are copied.
    reads: Arc<Vec<ReadKey>>,
    stage: Stage,
    decision: Arc<Decision>,
    /// Whether a write is to be made, too.
    is_to_write: bool,
}

impl Plan {
    /// Look a batch up in memory. It must be of the configuration's shape; see `Batch::check`.
    pub fn new(
        shard: &Shard,
        config: Arc<IndexConfig>,
        batch: Arc<Batch>,
        clock: &Clock,
    ) -> Result<Self, Damaged> {
        let judge = Judge::new(config.clone(), batch.clone(), clock);
        Self::of(shard, config, batch, judge)
    }

    /// The same of queries, which change nothing.
    pub fn query(
        shard: &Shard,
        config: Arc<IndexConfig>,
        batch: Arc<Batch>,
        clock: &Clock,
    ) -> Result<Self, Damaged> {
        let judge = Judge::query(config.clone(), batch.clone(), clock, true);
        Self::of(shard, config, batch, judge)
    }

    fn of(
        shard: &Shard,
        config: Arc<IndexConfig>,
        batch: Arc<Batch>,
        judge: Result<Judge, String>,
    ) -> Result<Self, Damaged> {
        let stage = Stage::Judging(Box::new(judge.map_err(Damaged)?));
        let fetcher = Fetcher::new(shard, BatchKeys::of(&config, &batch))?;
        let (reads, decision) = (Arc::default(), Arc::default());
        Ok(Self { config, batch, fetcher, reads, stage, decision, is_to_write: false })
    }

    /// Go on as far as possible; return the keys that must be read then, by table and ascending.
    ///
    /// There are none once the batch was judged, and after `prepare` once there can be a write.
    pub fn poll_reads(&mut self, shard: &Shard) -> Result<&[ReadKey], Damaged> {
        let stage = std::mem::replace(&mut self.stage, Stage::Failed);
        self.stage = self.advance(shard, stage)?;
        Ok(&self.reads)
    }

    fn advance(&mut self, shard: &Shard, mut stage: Stage) -> Result<Stage, Damaged> {
        for _ in 0..MOST_IDLE {
            if self.reads.is_empty() {
                self.reads = self.fetcher.poll_reads();
            }
            if !self.reads.is_empty() {
                return Ok(stage);
            }
            match &mut stage {
                Stage::Judging(judge) => {
                    let batch = BatchKeys::of(&self.config, &self.batch);
                    let mut reader = ShardReader::new(shard, batch, &mut self.fetcher);
                    if let Poll::Ready(decision) = judge.step(&mut reader)? {
                        self.decision = decision.into();
                        stage = Stage::Judged;
                    }
                }
                Stage::Judged if self.is_to_write => {
                    let Self { fetcher, config, decision, .. } = self;
                    let commit = Commit::new(shard, fetcher, &config.columns, decision)?;
                    stage = Stage::Committing(Box::new(commit));
                }
                Stage::Committing(commit) => {
                    if commit.poll(shard, &mut self.fetcher)?.is_ready() {
                        return Ok(stage);
                    }
                }
                Stage::Judged | Stage::Written(_) | Stage::Failed => return Ok(stage),
            }
        }
        Err(Damaged("a plan waits for what is never read".into()))
    }

    /// The keys that `poll_reads` returned last, whose values `handle_values` takes.
    pub fn open(&self) -> &Arc<Vec<ReadKey>> {
        &self.reads
    }

    /// Take the values of the keys that `poll_reads` returned last, in their order.
    pub fn handle_values<'v>(
        &mut self,
        shard: &Shard,
        values: impl IntoIterator<Item = Option<&'v [u8]>>,
    ) -> Result<(), Damaged> {
        self.reads = Arc::default();
        let batch = BatchKeys::of(&self.config, &self.batch);
        let taken = self.fetcher.handle_values(shard, batch, values);
        taken.inspect_err(|_| self.stage = Stage::Failed)
    }

    /// The decision, once nothing has to be read for it.
    pub fn decision(&self) -> Option<&Arc<Decision>> {
        match self.stage {
            Stage::Judging(_) | Stage::Failed => None,
            Stage::Judged | Stage::Committing(_) | Stage::Written(_) => Some(&self.decision),
        }
    }

    /// Have the write of the decision prepared, too.
    pub fn prepare(&mut self) {
        self.is_to_write = true;
    }

    /// Return the write, and the clock after it; none if something has to be read before, or if it
    /// was returned.
    pub fn write(&mut self, shard: &Shard) -> Result<Option<(Writes, &Clock)>, Damaged> {
        self.prepare();
        if !self.poll_reads(shard)?.is_empty() {
            return Ok(None);
        }
        match std::mem::replace(&mut self.stage, Stage::Failed) {
            Stage::Committing(commit) => {
                let Self { fetcher, config, decision, .. } = self;
                let made = commit.finish(shard, fetcher, &config.columns, decision)?;
                let (writes, pending) = made;
                self.stage = Stage::Written(Box::new(pending));
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
            Stage::Judging(_) | Stage::Failed => self.fetcher.reads.given_bytes,
            Stage::Judged => 0,
            Stage::Committing(commit) => {
                self.fetcher.reads.given_bytes + commit.weight(shard, &self.decision)
            }
            Stage::Written(pending) => pending.weight(shard),
        }
    }

    /// Whether there is a write, which may be applied.
    pub fn is_written(&self) -> bool {
        matches!(self.stage, Stage::Written(_))
    }

    /// Apply the write, which is in the store; return the clock after it, or none if there is no
    /// write.
    pub fn apply(self, shard: &mut Shard) -> Option<Clock> {
        let Stage::Written(pending) = self.stage else { return None };
        shard.apply(self.fetcher, *pending);
        Some(self.decision.dates.clock.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::rules::{Rules, SameId};
    use crate::index::shard::state::Settings;
    use crate::index::shard::tests::store::Memory;

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
        let config =
            Arc::new(IndexConfig::new(rules, (0..COLUMNS as u8).collect(), SLOTS).unwrap());
        let settings = Settings { run_documents: 1 << 12, window: None };
        let (mut memory, mut clock) = (Memory::default(), Clock::default());
        let mut shard = memory.open(settings, 0).unwrap();
        for part in 0..COLUMNS as u64 * CAPACITY {
            let some = batch(FAMILIES * part, |column| column as u64 == part / CAPACITY);
            let mut plan = Plan::new(&shard, config.clone(), some, &clock).unwrap();
            plan.prepare();
            while let reads @ [_, ..] = &plan.poll_reads(&shard).unwrap().to_vec()[..] {
                plan.handle_values(&shard, memory.get(reads)).unwrap();
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
            let mut plan = Plan::new(&shard, config.clone(), last.clone(), &clock).unwrap();
            let mut held = 0;
            while let reads @ [_, ..] = &plan.poll_reads(&shard).unwrap().to_vec()[..] {
                plan.handle_values(&shard, memory.get(reads)).unwrap();
                held = held.max(plan.fetcher.held_bytes());
            }
            found.push((held, plan.decision().unwrap().counts));
        }
        assert_eq!(found[0].1, found[1].1);
        assert_eq!(found[0].1.candidates, FAMILIES * COLUMNS as u64 * CAPACITY);
        assert!(found[0].0 > 100_000 && found[1].0 < 2 * 30_000, "{found:?}");
    }
}
