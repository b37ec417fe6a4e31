//! Merges of the runs of a level into one run of the next, in steps of bounded work.
//!
//! A step merges the same few pages of one column of all runs. The highest bits of a key choose its
//! page in each level, so a page of the runs that are read becomes eight pages of the new one. With
//! every write, a merge does so many steps that it ends before its level has another run.
//!
//! A shard that is opened continues with the first step that isn't in a finished file. How many
//! steps are due depends on how many documents have come since the merge began, in however many
//! lives of the shard. So what is lost is made up for, and a shard that is closed after every few
//! writes finishes its merges like any other.

use super::filter::Part;
use super::keys::{Key, PAGES, Place};
use super::reads::ReadKey;
use super::run::{FAN_IN, MARK, Page, Posting, Shape, pack_pages};
use super::run_list::{Merging, RunList};
use super::writes::TableWrite;
use crate::index::reader::Damaged;

/// By how much a merge is faster than it must be, in quarters.
const HASTE_QUARTERS: u64 = 5;
/// Closing a shard loses what is in an unfinished file: about half a second of work. Files of a
/// tenth would be too many for RocksDB to keep open.
const FILE_BYTES: u64 = 64 << 20;
/// By how many steps a write makes up for lost ones: a fifth of a file, and about as many as are
/// due with 4,000 documents.
const MADE_UP_STEPS: u32 = 32;

/// How far a merge is in memory.
#[derive(Debug, Clone)]
pub struct Merge {
    pub target: u32,
    /// The next step.
    next: u32,
    postings: u64,
    /// The bytes in the file that isn't finished.
    file_bytes: u64,
}

impl Merge {
    pub fn of(plan: &Merging) -> Self {
        let Merging { target, done, postings, .. } = *plan;
        Self { target, next: done, postings, file_bytes: 0 }
    }

    /// Return how many steps are due in a write after which `inserted` documents were inserted,
    /// `documents` of them by it.
    ///
    /// The level has another run after as many as one of those that are merged has.
    fn due(&self, plan: &Merging, list: &RunList, inserted: u64, documents: u64) -> u32 {
        let all = list.shape(plan.level).merge_steps(list.columns.len());
        let runs = list.runs.iter().filter(|run| plan.sources.contains(&run.number));
        let merged: u64 = runs.map(|run| run.end - run.first).sum();
        let within = |documents: u64| {
            let work = u128::from(all) * u128::from(documents) * plan.sources.len() as u128;
            let steps = work * u128::from(HASTE_QUARTERS) / (4 * u128::from(merged.max(1)));
            steps.min(all.into()) as u32
        };
        let behind = within(inserted.saturating_sub(plan.began)).saturating_sub(self.next);
        behind.min(within(documents).saturating_add(MADE_UP_STEPS))
    }
}

/// The steps of a merge that a write does.
pub struct Work {
    plan: Merging,
    merge: Merge,
    steps: u32,
}

/// What the steps of a write have made.
pub struct Worked {
    pub merge: Merge,
    pub plan: Merging,
    pub parts: Vec<Part>,
    pub tables: Vec<TableWrite>,
    pub is_done: bool,
}

impl Work {
    /// Plan the steps that are due; see `Merge::due`.
    pub fn due(
        merge: Merge,
        plan: &Merging,
        list: &RunList,
        inserted: u64,
        documents: u64,
    ) -> Self {
        let steps = merge.due(plan, list, inserted, documents);
        Self { plan: plan.clone(), merge, steps }
    }

    /// The source pages of these steps, in the order in which `done` takes them.
    pub fn reads(&self, list: &RunList) -> Vec<ReadKey> {
        let mut reads = Vec::new();
        for step in self.merge.next..self.merge.next + self.steps {
            let (slot, pages) = self.pages_of(list, step);
            for page in pages {
                reads.extend(self.plan.sources.iter().map(|&run| {
                    let key = Place { run, slot, page }.key(PAGES);
                    ReadKey { table: Some(run), key }
                }));
            }
        }
        reads
    }

