//! The list of a shard's runs, as it is kept in its store.

use super::checksum::{add_checksum, verify_checksum};
use super::keys::RUNS;
use super::layout::MOST_DOCUMENTS;
use super::run::{FAN_IN, Shape};
use super::slices::{NO_TIME, TimeSlice, TimeSlices};
use crate::index::bytes::Cursor;
use crate::index::reader::Damaged;

/// The column of documents' ids; see `identities`. Those below are bands and the exact text.
pub const ID_COLUMN: u8 = 251;
/// The most documents of a run of level 0. Each takes 480 bytes of filters.
pub const MOST_RUN_DOCUMENTS: u32 = 1 << 24;
const MOST_LEVELS: u8 = 8;
const MOST_RUNS: u32 = u32::MAX / 2;
const MOST_SLICES: u32 = u32::MAX / 2;
const MOST_POSTINGS: u64 = 1 << 48;
const SLICES_A_RUN: u32 = 2;

/// A run: its number, its level, its documents from `first` to before `end`, its postings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    pub number: u32,
    pub level: u8,
    pub first: u64,
    pub end: u64,
    pub postings: u64,
}

/// A merge under way: the runs of a level that it reads, the number of the run that it makes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Merging {
    pub level: u8,
    pub sources: Vec<u32>,
    pub target: u32,
    /// How many documents were inserted when it began.
    pub began: u64,
    /// How many steps are in finished files.
    pub done: u32,
    /// How many postings these files have.
    pub postings: u64,
}

/// The runs, oldest first, and everything that is needed to read them.
///
/// Runs have disjoint ranges of documents without gaps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunList {
    /// How many documents a run of level 0 has.
    pub run_documents: u32,
    /// Bands and the exact text, ascending, then `ID_COLUMN`; empty before the first write.
    pub columns: Vec<u8>,
    /// The number of the next run.
    pub next: u32,
    pub runs: Vec<Run>,
    pub merging: Vec<Merging>,
    pub slices: TimeSlices,
}

impl RunList {
    pub fn new(run_documents: u32) -> Self {
        Self {
            run_documents,
            columns: Vec::new(),
            next: 0,
            runs: Vec::new(),
            merging: Vec::new(),
            slices: TimeSlices::default(),
        }
    }

    /// The first document after all runs.
    pub fn end(&self) -> u64 {
        self.runs.last().map_or(self.slices.current().first, |run| run.end)
    }

    pub fn shape(&self, level: u8) -> Shape {
        Shape::of(self.run_documents, level)
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

    /// The oldest runs of a level that can be merged; none if there are too few.
    ///
    /// They are next to one another, and of two time slices at most, so that a run's space comes back
    /// soon after that of its oldest documents might.
    pub fn to_merge(&self, level: u8) -> Option<&[Run]> {
        if level >= MOST_LEVELS || !self.shape(level + 1).fits() {
            return None;
        }
        self.runs.windows(FAN_IN).find(|some| {
            let slice = |document| self.slices.of_document(document);
            some.iter().all(|run| run.level == level)
                && slice(some[FAN_IN - 1].end - 1) - slice(some[0].first) < SLICES_A_RUN
        })
    }

    /// Drop the oldest runs, as far as their time slices are dropped and no merge reads them.
    pub fn drop_dead(&mut self) -> Vec<Run> {
        let first = self.slices.first();
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
            level: merging.level + 1,
            first: sources[0].first,
            end: sources[count - 1].end,
            postings: merging.postings,
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
            put(&[run.level]);
            [run.first, run.end, run.postings].iter().for_each(|number| put(&number.to_le_bytes()));
        }
        put(&(self.merging.len() as u32).to_le_bytes());
        for merging in &self.merging {
            put(&[merging.level, merging.sources.len() as u8]);
            merging.sources.iter().for_each(|run| put(&run.to_le_bytes()));
            put(&merging.target.to_le_bytes());
            put(&merging.began.to_le_bytes());
            put(&merging.done.to_le_bytes());
            put(&merging.postings.to_le_bytes());
        }
        put(&(self.slices.kept().len() as u32).to_le_bytes());
        for slice in self.slices.kept() {
            put(&slice.number.to_le_bytes());
            put(&slice.first.to_le_bytes());
            put(&slice.since.unwrap_or(NO_TIME).to_le_bytes());
            put(&slice.latest.to_le_bytes());
        }
        add_checksum(RUNS, packed)
    }

