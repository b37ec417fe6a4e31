//! An index in hash maps, for tests: what a judgement sees of it is at hand at once, or never the
//! first time.

use std::collections::{HashMap, HashSet};

use rustc_hash::FxHashMap;

use super::batch::Batch;
use super::clock::Clock;
use super::court::Court;
use super::decision::Decision;
use super::record::Record;
use super::sight::{Bucket, Cell, Damaged, Seen, Sight};

/// Buckets and records in memory, which grow without bound.
#[derive(Debug, Clone, Default)]
pub struct PlainIndex {
    /// By number of the column, and key.
    pub buckets: FxHashMap<(u8, u64), Bucket>,
    pub records: Vec<Vec<u8>>,
    pub renewals: HashMap<u64, Vec<(u8, i64)>>,
    pub verdicts: HashMap<u64, Vec<u8>>,
    pub identified: HashMap<Vec<u8>, Vec<u64>>,
    pub clock: Clock,
    pub moved_below: u64,
    pub all_kept: bool,
}

impl PlainIndex {
    pub fn new() -> Self {
        Self { all_kept: true, ..Self::default() }
    }

    /// What judgements of a batch see; if `reluctant`, nothing the first time.
    pub fn sight<'a>(&'a self, court: &'a Court, batch: &'a Batch, reluctant: bool) -> Plain<'a> {
        Plain { index: self, court, batch, asked: reluctant.then(HashSet::new), noted: Vec::new() }
    }

    /// Apply a decision, which must be the last one made on this index.
    pub fn apply(&mut self, decision: &Decision, court: &Court) -> Result<(), Damaged> {
        let changes = &decision.changes;
        for cell in &changes.cells {
            let bucket = Bucket { entries: vec![cell.number], beyond: false };
            self.buckets.insert((court.columns[cell.column], cell.hash), bucket);
        }
        for one in &changes.buckets {
            let bucket = Bucket { entries: one.entries.clone(), beyond: one.beyond };
            self.buckets.insert((court.columns[one.column], one.hash), bucket);
        }
        for &number in &changes.forgotten {
            self.identified.remove(Record::unpack(&self.records[number as usize])?.id);
        }
        for number in &changes.forgotten {
            self.records[*number as usize].clear();
            self.renewals.remove(number);
            self.verdicts.remove(number);
        }
        for record in &changes.records {
            let number = self.records.len() as u64;
            let id = Record::unpack(record)?.id;
            self.identified.entry(id.to_vec()).or_default().insert(0, number);
            self.records.push(record.clone());
        }
        self.all_kept &= changes.forgotten.is_empty();
        self.renewals.extend(changes.renewals.iter().cloned());
        self.verdicts.extend(changes.verdicts.iter().cloned());
        self.clock.clone_from(&decision.dates.clock);
        Ok(())
    }
}

/// Something that was asked for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Asked {
    Bucket(usize, u64),
    Record(u64),
    Renewals(u64),
    Identified(Vec<u8>),
    Verdict(u64),
}

/// What judgements see of a plain index.
pub struct Plain<'a> {
    index: &'a PlainIndex,
    court: &'a Court,
    batch: &'a Batch,
    asked: Option<HashSet<Asked>>,
    noted: Vec<Asked>,
}

impl Plain<'_> {
    /// Read what was unread; return how much.
    pub fn read(&mut self) -> usize {
        let noted = std::mem::take(&mut self.noted);
        let count = noted.len();
        if let Some(asked) = &mut self.asked {
            asked.extend(noted);
        }
        count
    }

    fn seen(&mut self, asked: Asked) -> Seen<()> {
        if self.asked.as_ref().is_none_or(|all| all.contains(&asked)) {
            return Seen::Here(());
        }
        self.noted.push(asked);
        Seen::Unread
    }
}

impl Sight for Plain<'_> {
    fn may_exist(&mut self, cell: Cell) -> bool {
        let hash = self.batch.key(cell.column, cell.row);
        // As by a filter, some that don't exist may.
        hash.is_multiple_of(5)
            || self.index.buckets.contains_key(&(self.court.columns[cell.column], hash))
    }

    fn bucket(&mut self, cell: Cell) -> Result<Seen<Bucket>, Damaged> {
        self.finer(cell.column, self.batch.key(cell.column, cell.row))
    }

    fn finer(&mut self, column: usize, hash: u64) -> Result<Seen<Bucket>, Damaged> {
        seen!(self.seen(Asked::Bucket(column, hash)));
        let found = self.index.buckets.get(&(self.court.columns[column], hash));
        Ok(Seen::Here(found.cloned().unwrap_or_default()))
    }

    fn record(&mut self, number: u64) -> Result<Seen<&[u8]>, Damaged> {
        seen!(self.seen(Asked::Record(number)));
        let found = self.index.records.get(number as usize);
        let found = found.ok_or_else(|| Damaged(format!("document {number} has no record")))?;
        Ok(Seen::Here(found))
    }

    fn renewals(&mut self, number: u64) -> Result<Seen<Vec<(u8, i64)>>, Damaged> {
        seen!(self.seen(Asked::Renewals(number)));
        Ok(Seen::Here(self.index.renewals.get(&number).cloned().unwrap_or_default()))
    }

    fn identified(&mut self, id: &[u8]) -> Result<Seen<Vec<u64>>, Damaged> {
        seen!(self.seen(Asked::Identified(id.to_vec())));
        Ok(Seen::Here(self.index.identified.get(id).cloned().unwrap_or_default()))
    }

    fn verdict(&mut self, number: u64) -> Result<Seen<Option<Vec<u8>>>, Damaged> {
        seen!(self.seen(Asked::Verdict(number)));
        Ok(Seen::Here(self.index.verdicts.get(&number).cloned()))
    }

    fn inserted(&self) -> u64 {
        self.index.records.len() as u64
    }

    fn moved_below(&self) -> u64 {
        self.index.moved_below
    }

    fn all_kept(&self) -> bool {
        self.index.all_kept
    }
}
