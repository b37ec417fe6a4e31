//! Opens a shard from what is in its store.

use rustc_hash::FxHashMap;

use super::checksum::{hex, verify_checksum};
use super::filter::{Filters, Part};
use super::keys::{self, GONE, Key, Place, RUNS, Range, number_in};
use super::layout::{MOST_DOCUMENTS, number_before};
use super::memtable::{Added, Memtable, unpack_added};
use super::merge::Merge;
use super::recent::Recent;
use super::record_pages::{RecordPage, page_key, page_of};
use super::run::Shape;
use super::run_list::RunList;
use super::state::{CANDIDATE_BYTES, RECENT_BYTES, Settings, Shard};
use crate::index::reader::Damaged;

/// A shard, while its store is read.
///
/// Give the values of `keys`, then take all keys in `ranges` with their values, then finish.
pub struct Opening {
    settings: Settings,
    inserted: u64,
    list: RunList,
    filters: Filters,
    memtable: Memtable,
    memtable_writes: u64,
    all_kept: bool,
    last_page: Vec<Vec<u8>>,
    /// What is expected next of the filter of each run.
    next: FxHashMap<u32, Expected>,
}

/// Parts of a filter follow one another: they have all pages of each column.
struct Expected {
    level: u8,
    slot: u8,
    page: u32,
    /// How many pages a part has.
    pages: u32,
    /// Where the last part ends.
    until: (u8, u32),
    /// Whether what is from there on is of steps that are done again.
    again: bool,
}

impl Opening {
    /// Begin. `inserted` is how many documents were inserted so far, as the store says.
    pub fn new(settings: Settings, inserted: u64) -> Self {
        let list = RunList::new(settings.run_documents);
        Self {
            settings,
            inserted,
            filters: Filters::new(0, list.run_documents),
            list,
            memtable: Memtable::new(0, 0),
            memtable_writes: 0,
            all_kept: true,
            last_page: Vec::new(),
            next: FxHashMap::default(),
        }
    }

    /// The keys that must be read first.
    pub fn keys(&self) -> [Key; 3] {
        [Key::from_slice(RUNS), Key::from_slice(GONE), page_key(page_of(self.inserted).0)]
    }

    /// Take the values of `keys`.
    pub fn handle_values(&mut self, values: [Option<&[u8]>; 3]) -> Result<(), Damaged> {
        let [runs, gone, page] = values;
        if let Some(runs) = runs {
            self.list = RunList::unpack(runs)?;
        }
        if let Some(gone) = gone {
            verify_checksum(GONE, gone)?;
            self.all_kept = false;
        }
        let (number, expected) = page_of(self.inserted);
        if expected > 0 {
            let page = RecordPage::unpack(number, page.unwrap_or_default())?;
            self.last_page = page.records().map(<[u8]>::to_vec).collect();
        }
        if self.last_page.len() != expected {
            let got = self.last_page.len();
            return Err(Damaged(format!("its last page has {got} records, not {expected}")));
        }
        let (first, end) = (self.list.end(), self.inserted);
        let kept = end.checked_sub(self.list.slices.first());
        if first > end || kept.is_none_or(|kept| kept >= MOST_DOCUMENTS) {
            return Err(Damaged(format!("it has {end} documents, and its runs {first}")));
        }
        let began = self.list.merging.iter().map(|plan| plan.began).max().unwrap_or(0);
        let latest = self.list.slices.current().first.max(began);
        if latest > end || self.list.columns.is_empty() && end > 0 {
            return Err(Damaged(format!("its list of runs can't be that of {end} documents")));
        }
        self.memtable = Memtable::new(self.list.columns.len(), first);
        self.filters = Filters::new(self.list.columns.len(), self.list.run_documents);
        self.expect()
    }

    /// Expect the filters that are named. Whether there is memory for them is asked before: the
    /// numbers by which they are that large may be forged.
    fn expect(&mut self) -> Result<(), Damaged> {
        let columns = self.list.columns.len() as u8;
        let runs = self.list.runs.iter();
        let mut expected: Vec<_> =
            runs.map(|run| (run.number, run.level, (columns, 0), false)).collect();
        for plan in &self.list.merging {
            let from = self.list.shape(plan.level);
            let until = from.parts_until(plan.done);
            expected.push((plan.target, plan.level + 1, until, true));
        }
        for (run, level, until, again) in expected {
            let merged = level.checked_sub(1).map(|level| self.list.shape(level));
            let pages = merged.map_or(self.list.shape(level).pages(), Shape::pages_into);
            if !self.filters.fits(level) {
                return Err(Damaged(format!("there is no memory for the filter of run {run}")));
            }
            self.filters.reserve(run, self.filters.room(level, 0));
            self.next.insert(run, Expected { level, slot: 0, page: 0, pages, until, again });
        }
        Ok(())
    }

