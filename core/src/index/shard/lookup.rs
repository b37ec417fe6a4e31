//! Which cells there may be, by what is in memory.

use rustc_hash::FxHashMap;

use super::Shard;
use super::cells::marked;

/// Where a cell may be.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hit {
    /// Its document, if it is in the open run.
    pub open: Option<u64>,
    /// The runs that may have it, by number, newest first.
    pub runs: Vec<u32>,
}

impl Shard {
    /// Return the places of the keys of a column that may have a cell, ascending; all others have
    /// none.
    pub(super) fn hits(&self, slot: u8, hashes: &[u64]) -> Vec<(usize, Hit)> {
        let mut hits = FxHashMap::<usize, Hit>::default();
        self.open.find_each(slot, hashes, |at, number| {
            hits.entry(at).or_default().open = Some(number);
        });
        self.filters.find(slot, hashes, |at, run| hits.entry(at).or_default().runs.push(run));
        let mut hits: Vec<(usize, Hit)> = hits.into_iter().collect();
        hits.sort_unstable_by_key(|hit| hit.0);
        let newest = |run: &u32| self.list.runs.iter().rposition(|one| one.number == *run);
        for (_, hit) in hits.iter_mut().filter(|(_, hit)| hit.runs.len() > 1) {
            hit.runs.sort_unstable_by_key(newest);
            hit.runs.reverse();
        }
        hits
    }

    /// Return the same for one key.
    pub(super) fn hit(&self, slot: u8, hash: u64) -> Option<Hit> {
        self.hits(slot, &[hash]).pop().map(|(_, hit)| hit)
    }

    /// Return for each key of a column the eras in which its bucket may have grown, newest first.
    pub(super) fn eras_grown(&self, slot: u8, hashes: &[u64]) -> Vec<Vec<u32>> {
        let marks: Vec<u64> = hashes.iter().map(|&hash| marked(hash)).collect();
        let eras = &self.list.eras;
        let in_open = |mark| self.open.find(slot, mark, true).map(|_| eras.current().number);
        let mut grown: Vec<Vec<u32>> =
            marks.iter().map(|&mark| in_open(mark).into_iter().collect()).collect();
        self.filters.find(slot, &marks, |at, run| {
            if let Some(run) = self.list.run(run) {
                let (first, last) = (eras.of_document(run.first), eras.of_document(run.end - 1));
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
