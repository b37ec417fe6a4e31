//! Which postings there may be, by what is in memory.

use super::Shard;
use super::run::marked;
use super::run_list::RunList;

/// Runs by number. There is hardly ever more than one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Runs {
    newest: Option<u32>,
    /// Newest first.
    others: Vec<u32>,
}

impl Runs {
    /// Take some runs of a list, in any order.
    fn of(list: &RunList, some: &[(usize, u32)]) -> Self {
        if let &[(_, run)] = some {
            return Self { newest: Some(run), others: Vec::new() };
        }
        let mut newest_first = list.runs.iter().rev().map(|run| run.number);
        let mut some = newest_first.by_ref().filter(|run| some.iter().any(|(_, one)| one == run));
        Self { newest: some.next(), others: some.collect() }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.others.len() + usize::from(self.newest.is_some())
    }

    /// The run at a place, newest first.
    pub fn get(&self, place: usize) -> Option<u32> {
        match place.checked_sub(1) {
            None => self.newest,
            Some(place) => self.others.get(place).copied(),
        }
    }

    pub fn retain(&mut self, mut keeps: impl FnMut(u32) -> bool) {
        self.others.retain(|&run| keeps(run));
        if self.newest.is_some_and(|run| !keeps(run)) {
            self.newest = (!self.others.is_empty()).then(|| self.others.remove(0));
        }
    }
}

/// Where a posting may be.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hit {
    /// Its document, if it is in the memtable.
    pub memtable: Option<u64>,
    /// The runs that may have it.
    pub runs: Runs,
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
                hits.push((before, Hit { memtable: Some(number), runs: Runs::default() }));
            }
            let memtable = opens.next_if(|open| open.0 == at).map(|(_, number)| number);
            hits.push((at, Hit { memtable, runs: Runs::of(&self.list, some) }));
        }
        let rest =
            opens.map(|(at, number)| (at, Hit { memtable: Some(number), runs: Runs::default() }));
        hits.extend(rest);
        hits
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
