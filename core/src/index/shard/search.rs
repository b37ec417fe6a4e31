//! Finds the newest posting of a bucket, or of an id: first in memory, then in runs.

use smallvec::{SmallVec, smallvec};

use super::keys::{PAGES, Place};
use super::layout::number_before;
use super::reads::{ReadKey, Reads};
use super::run::{Page, marked};
use super::run_list::{Run, RunList};
use super::state::Shard;
use crate::index::reader::{Damaged, Poll, Polled};

/// Runs by number, newest first. There is hardly ever more than one.
type Runs = SmallVec<[u32; 2]>;

/// Where a posting may be.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hit {
    /// Its document, if it is in the memtable.
    pub memtable: Option<u64>,
    /// The runs that may have it.
    pub runs: Runs,
}

/// A search among the runs whose filters let a key pass.
///
/// First the newest run is read. A filter was wrong about it if the posting isn't there, and mostly
/// about those of earlier runs, too. These are read together: a round for each would take longer.
#[derive(Debug, Clone)]
pub struct Search {
    pub slot: u8,
    pub hash: u64,
    runs: Runs,
    /// How many runs don't have it.
    passed: usize,
    /// The document of the newest posting.
    pub found: Option<u64>,
}

impl Search {
    pub fn of(slot: u8, hash: u64, hit: Hit) -> Self {
        let runs = if hit.memtable.is_some() { Runs::new() } else { hit.runs };
        Self { slot, hash, runs, passed: 0, found: hit.memtable }
    }

    /// Leave out postings of documents up to the end of a time slice. Nothing was read yet.
    pub fn after(&mut self, slice: u32, list: &RunList) {
        let last_slice = |run: &Run| list.slices.of_document(run.end - 1);
        self.runs.retain(|run| list.run(*run).is_some_and(|run| last_slice(run) > slice));
        self.found = self.found.filter(|&number| list.slices.of_document(number) > slice);
    }

    /// Search on; return the document of the newest posting, if there is one.
    pub fn poll(&mut self, list: &RunList, reads: &mut Reads) -> Polled<Option<u64>> {
        while self.found.is_none() && self.passed < self.runs.len() {
            if let Some(run) = list.run(self.runs[self.passed]) {
                let Poll::Ready(page) = reads.take(self.key(list, run)) else {
                    let others = self.runs[self.passed + 1..].iter().filter(|_| self.passed > 0);
                    let others = others.filter_map(|&run| list.run(run));
                    others.for_each(|run| reads.want(self.key(list, run)));
                    return Ok(Poll::Pending);
                };
                self.found = page.map_or(Ok(None), |page| self.find(list, run, &page))?;
            }
            self.passed += 1;
        }
        Ok(Poll::Ready(self.found))
    }

    fn place(&self, list: &RunList, run: &Run) -> Place {
        Place { run: run.number, slot: self.slot, page: list.shape(run.level).page(self.hash) }
    }

    fn key(&self, list: &RunList, run: &Run) -> ReadKey {
        ReadKey { table: Some(run.number), key: self.place(list, run).key(PAGES) }
    }

    /// Find the document in a page of a run, as it is stored.
    fn find(&self, list: &RunList, run: &Run, page: &[u8]) -> Result<Option<u64>, Damaged> {
        let page = Page::unpack(self.place(list, run), list.shape(run.level), page)?;
        let Some(low) = page.find(self.hash) else { return Ok(None) };
        let number = number_before(low, run.end).filter(|&number| number >= run.first);
        number.map(Some).ok_or_else(|| {
            Damaged(format!(
                "a posting of run {} names document {low}, and it has {} to before {}",
                run.number, run.first, run.end
            ))
        })
    }
}

impl Shard {
    /// Return the places of the keys of a column that may have a posting, ascending; all others have
    /// none.
    pub fn hits(&self, slot: u8, hashes: &[u64]) -> Vec<(usize, Hit)> {
        let (mut opens, mut runs) = (Vec::new(), Vec::new());
        self.memtable.find_each(slot, hashes, false, |at, number| opens.push((at, number)));
        self.filters.find(slot, hashes, |at, run| runs.push((at, run)));
        runs.sort_unstable();
        let mut hits = Vec::with_capacity(opens.len() + runs.len());
        let mut opens = opens.into_iter().peekable();
        for some in runs.chunk_by(|one, next| one.0 == next.0) {
            let at = some[0].0;
            while let Some((before, number)) = opens.next_if(|open| open.0 < at) {
                hits.push((before, Hit { memtable: Some(number), runs: Runs::new() }));
            }
            let memtable = opens.next_if(|open| open.0 == at).map(|(_, number)| number);
            hits.push((at, Hit { memtable, runs: self.newest_first(some) }));
        }
        let rest =
            opens.map(|(at, number)| (at, Hit { memtable: Some(number), runs: Runs::new() }));
        hits.extend(rest);
        hits
    }

    /// The runs of hits, newest first.
    fn newest_first(&self, hits: &[(usize, u32)]) -> Runs {
        if let &[(_, run)] = hits {
            return smallvec![run];
        }
        let newest_first = self.list.runs.iter().rev().map(|run| run.number);
        newest_first.filter(|run| hits.iter().any(|(_, hit)| hit == run)).collect()
    }

    /// Return the same for one key.
    pub(super) fn hit(&self, slot: u8, hash: u64) -> Option<Hit> {
        self.hits(slot, &[hash]).pop().map(|(_, hit)| hit)
    }

    /// Return for each key of a column the time slices in which its bucket may have grown, newest first.
    pub fn slices_grown(&self, slot: u8, hashes: &[u64]) -> Vec<Vec<u32>> {
        let marks: Vec<u64> = hashes.iter().map(|&hash| marked(hash)).collect();
        let slices = &self.list.slices;
        let mut grown = vec![Vec::new(); marks.len()];
        self.memtable
            .find_each(slot, &marks, true, |at, _| grown[at].push(slices.current().number));
        self.filters.find(slot, &marks, |at, run| {
            if let Some(run) = self.list.run(run) {
                let (first, last) =
                    (slices.of_document(run.first), slices.of_document(run.end - 1));
                grown[at].extend(first..=last);
            }
        });
        for some in grown.iter_mut().filter(|some| some.len() > 1) {
            some.sort_unstable_by(|one, other| other.cmp(one));
            some.dedup();
        }
        grown
    }
}
