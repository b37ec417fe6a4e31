//! The parts of a write: merges, runs, postings, buckets, records.
//!
//! Each changed bucket is written in the current time slice, as what it has grown to, with its posting and
//! its mark. So it is found when earlier time slices are dropped. A bucket with one new document needs
//! only a posting.

use std::collections::hash_map::Entry;

use rustc_hash::FxHashMap;

use super::checksum::add_checksum;
use super::fetch::Fetcher;
use super::filter::{Part, Room};
use super::id_list::{Chain, IdList};
use super::keys::{self, GONE, Key, Place, RUNS, Range, grown_key, number_key};
use super::layout::{low_of, pack_bucket, pack_renewals};
use super::memtable::{Added, Memtable, pack_added};
use super::merge::{Merge, Work};
use super::record_pages::{self, DOCUMENTS_A_PAGE, page_of};
use super::run::{MARK, Posting, marked, pack_pages};
use super::run_list::{ID_COLUMN, Run, RunList};
use super::state::Shard;
use super::writes::{TableWrite, Writes};
use crate::index::decision::Decision;
use crate::index::reader::Damaged;

/// What changes in memory once a write is in the store.
#[derive(Default)]
pub struct PendingWrite {
    pub(super) list: Option<RunList>,
    pub(super) merges: Vec<Merge>,
    pub(super) rooms: Vec<(u32, Room)>,
    pub(super) parts: Vec<Part>,
    /// The runs that are asked from now on, and those that are not.
    pub(super) asked: Vec<u32>,
    pub(super) removed: Vec<u32>,
    /// The first document of another memtable.
    pub(super) emptied: Option<u64>,
    pub(super) added: Vec<Added>,
    /// The new records, one after the other, and where each ends.
    pub(super) records: Vec<u8>,
    pub(super) record_ends: Vec<usize>,
    pub(super) last_page: Vec<Vec<u8>>,
    pub(super) forgotten: Vec<u64>,
    pub(super) grown: Vec<Changed>,
}

/// A changed bucket.
pub struct Changed {
    /// Its column's number, and its key.
    pub key: (u8, u64),
    /// The time slice, then the bytes of what it has grown to; none if it is one posting.
    pub grown: Option<Vec<u8>>,
}

impl PendingWrite {
    /// About how many bytes it takes to apply it, beside those of the batch.
    pub fn weight(&self, shard: &Shard) -> usize {
        let filters: usize = self.parts.iter().map(|part| 8 * part.words.len()).sum();
        let open = self.emptied.is_some() || shard.memtable.outgrown_by(&self.added);
        filters + if open { shard.memtable.size_bytes() } else { 0 }
    }
}

/// A write that is being made.
pub struct Write<'a> {
    shard: &'a Shard,
    fetcher: &'a Fetcher,
    columns: &'a [u8],
    decision: &'a Decision,
    list: RunList,
    writes: Writes,
    made: PendingWrite,
}

impl<'a> Write<'a> {
    pub fn new(
        shard: &'a Shard,
        fetcher: &'a Fetcher,
        columns: &'a [u8],
        decision: &'a Decision,
        list: RunList,
        made: PendingWrite,
    ) -> Self {
        Self { shard, fetcher, columns, decision, list, writes: Writes::default(), made }
    }

    /// Return the write, and what changes in memory.
    pub fn done(mut self) -> (Writes, PendingWrite) {
        self.writes.inserted = self.end();
        if self.list != self.shard.list {
            self.writes.puts.push((Key::from_slice(RUNS), self.list.pack()));
            self.made.list = Some(self.list);
        }
        (self.writes, self.made)
    }

    fn put(&mut self, key: Key, value: Vec<u8>) {
        let value = add_checksum(&key, value);
        self.writes.puts.push((key, value));
    }

    /// The number that the next document gets after the batch.
    fn end(&self) -> u64 {
        self.shard.inserted + self.decision.changes.records.len() as u64
    }