    /// The slot of a step's column, and its pages in the runs that are read.
    fn pages_of(&self, list: &RunList, step: u32) -> (u8, std::ops::Range<u32>) {
        let shape = list.shape(self.plan.level);
        let each = shape.pages_a_step();
        let groups = shape.pages() / each;
        let first = step % groups * each;
        ((step / groups) as u8, first..first + each)
    }

    /// Do the steps; `pages` begins with the values of `reads`.
    pub fn done<'a>(
        mut self,
        list: &RunList,
        pages: &mut impl Iterator<Item = Option<&'a [u8]>>,
    ) -> Result<Worked, Damaged> {
        let (from, to) = (list.shape(self.plan.level), list.shape(self.plan.level + 1));
        let (target, fan_in) = (self.plan.target, FAN_IN as u32);
        let (mut parts, mut tables) = (Vec::new(), Vec::<TableWrite>::new());
        let mut written: Vec<(Key, Vec<u8>)> = Vec::new();
        let total = from.merge_steps(list.columns.len());
        for step in self.merge.next..self.merge.next + self.steps {
            let (slot, range) = self.pages_of(list, step);
            let into = range.start * fan_in..range.end * fan_in;
            let mut postings = Vec::new();
            for page in range {
                let mut unpacked = Vec::with_capacity(self.plan.sources.len());
                for &run in &self.plan.sources {
                    if let Some(packed) = pages.next().flatten() {
                        unpacked.push(Page::unpack(Place { run, slot, page }, from, packed)?);
                    }
                }
                merged(&unpacked, from, &mut postings);
            }
            let packed = pack_pages(target, slot, to, into.clone(), &postings);
            parts.push(Part::filled(target, slot, to, into, &postings));
            self.merge.postings += postings.len() as u64;
            self.merge.file_bytes +=
                packed.iter().map(|(key, page)| (key.len() + page.len()) as u64).sum::<u64>();
            written.extend(packed);
            self.merge.next = step + 1;
            let last = step + 1 == total;
            if last || self.merge.file_bytes >= FILE_BYTES {
                let pages = std::mem::take(&mut written);
                tables.push(TableWrite { run: target, pages, finished: true, last });
                self.merge.file_bytes = 0;
                (self.plan.done, self.plan.postings) = (self.merge.next, self.merge.postings);
            }
        }
        if !written.is_empty() {
            tables.push(TableWrite { run: target, pages: written, finished: false, last: false });
        }
        let is_done = self.merge.next == total;
        Ok(Worked { merge: self.merge, plan: self.plan, parts, tables, is_done })
    }
}

/// Add the postings of the same page of several runs, the oldest run first, sorted. Of equal ones,
/// only those of the last run are added.
///
/// What is sorted are numbers: a key's bits below those of its page, and in place of the lowest
/// ones the place of its posting. That takes a fraction of the time of sorting postings.
fn merged(pages: &[Page], shape: Shape, into: &mut Vec<Posting>) {
    let postings: Vec<Posting> = pages.iter().flat_map(Page::postings).collect();
    let place_bits = usize::BITS - postings.len().leading_zeros();
    let places = (1u64 << place_bits) - 1;
    let number = |(place, posting): (usize, &Posting)| {
        shape.within_page(posting.hash) & !places | place as u64
    };
    let mut numbers: Vec<u64> = postings.iter().enumerate().map(number).collect();
    numbers.sort(); // It merges what is in order; the other kind of sort would not.
    let ordered = || numbers.iter().map(|number| postings[(number & places) as usize]);
    if ordered().is_sorted_by_key(|posting| posting.hash) {
        ordered().for_each(|posting| push_newest(into, posting));
    } else {
        // Keys differed in their lowest bits only. There are hardly ever any on the same page.
        let mut postings = postings;
        postings.sort_by_key(|posting| posting.hash);
        postings.into_iter().for_each(|posting| push_newest(into, posting));
    }
}

