//! The list of a shard's runs, as it is kept in its store.

use super::cells::{FAN_IN, Shape};
use super::eras::{Era, Eras, NO_TIME};
use super::keyspace::RUNS;
use super::layout::MOST_DOCUMENTS;
use super::merge::steps;
use super::seal::{seal, unseal};
use crate::index::bytes::Cursor;
use crate::index::sight::Damaged;

/// The column of documents' ids; see `identities`. Those below are bands and the exact text.
pub const ID_COLUMN: u8 = 251;
/// The most documents of a run of tier 0. Each takes 480 bytes of filters.
pub const MOST_RUN_DOCUMENTS: u32 = 1 << 24;
const MOST_TIERS: u8 = 8;
const MOST_RUNS: u32 = u32::MAX / 2;
const MOST_ERAS: u32 = u32::MAX / 2;
const MOST_CELLS: u64 = 1 << 48;
const ERAS_A_RUN: u32 = 2;

/// A run: its number, its tier, its documents from `first` to before `end`, its cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    pub number: u32,
    pub tier: u8,
    pub first: u64,
    pub end: u64,
    pub cells: u64,
}

/// A merge under way: the runs of a tier that it reads, the number of the run that it makes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Merging {
    pub tier: u8,
    pub sources: Vec<u32>,
    pub target: u32,
    /// How many documents were inserted when it began.
    pub began: u64,
    /// How many steps are in finished files.
    pub done: u32,
    /// How many cells these files have.
    pub cells: u64,
}

/// The runs, oldest first, and everything that is needed to read them.
///
/// Runs have disjoint ranges of documents without gaps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunList {
    /// How many documents a run of tier 0 has.
    pub run_documents: u32,
    /// Bands and the exact text, ascending, then `ID_COLUMN`; empty before the first write.
    pub columns: Vec<u8>,
    /// The number of the next run.
    pub next: u32,
    pub runs: Vec<Run>,
    pub merging: Vec<Merging>,
    pub eras: Eras,
}

impl RunList {
    pub fn new(run_documents: u32) -> Self {
        Self {
            run_documents,
            columns: Vec::new(),
            next: 0,
            runs: Vec::new(),
            merging: Vec::new(),
            eras: Eras::default(),
        }
    }

    /// The first document after all runs.
    pub fn end(&self) -> u64 {
        self.runs.last().map_or(self.eras.current().first, |run| run.end)
    }

    pub fn shape(&self, tier: u8) -> Shape {
        Shape::of(self.run_documents, tier)
    }

    pub fn run(&self, number: u32) -> Option<&Run> {
        self.runs.iter().find(|run| run.number == number)
    }

    /// The place of a column among those of the shard.
    pub fn slot(&self, column: u8) -> Result<u8, Damaged> {
        let place = self.columns.iter().position(|&other| other == column);
        place.map(|place| place as u8).ok_or_else(|| {
            Damaged(format!("column {column} is none of the shard's: {:?}", self.columns))
        })
    }

    pub fn new_number(&mut self) -> u32 {
        self.next += 1;
        self.next - 1
    }

    /// The oldest runs of a tier that can be merged; none if there are too few.
    ///
    /// They are next to one another, and of two eras at most, so that a run's space comes back
    /// soon after that of its oldest documents might.
    pub fn to_merge(&self, tier: u8) -> Option<&[Run]> {
        if tier >= MOST_TIERS || !self.shape(tier + 1).fits() {
            return None;
        }
        self.runs.windows(FAN_IN).find(|some| {
            let era = |document| self.eras.of_document(document);
            some.iter().all(|run| run.tier == tier)
                && era(some[FAN_IN - 1].end - 1) - era(some[0].first) < ERAS_A_RUN
        })
    }

    /// Drop the oldest runs, as far as their eras are dropped and no merge reads them.
    pub fn drop_dead(&mut self) -> Vec<Run> {
        let first = self.eras.first();
        let busy: Vec<u32> = self.merging.iter().flat_map(|some| some.sources.clone()).collect();
        let dead = self.runs.iter().take_while(|r| r.end <= first && !busy.contains(&r.number));
        let count = dead.count();
        self.runs.drain(..count).collect()
    }

    /// Replace the runs that a merge has read by the one that it has made; return them.
    pub fn replace(&mut self, merging: &Merging) -> Vec<Run> {
        let is_source = |run: &Run| merging.sources.contains(&run.number);
        let Some(start) = self.runs.iter().position(is_source) else { return Vec::new() };
        let count = self.runs[start..].iter().take_while(|run| is_source(run)).count();
        let sources = &self.runs[start..start + count];
        let made = Run {
            number: merging.target,
            tier: merging.tier + 1,
            first: sources[0].first,
            end: sources[count - 1].end,
            cells: merging.cells,
        };
        self.merging.retain(|other| other.target != merging.target);
        self.runs.splice(start..start + count, [made]).collect()
    }

