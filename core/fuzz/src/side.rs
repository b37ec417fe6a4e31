//! A shard that is driven by hand, with its store in memory.

use std::sync::Arc;

use _core::index::batch::Batch;
use _core::index::clock::Clock;
use _core::index::config::IndexConfig;
use _core::index::decision::{Decision, Matches};
use _core::index::reader::Damaged;
use _core::index::shard::plan::Plan;
use _core::index::shard::state::{Settings, Shard};
use _core::index::shard::tests::store::Memory;
use _core::index::shard::writes::Writes;

/// A shard and its store.
pub struct Side {
    settings: Settings,
    config: Arc<IndexConfig>,
    pub memory: Memory,
    pub shard: Shard,
    pub clock: Clock,
}

/// How much of a write gets into the store, before the shard is opened again.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Crash {
    Unwritten,
    WithTables,
    Written,
}

/// A match: its sequence number, how many slots are equal, the bits of the containment, the id.
pub type Shown = (u64, u16, u64, Vec<u8>);

/// What a batch came to, as far as it can be compared.
#[derive(Debug, PartialEq)]
pub struct Outcome {
    pub matches: Vec<Vec<Shown>>,
    pub clock: Clock,
    pub candidates: u64,
    pub absorbed: u64,
    pub divided: u64,
    pub repeated: u64,
    pub records: Vec<Vec<u8>>,
    pub forgotten: Vec<u64>,
    pub known: Vec<Vec<u8>>,
}

impl Side {
    pub fn new(settings: Settings, config: Arc<IndexConfig>) -> Self {
        let mut memory = Memory::default();
        let shard = memory.open(settings, 0).expect("there is nothing in it");
        Self { settings, config, memory, shard, clock: Clock::default() }
    }

    /// Open it again; `inserted` is what the store says.
    pub fn open(&mut self, inserted: u64) -> Result<(), Damaged> {
        self.shard = self.memory.open(self.settings, inserted)?;
        Ok(())
    }

    fn plan(&self, batch: &Arc<Batch>) -> Result<Plan, Damaged> {
        let mut plan = Plan::new(&self.shard, self.config.clone(), batch.clone(), &self.clock)?;
        self.read(&mut plan)?;
        Ok(plan)
    }

    fn read(&self, plan: &mut Plan) -> Result<(), Damaged> {
        loop {
            let reads = plan.poll_reads(&self.shard)?.to_vec();
            if reads.is_empty() {
                return Ok(());
            }
            plan.handle_values(&self.shard, self.memory.get(&reads))?;
        }
    }

    pub fn judge(&mut self, batch: &Arc<Batch>, crash: Option<Crash>) -> Result<Outcome, Damaged> {
        let mut plan = self.plan(batch)?;
        let decision = Decision::clone(plan.decision().expect("nothing is wanted"));
        plan.prepare();
        self.read(&mut plan)?;
        let (writes, _) = plan.write(&self.shard)?.expect("nothing is wanted");
        let inserted = writes.inserted;
        match crash {
            None => {
                self.memory.write(writes);
                self.clock = plan.apply(&mut self.shard).expect("there was a write");
            }
            Some(Crash::Written) => {
                self.memory.write(writes);
                self.clock.clone_from(&decision.dates.clock);
                self.open(inserted)?;
            }
            Some(Crash::WithTables) => {
                self.memory.write(Writes { tables: writes.tables, ..Writes::default() });
                self.open(self.shard.inserted())?;
            }
            Some(Crash::Unwritten) => self.open(self.shard.inserted())?,
        }
        Ok(Outcome {
            matches: shown(&decision.matches, batch.len()),
            clock: decision.dates.clock,
            candidates: decision.counts.candidates,
            absorbed: decision.counts.absorbed,
            divided: decision.counts.divided,
            repeated: decision.counts.repeated,
            records: decision.changes.records,
            forgotten: decision.changes.forgotten,
            known: decision.known,
        })
    }

    pub fn ask(&self, batch: &Arc<Batch>) -> Result<Vec<Vec<Shown>>, Damaged> {
        let mut query = Plan::query(&self.shard, self.config.clone(), batch.clone(), &self.clock)?;
        loop {
            let reads = query.poll_reads(&self.shard)?.to_vec();
            if reads.is_empty() {
                break;
            }
            query.handle_values(&self.shard, self.memory.get(&reads))?;
        }
        let decision = query.decision().expect("nothing is wanted");
        Ok(shown(&decision.matches, batch.len()))
    }
}

fn shown(matches: &Matches, rows: usize) -> Vec<Vec<Shown>> {
    let row = |row: usize| {
        let own = &matches.matches[matches.starts[row]..matches.starts[row + 1]];
        own.iter().map(|one| {
            let id = matches.ids[one.id.clone()].to_vec();
            (one.sequence, one.equal, one.containment.to_bits(), id)
        })
    };
    if matches.starts.is_empty() {
        return vec![Vec::new(); rows];
    }
    (0..rows).map(|at| row(at).collect()).collect()
}