/// Add a posting that follows, or replace its equal.
fn push_newest(postings: &mut Vec<Posting>, posting: Posting) {
    let same = |other: &&mut Posting| (other.document ^ posting.document) & MARK == 0;
    let equals = postings.iter_mut().rev().take_while(|other| other.hash == posting.hash);
    match equals.filter(same).last() {
        Some(other) => *other = posting,
        None => postings.push(posting),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(postings: &[Posting]) -> Vec<u8> {
        let shape = Shape::of(256, 0);
        pack_pages(0, 0, shape, 0..1, postings).remove(0).1
    }

    fn merge(runs: &[Vec<Posting>]) -> Vec<Posting> {
        let shape = Shape::of(256, 0);
        let place = Place { run: 0, slot: 0, page: 0 };
        let packed: Vec<Vec<u8>> = runs.iter().map(|postings| page(postings)).collect();
        let pages: Vec<Page> =
            packed.iter().map(|page| Page::unpack(place, shape, page).unwrap()).collect();
        let mut into = Vec::new();
        merged(&pages, shape, &mut into);
        into
    }

    fn posting(hash: u64, document: u32) -> Posting {
        Posting { hash, document }
    }

    #[test]
    fn cells_are_sorted_and_the_newest_of_equals_stays() {
        let far = 1 << 60;
        let runs = [
            vec![posting(5, 1), posting(far, 2)],
            vec![posting(4, 3), posting(far, 4 | MARK)],
            vec![posting(4, 5), posting(far, 6)],
        ];
        let expected = vec![posting(4, 5), posting(5, 1), posting(far, 6), posting(far, 4 | MARK)];
        assert_eq!(merge(&runs), expected);
    }

    #[test]
    fn many_cells_are_sorted() {
        let hash = |at: u64| at.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let run = |number: u32| {
            let mut postings: Vec<Posting> =
                (0..300).map(|at| posting(hash(u64::from(number) << 20 | at), number)).collect();
            postings.sort_unstable();
            postings
        };
        let runs: Vec<Vec<Posting>> = (0..8).map(run).collect();
        let mut expected: Vec<Posting> = runs.concat();
        expected.sort_unstable();
        assert_eq!(merge(&runs), expected);
    }

    /// A merge of runs of 4,096 documents: they have 16 pages a column, so a step is a column.
    fn begun() -> (RunList, Merging) {
        let mut list = RunList::new(4096);
        list.columns = (0..40).chain([251]).collect();
        let sources = (0..8).map(|run| {
            let first = u64::from(run) * 4096;
            super::super::run_list::Run {
                number: run,
                level: 0,
                first,
                end: first + 4096,
                postings: 9,
            }
        });
        list.runs.extend(sources);
        let sources = (0..8).collect();
        let plan = Merging { level: 0, sources, target: 8, began: 8 * 4096, done: 0, postings: 0 };
        (list, plan)
    }

    #[test]
    fn a_merge_is_in_proportion_to_new_documents() {
        let (list, plan) = begun();
        let mut merge = Merge::of(&plan);
        for documents in 1..=4096 {
            let due = merge.due(&plan, &list, plan.began + documents, 1);
            merge.next += due;
            let expected =
                (u64::from(list.shape(0).merge_steps(41)) * documents * 5 / (4 * 4096)).min(41);
            assert!(due <= 1 && u64::from(merge.next) == expected);
        }
        assert_eq!(merge.next, 41);
    }

    #[test]
    fn what_was_lost_is_made_up_for_in_a_few_writes() {
        let (list, plan) = begun();
        let mut merge = Merge::of(&plan);
        let inserted = plan.began + 3200; // Enough for 40 of 41 steps, all of which are lost.
        let due: Vec<u32> = (0..3)
            .map(|_| {
                let due = merge.due(&plan, &list, inserted, 0);
                merge.next += due;
                due
            })
            .collect();
        assert_eq!(due, [32, 8, 0]);
        assert_eq!(Merge::of(&plan).due(&plan, &list, inserted, 300), 32 + 3);
        assert_eq!(Merge::of(&plan).due(&plan, &list, u64::MAX, u64::MAX), 41);
    }
}