    /// The ranges of keys that must be read whole: the filters of each run, and the memtable. With
    /// each, how many postings the filters are of, by which the time to read them can be told.
    pub fn ranges(&self) -> Vec<(Range, u64)> {
        if self.list.columns.is_empty() {
            return Vec::new();
        }
        let runs = self.list.runs.iter().map(|run| (run.number, run.postings));
        let merging = self.list.merging.iter().map(|plan| (plan.target, plan.postings));
        let filters = runs.chain(merging);
        let filters = filters.map(|(run, postings)| (Range::of_run(keys::FILTERS, run), postings));
        filters.chain([(Range::all(keys::MEMTABLE), 0)]).collect()
    }

    /// The runs that must have tables, and the one of a merge that may. Tables of others are left
    /// over from a write that failed: drop them before anything is written.
    pub fn tables(&self) -> (Vec<u32>, Vec<u32>) {
        let (begun, new) = self.list.merging.iter().partition::<Vec<_>, _>(|plan| plan.done > 0);
        let runs = self.list.runs.iter().map(|run| run.number);
        let begun = begun.iter().map(|plan| plan.target);
        (runs.chain(begun).collect(), new.iter().map(|plan| plan.target).collect())
    }

    /// Take a key of one of the ranges, and its value. Those of a range ascend.
    pub fn take(&mut self, key: &[u8], value: &[u8]) -> Result<(), Damaged> {
        let verified = verify_checksum(key, value)?;
        match key.first() {
            Some(&keys::FILTERS) => self.take_filter(Place::of(key)?, verified),
            Some(&keys::MEMTABLE) => self.take_postings(number_in(key)?, verified),
            _ => Err(Damaged(format!("key {} wasn't asked for", hex(key)))),
        }
    }

    fn take_filter(&mut self, place: Place, packed: &[u8]) -> Result<(), Damaged> {
        let wrong = || Damaged(format!("the filter of run {} isn't whole", place.run));
        let next = self.next.get_mut(&place.run).ok_or_else(wrong)?;
        if next.again && (place.slot, place.page) >= next.until {
            return Ok(());
        }
        let shape = self.list.shape(next.level);
        let part = Part::unpack(place.run, place.slot, place.page, packed)?;
        let whole = part.words.len() == next.pages as usize * shape.page_words;
        let inside = (place.slot, place.page) < next.until;
        if (place.slot, place.page) != (next.slot, next.page) || !whole || !inside {
            return Err(wrong());
        }
        self.filters.put(&part);
        next.page += next.pages;
        if next.page == shape.pages() {
            (next.slot, next.page) = (next.slot + 1, 0);
        }
        Ok(())
    }

    fn take_postings(&mut self, write: u64, packed: &[u8]) -> Result<(), Damaged> {
        if write != self.memtable_writes {
            return Err(Damaged(format!(
                "write {} of the memtable is missing",
                self.memtable_writes
            )));
        }
        self.memtable_writes += 1;
        let added = unpack_added(packed, self.list.columns.len())?;
        let first = self.memtable.first;
        let end = self.inserted.max(first.saturating_add(1));
        let is_here = |one: &Added| {
            let low = one.posting.document & !super::run::MARK;
            number_before(low, end).is_some_and(|number| number >= first)
        };
        if !added.iter().all(is_here) {
            let what =
                format!("a posting of the memtable isn't of documents {first} to before {end}");
            return Err(Damaged(what));
        }
        self.memtable.put(&added);
        Ok(())
    }

    /// Return the shard. An error says that something that is named wasn't there.
    pub fn finish(mut self) -> Result<Shard, Damaged> {
        for (run, next) in &self.next {
            if (next.slot, next.page) != next.until {
                return Err(Damaged(format!("the filter of run {run} isn't whole")));
            }
        }
        self.list.runs.iter().for_each(|run| self.filters.ask(run.number));
        Ok(Shard {
            settings: self.settings,
            merges: self.list.merging.iter().map(Merge::of).collect(),
            list: self.list,
            filters: self.filters,
            memtable: self.memtable,
            memtable_writes: self.memtable_writes,
            inserted: self.inserted,
            all_kept: self.all_kept,
            last_page: self.last_page,
            recent_records: Recent::new(RECENT_BYTES),
            recent_buckets: Recent::new(RECENT_BYTES),
            candidate_bytes: CANDIDATE_BYTES,
        })
    }
}