    /// The value of `RUNS`.
    pub fn pack(&self) -> Vec<u8> {
        let mut packed = Vec::new();
        let mut put = |bytes: &[u8]| packed.extend_from_slice(bytes);
        put(&self.run_documents.to_le_bytes());
        put(&[self.columns.len() as u8]);
        put(&self.columns);
        put(&self.next.to_le_bytes());
        put(&(self.runs.len() as u32).to_le_bytes());
        for run in &self.runs {
            put(&run.number.to_le_bytes());
            put(&[run.tier]);
            [run.first, run.end, run.cells].iter().for_each(|number| put(&number.to_le_bytes()));
        }
        put(&(self.merging.len() as u32).to_le_bytes());
        for merging in &self.merging {
            put(&[merging.tier, merging.sources.len() as u8]);
            merging.sources.iter().for_each(|run| put(&run.to_le_bytes()));
            put(&merging.target.to_le_bytes());
            put(&merging.began.to_le_bytes());
            put(&merging.done.to_le_bytes());
            put(&merging.cells.to_le_bytes());
        }
        put(&(self.eras.kept().len() as u32).to_le_bytes());
        for era in self.eras.kept() {
            put(&era.number.to_le_bytes());
            put(&era.first.to_le_bytes());
            put(&era.since.unwrap_or(NO_TIME).to_le_bytes());
            put(&era.latest.to_le_bytes());
        }
        seal(RUNS, packed)
    }

    /// The list that `pack` packed. An error says why it can't be read, or can't be true.
    pub fn unpack(sealed: &[u8]) -> Result<Self, Damaged> {
        let packed = unseal(RUNS, sealed)?;
        let list =
            Self::read(packed).ok_or_else(|| Damaged("its list of runs is cut off".into()))?;
        list.check()?;
        Ok(list)
    }

    fn read(packed: &[u8]) -> Option<Self> {
        let mut left = Cursor(packed);
        let run_documents = left.u32()?;
        let columns = usize::from(left.u8()?);
        let columns = left.take(columns)?.to_vec();
        let next = left.u32()?;
        let (mut runs, mut merging, mut eras) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..left.u32()? {
            let (number, tier) = (left.u32()?, left.u8()?);
            let (first, end, cells) = (left.u64()?, left.u64()?, left.u64()?);
            runs.push(Run { number, tier, first, end, cells });
        }
        for _ in 0..left.u32()? {
            let (tier, count) = (left.u8()?, left.u8()?);
            let sources = (0..count).map(|_| left.u32()).collect::<Option<_>>()?;
            let (target, began, done, cells) = (left.u32()?, left.u64()?, left.u32()?, left.u64()?);
            merging.push(Merging { tier, sources, target, began, done, cells });
        }
        for _ in 0..left.u32()? {
            let (number, first) = (left.u32()?, left.u64()?);
            let since = Some(left.i64()?).filter(|&since| since != NO_TIME);
            eras.push(Era { number, first, since, latest: left.i64()? });
        }
        let eras = Eras::of(eras)?;
        left.is_empty().then_some(Self { run_documents, columns, next, runs, merging, eras })
    }