    /// The list that `pack` packed. An error says why it can't be read, or can't be true.
    pub fn unpack(stored: &[u8]) -> Result<Self, Damaged> {
        let packed = verify_checksum(RUNS, stored)?;
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
        let (mut runs, mut merging, mut slices) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..left.u32()? {
            let (number, level) = (left.u32()?, left.u8()?);
            let (first, end, postings) = (left.u64()?, left.u64()?, left.u64()?);
            runs.push(Run { number, level, first, end, postings });
        }
        for _ in 0..left.u32()? {
            let (level, count) = (left.u8()?, left.u8()?);
            let sources = (0..count).map(|_| left.u32()).collect::<Option<_>>()?;
            let (target, began, done, postings) =
                (left.u32()?, left.u64()?, left.u32()?, left.u64()?);
            merging.push(Merging { level, sources, target, began, done, postings });
        }
        for _ in 0..left.u32()? {
            let (number, first) = (left.u32()?, left.u64()?);
            let since = Some(left.i64()?).filter(|&since| since != NO_TIME);
            slices.push(TimeSlice { number, first, since, latest: left.i64()? });
        }
        let slices = TimeSlices::of(slices)?;
        left.is_empty().then_some(Self { run_documents, columns, next, runs, merging, slices })
    }

    /// Check that there are no gaps between runs, that each is as large as its level says, and that
    /// merges have their sources.
    fn check(&self) -> Result<(), Damaged> {
        let wrong = |what: String| Err(Damaged(format!("its list of runs can't be true: {what}")));
        let ordered = self.columns.is_sorted_by(|one, next| one < next);
        let whole = self.columns.last().is_none_or(|&last| last == ID_COLUMN);
        let sized = (1..=MOST_RUN_DOCUMENTS).contains(&self.run_documents);
        if !ordered || !whole || !sized || self.next > MOST_RUNS {
            return wrong(format!("{} documents, columns {:?}", self.run_documents, self.columns));
        }
        let mut end = self.runs.first().map_or(0, |run| run.first.min(self.slices.first()));
        for (place, run) in self.runs.iter().enumerate() {
            let documents = run.end.saturating_sub(run.first);
            let least = (FAN_IN as u64).saturating_pow(run.level.into());
            let again = self.runs[..place].iter().any(|other| other.number == run.number);
            if run.first != end || documents < least || documents >= MOST_DOCUMENTS {
                return wrong(format!(
                    "run {} of level {} has documents {} to before {}; it must begin at {end} and \
                     have at least {least}",
                    run.number, run.level, run.first, run.end
                ));
            }
            let fits = run.level <= MOST_LEVELS && self.shape(run.level).fits();
            if again || run.number >= self.next || !fits || run.postings > MOST_POSTINGS {
                return wrong(format!("run {} of level {}", run.number, run.level));
            }
            end = run.end;
        }
        for merging in &self.merging {
            let runs = self.runs.windows(merging.sources.len().max(1));
            let found = runs.into_iter().any(|some| {
                some.iter().all(|run| run.level == merging.level)
                    && some.iter().map(|run| run.number).eq(merging.sources.iter().copied())
            });
            let new = merging.target < self.next && self.run(merging.target).is_none();
            let fits = merging.level < MOST_LEVELS && self.shape(merging.level + 1).fits();
            let open = || merging.done < self.shape(merging.level).merge_steps(self.columns.len());
            if !found || !new || !fits || !open() || merging.postings > MOST_POSTINGS {
                return wrong(format!("a merge into run {}", merging.target));
            }
        }
        let current = self.slices.current();
        if current.first > self.end() || current.number > MOST_SLICES {
            return wrong(format!(
                "time slice {} begins at document {}",
                current.number, current.first
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list() -> RunList {
        let run = |number, level, first, end| Run { number, level, first, end, postings: 40 };
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
        Merging { level: 0, sources, target, began: 140, done: 0, postings: 300 }
    }

    #[test]
    fn a_list_is_what_it_was_and_every_flipped_bit_is_found_out() {
        let mut list = list();
        let merge = merging(&mut list);
        list.merging.push(merge);
        list.slices.begin(70, Some(5));
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
            |list| list.merging[0].postings = u64::MAX,
            |list| list.runs[0].postings = u64::MAX,
            |list| list.slices.begin(200, None),
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
            list.slices.begin(first, Some(first as i64));
        }
        assert_eq!(list.to_merge(0), None);
        list.slices.note(Some(200), 300, Some(10));
        assert_eq!(list.slices.drop(Some(200), Some(10)), 3);
        assert_eq!(list.drop_dead().len(), 5);
        assert_eq!(list.runs[0].first, 96);
        assert!(list.check().is_ok());
    }
}
