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
        let filtered = self.asked.is_some() && hash.is_multiple_of(5);
        filtered || self.index.buckets.contains_key(&(self.court.columns[cell.column], hash))
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::index::clock::NO_TIME;
    use crate::index::judge::Judgement;
    use crate::index::rules::{Rules, SameId};

    const SLOTS: usize = 16;

    struct Chance(u64);

    impl Chance {
        fn below(&mut self, end: u64) -> u64 {
            self.0 = self.0.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
            (self.0 >> 33) % end
        }
    }

    fn court(same_id: SameId, window: Option<i64>) -> Arc<Court> {
        let rules = Rules {
            threshold: 0.6,
            absorb: 0.9,
            capacity: 3,
            max_matches: 4,
            window,
            same_id,
            containment: None,
            containment_error: 0.1,
            bands: 3,
            rows: 4,
            crowded: 2,
            now_rank: 2,
            now_of: 5,
            now_least: 4,
        };
        Arc::new(Court::new(rules, vec![0, 2, 3], SLOTS).expect("good rules"))
    }

    /// Documents of few texts, keys and ids.
    fn batch(first: u64, chance: &mut Chance) -> Arc<Batch> {
        let rows = 20;
        let times = |_| match chance.below(9) {
            0 => NO_TIME,
            late => (first * 3) as i64 - 40 * (late as i64 - 6),
        };
        Arc::new(Batch {
            sequences: (first..first + rows).collect(),
            times: (0..rows).map(times).collect(),
            ids: (0..rows).map(|_| chance.below(60).to_le_bytes()).collect(),
            shingles: vec![9; rows as usize],
            keys: (0..3 * rows).map(|_| chance.below(3)).collect(),
            sketches: (0..rows as usize * SLOTS).map(|_| chance.below(5) as u8 / 4).collect(),
            forgotten: Vec::new(),
        })
    }

    fn judged(
        index: &PlainIndex,
        court: &Arc<Court>,
        batch: &Arc<Batch>,
        reluctant: bool,
    ) -> Result<Decision, Damaged> {
        let mut judgement =
            Judgement::new(court.clone(), batch.clone(), &index.clock).expect("a good batch");
        let mut sight = index.sight(court, batch, reluctant);
        loop {
            if let Seen::Here(decision) = judgement.step(&mut sight)? {
                return Ok(decision);
            }
            assert!(sight.read() > 0, "something unread was asked for");
        }
    }

    /// The sequence numbers and ids of all matches.
    fn named(decision: &Decision) -> Vec<(u64, &[u8])> {
        let matches = &decision.matches;
        matches.matches.iter().map(|one| (one.sequence, &matches.ids[one.id.clone()])).collect()
    }

    const ALL: [SameId; 3] = [SameId::Duplicate, SameId::Replace, SameId::Ignore];

    #[test]
    fn what_has_to_be_read_first_changes_nothing() {
        for (same_id, window) in ALL.into_iter().flat_map(|one| [(one, None), (one, Some(200))]) {
            let (court, mut index, mut chance) =
                (court(same_id, window), PlainIndex::new(), Chance(1));
            for number in 0..30 {
                let batch = batch(20 * number, &mut chance);
                index.moved_below = index.records.len() as u64 / 2;
                let (one, other) = (
                    judged(&index, &court, &batch, false).expect("sound"),
                    judged(&index, &court, &batch, true).expect("sound"),
                );
                assert_eq!(named(&one), named(&other));
                assert_eq!(one.counts, other.counts);
                assert_eq!(one.changes.records, other.changes.records);
                assert_eq!(one.changes.renewals, other.changes.renewals);
                index.apply(&one, &court).expect("sound");
            }
        }
    }

    /// Whatever bytes are stored, there is a decision or an error.
    #[test]
    fn what_is_damaged_is_no_panic() {
        for (same_id, window) in ALL.into_iter().flat_map(|one| [(one, None), (one, Some(200))]) {
            let (court, mut index, mut chance) =
                (court(same_id, window), PlainIndex::new(), Chance(2));
            for number in 0..20 {
                let batch = batch(20 * number, &mut chance);
                let decision = judged(&index, &court, &batch, false).expect("sound");
                index.apply(&decision, &court).expect("sound");
            }
            let mut refused = 0;
            for _ in 0..300 {
                let mut other = index.clone();
                other.moved_below = chance.below(300);
                let flip = |bytes: &mut Vec<u8>, chance: &mut Chance| {
                    if let Some(last) = bytes.len().checked_sub(1) {
                        let at = chance.below(bytes.len() as u64) as usize;
                        bytes[at.min(last)] ^= 1 << chance.below(8);
                        if chance.below(9) == 0 {
                            bytes.truncate(at);
                        }
                    }
                };
                other.records.iter_mut().for_each(|record| {
                    if chance.below(20) == 0 {
                        flip(record, &mut chance);
                    }
                });
                other.verdicts.values_mut().for_each(|verdict| flip(verdict, &mut chance));
                for times in other.renewals.values_mut() {
                    times.push((chance.below(4) as u8, chance.below(1 << 31) as i64 * (1 << 32)));
                }
                for bucket in other.buckets.values_mut() {
                    let odd = index.records.len() as u64 + 1;
                    bucket.entries.push(chance.below(odd));
                    bucket.beyond ^= chance.below(4) == 0;
                }
                let batch = batch(400, &mut chance);
                refused += u32::from(judged(&other, &court, &batch, true).is_err());
            }
            assert!(refused > 30, "{same_id:?}, {window:?}: {refused} were refused");
        }
    }
}
