//! Finds the newest posting of a bucket, or of an id.

use super::ReadKey;
use super::keys::{PAGES, Place};
use super::layout::number_before;
use super::lookup::{Hit, Runs};
use super::run::Page;
use super::run_list::RunList;
use crate::index::reader::Damaged;

/// A search among the runs whose filters let a key pass.
///
/// First the newest run is read. A filter was wrong about it if the posting isn't there, and mostly
/// about those of earlier runs, too. These are read together: a round for each would take longer.
#[derive(Debug, Clone)]
pub struct Search {
    pub slot: u8,
    pub hash: u64,
    runs: Runs,
    /// How many of them were named.
    named: usize,
    /// How many of those were given.
    given: usize,
    /// The place of the newest run that has it, and the document.
    found: Option<(usize, u64)>,
}

impl Search {
    pub fn of(slot: u8, hash: u64, hit: Hit) -> Self {
        let found = hit.memtable.map(|number| (0, number));
        let runs = if found.is_some() { Runs::default() } else { hit.runs };
        Self { slot, hash, runs, named: 0, given: 0, found }
    }

    /// Leave out postings of documents up to the end of a time slice.
    pub fn after(&mut self, slice: u32, list: &RunList) {
        let last_slice = |run: &super::run_list::Run| list.slices.of_document(run.end - 1);
        self.runs.retain(|run| list.run(run).is_some_and(|run| last_slice(run) > slice));
        self.found = self.found.filter(|&(_, number)| list.slices.of_document(number) > slice);
    }

    pub fn is_over(&self) -> bool {
        self.given == self.named && (self.found.is_some() || self.named == self.runs.count())
    }

    pub fn found(&self) -> Option<u64> {
        self.found.map(|(_, number)| number)
    }

    /// Name the pages to read next, with the places by which they are given.
    pub fn name(&mut self, list: &RunList) -> Vec<(usize, ReadKey)> {
        if self.is_over() || self.given < self.named {
            return Vec::new();
        }
        let end = if self.named == 0 { 1 } else { self.runs.count() };
        let places = self.named..end;
        self.named = end;
        places
            .filter_map(|at| {
                let run = list.run(self.runs.get(at)?)?;
                let key = self.place(list, run).key(PAGES);
                Some((at, ReadKey { table: Some(run.number), key }))
            })
            .collect()
    }

    fn place(&self, list: &RunList, run: &super::run_list::Run) -> Place {
        Place { run: run.number, slot: self.slot, page: list.shape(run.level).page(self.hash) }
    }

    /// Take the page at a place, as it is stored; none has no postings.
    pub fn handle_values(
        &mut self,
        list: &RunList,
        at: usize,
        page: Option<&[u8]>,
    ) -> Result<(), Damaged> {
        self.given += 1;
        let run = self.runs.get(at).and_then(|run| list.run(run));
        let (Some(page), Some(run)) = (page, run) else { return Ok(()) };
        let page = Page::unpack(self.place(list, run), list.shape(run.level), page)?;
        let Some(low) = page.find(self.hash) else { return Ok(()) };
        let number = number_before(low, run.end).filter(|&number| number >= run.first);
        let number = number.ok_or_else(|| {
            Damaged(format!(
                "a posting of run {} names document {low}, and it has {} to before {}",
                run.number, run.first, run.end
            ))
        })?;
        if self.found.is_none_or(|(newest, _)| at < newest) {
            self.found = Some((at, number));
        }
        Ok(())
    }
}