    /// Do the steps of a merge, and end it if all are done.
    pub fn merge<'b>(
        &mut self,
        work: Work,
        sources: &mut impl Iterator<Item = Option<&'b [u8]>>,
    ) -> Result<(), Damaged> {
        let worked = work.done(&self.list, sources)?;
        for part in worked.parts {
            self.put_part(part);
        }
        self.writes.tables.extend(worked.tables);
        let plans = self.list.merging.iter_mut();
        if let Some(plan) = plans.into_iter().find(|plan| plan.target == worked.plan.target) {
            plan.clone_from(&worked.plan);
        }
        if !worked.is_done {
            self.made.merges.push(worked.merge);
            return Ok(());
        }
        self.made.asked.push(worked.plan.target);
        for run in self.list.replace(&worked.plan) {
            self.remove(run);
        }
        Ok(())
    }

    fn put_part(&mut self, part: Part) {
        let place = Place { run: part.run, slot: part.slot, page: part.page };
        self.put(place.key(keys::FILTERS), part.pack());
        self.made.parts.push(part);
    }

    fn remove(&mut self, run: Run) {
        self.made.removed.push(run.number);
        self.writes.ranges.push(Range::of_run(keys::FILTERS, run.number));
        self.writes.replaced.push(run.number);
    }

    /// Write what is kept by document: records, renewals, verdicts.
    pub fn documents(&mut self) -> Result<(), Damaged> {
        let changes = &self.decision.changes;
        self.forget()?;
        for (number, renewals) in &changes.renewals {
            self.put(number_key(keys::RENEWALS, *number), pack_renewals(renewals));
        }
        for (number, verdict) in &changes.verdicts {
            self.put(number_key(keys::VERDICTS, *number), verdict.clone());
        }
        let open = std::mem::take(&mut self.made.last_page);
        if changes.records.is_empty() && open == self.shard.last_page {
            self.made.last_page = open;
            return Ok(());
        }
        let records: Vec<&[u8]> = open.iter().chain(&changes.records).map(Vec::as_slice).collect();
        let (first, _) = page_of(self.shard.inserted);
        for (page, some) in (first..).zip(records.chunks(DOCUMENTS_A_PAGE)) {
            self.writes.puts.push(record_pages::pack(page, some)?);
        }
        let left = records.chunks_exact(DOCUMENTS_A_PAGE).remainder();
        self.made.last_page = left.iter().map(|record| record.to_vec()).collect();
        for record in &changes.records {
            self.made.records.extend_from_slice(record);
            self.made.record_ends.push(self.made.records.len());
        }
        Ok(())
    }

    /// Replace the records of forgotten documents by none.
    fn forget(&mut self) -> Result<(), Damaged> {
        let forgotten = &self.decision.changes.forgotten;
        self.made.last_page.clone_from(&self.shard.last_page);
        if forgotten.is_empty() {
            return Ok(());
        }
        if self.shard.all_kept {
            self.put(Key::from_slice(GONE), Vec::new());
        }
        let (last, _) = page_of(self.shard.inserted);
        for some in forgotten.chunk_by(|one, next| page_of(*one).0 == page_of(*next).0) {
            let (page, _) = page_of(some[0]);
            self.writes.erased.push(page);
            let mut records = match self.fetcher.page(page) {
                Some(found) => found.records().map(<[u8]>::to_vec).collect(),
                None => self.made.last_page.clone(),
            };
            for &number in some {
                let missing = || Damaged(format!("document {number} has no record"));
                records.get_mut(page_of(number).1).ok_or_else(missing)?.clear();
            }
            if page == last {
                self.made.last_page = records;
            } else {
                self.writes.puts.push(record_pages::pack(page, &records)?);
            }
        }
        for &number in forgotten {
            self.writes.deletes.push(number_key(keys::RENEWALS, number));
            self.writes.deletes.push(number_key(keys::VERDICTS, number));
        }
        self.made.forgotten.clone_from(forgotten);
        Ok(())
    }

    /// Gather the postings that the memtable gets. It is closed before, if it is full.
    pub fn postings(&mut self, ids: &[Option<u64>]) -> Result<(), Damaged> {
        let shard = self.shard;
        if shard.closes(self.decision.changes.records.len() as u64) {
            self.close(shard.memtable.first, shard.inserted, false);
        }
        if shard.inserted == self.list.slices.current().first {
            self.list.slices.begin(shard.inserted, self.decision.dates.clock.now);
        }
        let dates = &self.decision.dates;
        self.list.slices.note(dates.clock.now, dates.latest, shard.settings.window);
        self.ids(ids)?;
        self.buckets()
    }

    /// Make a run of the memtable, with what was added if `with_added`, and begin another.
    fn close(&mut self, first: u64, end: u64, with_added: bool) {
        let (number, shape) = (self.list.new_number(), self.list.shape(0));
        let pages = 0..shape.pages();
        let empty = Memtable::new(self.list.columns.len(), first);
        let begun = self.made.emptied.is_some() || self.shard.list.columns.is_empty();
        let open = if begun { &empty } else { &self.shard.memtable };
        let added = if with_added { std::mem::take(&mut self.made.added) } else { Vec::new() };
        let (mut count, mut written) = (0, Vec::new());
        for slot in 0..self.list.columns.len() as u8 {
            let postings = open.sorted(slot, &added);
            written.extend(pack_pages(number, slot, shape, pages.clone(), &postings));
            self.put_part(Part::filled(number, slot, shape, pages.clone(), &postings));
            count += postings.len() as u64;
        }
        let table = TableWrite { run: number, pages: written, finished: true, last: true };
        self.writes.tables.push(table);
        self.list.runs.push(Run { number, level: 0, first, end, postings: count });
        let others = self.made.rooms.iter().filter(|(_, room)| room.level == 0).count();
        self.made.rooms.push((number, self.shard.filters.room(0, others)));
        self.made.asked.push(number);
        self.made.emptied = Some(end);
        self.writes.ranges.push(Range::all(keys::MEMTABLE));
    }

    fn memtable_first(&self) -> u64 {
        self.made.emptied.unwrap_or(self.shard.memtable.first)
    }

    fn add(&mut self, slot: u8, hash: u64, number: u64) {
        let posting = Posting { hash, document: low_of(number) };
        self.made.added.push(Added { slot, posting });
    }

    /// Write the newest document of each id that has a new one, and the list of earlier ones.
    fn ids(&mut self, ids: &[Option<u64>]) -> Result<(), Damaged> {
        let mut newest = FxHashMap::<u64, (u64, IdList)>::default();
        for (place, key) in (0..).zip(ids).filter_map(|(place, key)| Some((place, (*key)?))) {
            let number = self.shard.inserted + place;
            match newest.entry(key) {
                Entry::Vacant(new) => drop(new.insert((number, self.earlier(key)))),
                Entry::Occupied(mut known) => {
                    let (before, list) = known.get_mut();
                    self.append(list, *before);
                    *before = number;
                }
            }
        }
        let fetcher = self.fetcher;
        for (&key, chain) in &fetcher.chains {
            if let (Some(last), false) = (chain.newest, newest.contains_key(&key))
                && chain.has_any(&self.decision.changes.forgotten)
            {
                let list = self.left_of(chain, |number| number != last).unwrap_or_default();
                self.put_list(last, &list);
            }
        }
        let slot = self.list.slot(ID_COLUMN)?;
        for (key, (number, list)) in newest {
            self.put_list(number, &list);
            self.add(slot, key, number);
        }
        Ok(())
    }

    /// The stored documents with a key of their ids, as the list of a new one.
    fn earlier(&mut self, key: u64) -> IdList {
        let (fetcher, first) = (self.fetcher, self.list.slices.first());
        let Some(chain) = fetcher.chains.get(&key) else { return IdList::default() };
        if fetcher.whole_chain(key).is_some()
            && let Some(left) = self.left_of(chain, |_| true)
        {
            return left;
        }
        let Some(last) = chain.newest else { return IdList::default() };
        let stored = fetcher.id_lists.get(&last).and_then(Option::as_ref);
        let mut list = stored.cloned().unwrap_or_default();
        list.prune(first);
        if !list.push(last) && stored.is_some() {
            self.writes.deletes.push(number_key(keys::ID_LISTS, last));
        }
        list
    }

    /// What is left of a chain, as a list of those that `takes` says; its lists are deleted. None if
    /// nothing of it is forgotten.
    fn left_of(&mut self, chain: &Chain, takes: impl Fn(u64) -> bool) -> Option<IdList> {
        let left = chain.left(&self.decision.changes.forgotten)?;
        let lists = chain.listed.iter().map(|&number| number_key(keys::ID_LISTS, number));
        self.writes.deletes.extend(lists);
        let mut list = IdList::default();
        left.into_iter().filter(|&one| takes(one)).for_each(|one| self.append(&mut list, one));
        Some(list)
    }

    /// Append a document to a list, which is stored under it if an entry refers to that.
    fn append(&mut self, list: &mut IdList, number: u64) {
        let before = list.clone();
        if list.push(number) {
            self.put_list(number, &before);
        }
    }

    fn put_list(&mut self, number: u64, list: &IdList) {
        if !list.is_empty() {
            self.put(number_key(keys::ID_LISTS, number), list.pack());
        }
    }

    /// Write the buckets that changed. The document of a posting or mark under a grown bucket doesn't
    /// matter; it is one that the memtable has, or will have.
    fn buckets(&mut self) -> Result<(), Damaged> {
        let (columns, changes) = (self.columns, &self.decision.changes);
        let slots = columns.iter().map(|&column| Ok((column, self.list.slot(column)?)));
        let slots: Vec<(u8, u8)> = slots.collect::<Result<_, Damaged>>()?;
        let column = |place: usize| {
            let none = || Damaged(format!("a change in column {place} of {}", columns.len()));
            slots.get(place).copied().ok_or_else(none)
        };
        self.made.added.reserve(changes.postings.len());
        for posting in &changes.postings {
            let (column, slot) = column(posting.column)?;
            if !posting.may_exist || self.fetcher.standing(column, posting.hash)?.is_none() {
                self.add(slot, posting.hash, posting.number);
            } else {
                self.bucket(column, slot, posting.hash, &[posting.number], false)?;
            }
        }
        for bucket in &changes.buckets {
            let (column, slot) = column(bucket.column)?;
            self.bucket(column, slot, bucket.hash, &bucket.entries, bucket.has_overflow)?;
        }
        Ok(())
    }

    fn bucket(
        &mut self,
        column: u8,
        slot: u8,
        hash: u64,
        entries: &[u64],
        has_overflow: bool,
    ) -> Result<(), Damaged> {
        let standing = self.fetcher.standing(column, hash)?.unwrap_or_default();
        let new = !standing.posted && !standing.grown;
        if let (&[number], false, true) = (entries, has_overflow, new)
            && number >= self.shard.inserted
        {
            self.made.grown.push(Changed { key: (column, hash), grown: None });
            self.add(slot, hash, number);
            return Ok(());
        }
        let slice = self.list.slices.current().number;
        let packed = pack_bucket(entries, has_overflow);
        let grown = Some([&slice.to_le_bytes()[..], &packed].concat());
        self.made.grown.push(Changed { key: (column, hash), grown });
        self.put(grown_key(slice, column, hash), packed);
        let latest = (self.end().saturating_sub(1)).max(self.memtable_first());
        if new {
            self.add(slot, hash, latest);
        }
        if !standing.grown {
            let posting = Posting { hash: marked(hash), document: low_of(latest) | MARK };
            self.made.added.push(Added { slot, posting });
        }
        Ok(())
    }

    /// Begin a time slice if it is due, and drop what is older than the window.
    pub fn slices(&mut self) {
        let (now, window) = (self.decision.dates.clock.now, self.shard.settings.window);
        let (first, end) = (self.memtable_first(), self.end());
        let due = self.list.slices.is_due(now, window);
        // Postings without a document can't be a run. They wait for one, and so does the time slice.
        let memtable_postings = self.made.emptied.is_none() && self.shard.memtable.postings() > 0;
        let has_cells = memtable_postings || !self.made.added.is_empty();
        if due && (end > first || !has_cells) && end > self.list.slices.current().first {
            if end > first {
                self.close(first, end, true);
            }
            self.list.slices.begin(end, now);
        }
        if !self.made.added.is_empty() {
            let number = if self.made.emptied.is_some() { 0 } else { self.shard.memtable_writes };
            let packed = pack_added(&self.made.added);
            self.put(number_key(keys::MEMTABLE, number), packed);
        }
        if self.list.slices.drop(now, window) > 0 {
            let (slice, first) = (self.list.slices.kept()[0].number, self.list.slices.first());
            self.writes.ranges.push(Range::grown_before(slice));
            for kind in [keys::ID_LISTS, keys::RENEWALS, keys::VERDICTS] {
                self.writes.ranges.push(Range::below(kind, first));
            }
            self.writes.ranges.push(Range::below(keys::RECORDS, page_of(first).0));
        }
        for run in self.list.drop_dead() {
            self.remove(run);
        }
    }
}