    /// Check that there are no gaps between runs, that each is as large as its tier says, and that
    /// merges have their sources.
    fn check(&self) -> Result<(), Damaged> {
        let wrong = |what: String| Err(Damaged(format!("its list of runs can't be true: {what}")));
        let ordered = self.columns.is_sorted_by(|one, next| one < next);
        let whole = self.columns.last().is_none_or(|&last| last == ID_COLUMN);
        let sized = (1..=MOST_RUN_DOCUMENTS).contains(&self.run_documents);
        if !ordered || !whole || !sized || self.next > MOST_RUNS {
            return wrong(format!("{} documents, columns {:?}", self.run_documents, self.columns));
        }
        let mut end = self.runs.first().map_or(0, |run| run.first.min(self.eras.first()));
        for (place, run) in self.runs.iter().enumerate() {
            let documents = run.end.saturating_sub(run.first);
            let least = (FAN_IN as u64).saturating_pow(run.tier.into());
            let again = self.runs[..place].iter().any(|other| other.number == run.number);
            if run.first != end || documents < least || documents >= MOST_DOCUMENTS {
                return wrong(format!(
                    "run {} of tier {} has documents {} to before {}; it must begin at {end} and \
                     have at least {least}",
                    run.number, run.tier, run.first, run.end
                ));
            }
            let fits = run.tier <= MOST_TIERS && self.shape(run.tier).fits();
            if again || run.number >= self.next || !fits || run.cells > MOST_CELLS {
                return wrong(format!("run {} of tier {}", run.number, run.tier));
            }
            end = run.end;
        }
        for merging in &self.merging {
            let runs = self.runs.windows(merging.sources.len().max(1));
            let found = runs.into_iter().any(|some| {
                some.iter().all(|run| run.tier == merging.tier)
                    && some.iter().map(|run| run.number).eq(merging.sources.iter().copied())
            });
            let new = merging.target < self.next && self.run(merging.target).is_none();
            let fits = merging.tier < MOST_TIERS && self.shape(merging.tier + 1).fits();
            let open = || merging.done < steps(self.shape(merging.tier), self.columns.len());
            if !found || !new || !fits || !open() || merging.cells > MOST_CELLS {
                return wrong(format!("a merge into run {}", merging.target));
            }
        }
        let current = self.eras.current();
        if current.first > self.end() || current.number > MOST_ERAS {
            return wrong(format!("era {} begins at document {}", current.number, current.first));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list() -> RunList {
        let run = |number, tier, first, end| Run { number, tier, first, end, cells: 40 };
        let mut list = RunList::new(8);
        list.columns = vec![0, 3, ID_COLUMN];
        list.runs.push(run(9, 1, 0, 64));
        list.runs.extend(
            (0..9).map(|at| run(10 + at, 0, 64 + 8 * u64::from(at), 72 + 8 * u64::from(at))),
        );
        list.next = 19;
        list
    }

    fn merging(list: &mut RunList) -> Merging {
        let sources = list.to_merge(0).unwrap().iter().map(|run| run.number).collect();
        let target = list.new_number();
        Merging { tier: 0, sources, target, began: 140, done: 0, cells: 300 }
    }

    #[test]
    fn a_list_is_what_it_was_and_every_flipped_bit_is_found_out() {
        let mut list = list();
        let merge = merging(&mut list);
        list.merging.push(merge);
        list.eras.begin(70, Some(5));
        let packed = list.pack();
        assert_eq!(RunList::unpack(&packed), Ok(list));
        for bit in 0..8 * packed.len() {
            let mut other = packed.clone();
            other[bit / 8] ^= 1 << (bit % 8);
            assert!(RunList::unpack(&other).is_err());
        }
    }

    #[test]
    fn lists_that_cannot_be_true_are_refused() {
        let spoil: [fn(&mut RunList); 13] = [
            |list| list.runs[3].first += 1,
            |list| list.runs[0].end = 7,
            |list| list.runs[1].number = 9,
            |list| list.next = 10,
            |list| list.columns.reverse(),
            |list| list.columns = vec![0],
            |list| list.run_documents = 0,
            |list| list.run_documents = MOST_RUN_DOCUMENTS + 1,
            |list| list.merging[0].sources.reverse(),
            |list| list.merging[0].target = 9,
            |list| list.merging[0].cells = u64::MAX,
            |list| list.runs[0].cells = u64::MAX,
            |list| list.eras.begin(200, None),
        ];
        for spoil in spoil {
            let mut list = list();
            let merge = merging(&mut list);
            list.merging.push(merge);
            assert!(RunList::unpack(&list.pack()).is_ok());
            spoil(&mut list);
            assert!(RunList::unpack(&list.pack()).is_err());
        }
    }

    #[test]
    fn what_a_merge_makes_takes_the_place_of_its_sources() {
        let mut list = list();
        let merge = merging(&mut list);
        list.merging.push(merge.clone());
        assert_eq!(list.replace(&merge).len(), FAN_IN);
        let numbers: Vec<u32> = list.runs.iter().map(|run| run.number).collect();
        assert_eq!(numbers, [9, merge.target, 18]);
        assert!(list.merging.is_empty() && list.check().is_ok());
        assert_eq!(list.to_merge(0), None);
    }

    #[test]
    fn runs_of_many_eras_are_not_merged_and_dead_ones_go() {
        let mut list = list();
        for first in [80, 90, 100] {
            list.eras.begin(first, Some(first as i64));
        }
        assert_eq!(list.to_merge(0), None);
        list.eras.note(super::super::eras::Dates { now: Some(200), latest: 300 }, Some(10));
        assert_eq!(list.eras.drop(Some(200), Some(10)), 3);
        assert_eq!(list.drop_dead().len(), 5);
        assert_eq!(list.runs[0].first, 96);
        assert!(list.check().is_ok());
    }
}
