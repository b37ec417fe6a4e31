//! Plans the write of what was decided about a batch, and what has to be read for it.
//!
//! Nothing changes before `Shard::apply`.

use rustc_hash::FxHashSet;

use super::fetch::Fetcher;
use super::filter::{Filters, Room};
use super::id_chains::id_keys;
use super::layout::{MOST_DOCUMENTS, pack_bucket};
use super::memtable::Memtable;
use super::merge::{Merge, Work};
use super::reads::ReadKey;
use super::record_pages::page_of;
use super::run_list::{ID_COLUMN, Merging, RunList};
use super::state::Shard;
use super::write::{Changed, PendingWrite, Write};
use super::writes::Writes;
use crate::index::decision::{Changes, Decision};
use crate::index::reader::{Damaged, Poll, Polled};
use crate::index::record::Record;

/// A write, while it is known what it has to read.
pub struct Commit {
    list: RunList,
    merges: Vec<Merge>,
    works: Vec<Work>,
    /// The pages that merges read, and what those have that were read.
    sources: Vec<ReadKey>,
    source_pages: Vec<Option<Vec<u8>>>,
    rooms: Vec<(u32, Room)>,
    /// The keys of the ids of new documents; a document that is forgotten has none.
    ids: Vec<Option<u64>>,
    /// Those of them that earlier documents may have.
    known_ids: FxHashSet<u64>,
    /// The pages of records that forgotten documents leave.
    pages: Vec<u64>,
}

impl Commit {
    /// Plan a write. An error says that something contradicts itself, or that the shard is full.
    pub fn new(
        shard: &Shard,
        fetcher: &mut Fetcher,
        columns: &[u8],
        decision: &Decision,
    ) -> Result<Self, Damaged> {
        let changes = &decision.changes;
        let mut list = shard.list.clone();
        let begins = !columns.is_empty() || !changes.records.is_empty();
        if list.columns.is_empty() && begins {
            list.columns = columns.to_vec();
            list.columns.sort_unstable();
            list.columns.push(ID_COLUMN);
            if !list.columns.is_sorted_by(|one, next| one < next) {
                let message = format!("columns {columns:?}: takes different ones below 251");
                return Err(Damaged(message));
            }
        }
        let documents = changes.records.len() as u64;
        if documents > shard.room() {
            return Err(Damaged(format!("it is full: {documents} more documents don't fit")));
        }
        let (mut merges, mut rooms) = (shard.merges.clone(), Vec::new());
        begin_merges(shard, &mut list, &mut merges, &mut rooms);
        let plans = list.merging.iter();
        let works = plans.filter_map(|plan| {
            let place = merges.iter().position(|merge| merge.target == plan.target)?;
            let inserted = shard.inserted + documents;
            Some(Work::due(merges.swap_remove(place), plan, &list, inserted, documents))
        });
        let works: Vec<Work> = works.collect();
        let sources: Vec<ReadKey> = works.iter().flat_map(|work| work.reads(&list)).collect();
        sources.iter().for_each(|key| fetcher.reads.want(key.clone()));
        let (ids, known_ids) = find_ids(shard, fetcher, &changes.records)?;
        let pages = forgotten_pages(shard, changes)?;
        let source_pages = Vec::with_capacity(sources.len());
        Ok(Self { list, merges, works, sources, source_pages, rooms, ids, known_ids, pages })
    }

    /// Have the fetcher read what the write needs.
    pub fn poll(&mut self, shard: &Shard, fetcher: &mut Fetcher) -> Polled<()> {
        let mut read = Poll::Ready(());
        while let Some(key) = self.sources.get(self.source_pages.len()) {
            let Poll::Ready(page) = fetcher.reads.take(key.clone()) else {
                read = Poll::Pending;
                break;
            };
            self.source_pages.push(page);
        }
        for &key in &self.known_ids {
            if fetcher.newest_of_id(shard, key)?.is_pending() {
                read = Poll::Pending;
            }
        }
        for &page in &self.pages {
            if fetcher.poll_page(page)?.is_pending() {
                read = Poll::Pending;
            }
        }
        Ok(read)
    }

    /// About how many bytes it takes to make the write, beside those of the batch.
    pub fn weight(&self, shard: &Shard, decision: &Decision) -> usize {
        let closes = shard.closes(decision.changes.records.len() as u64)
            || self.list.slices.is_due(decision.dates.clock.now, shard.settings.window);
        let merged: usize = self.source_pages.iter().flatten().map(Vec::len).sum();
        merged + if closes { shard.memtable.size_bytes() } else { 0 }
    }

    /// Make the write, once there is nothing left to read.
    pub fn finish(
        self,
        shard: &Shard,
        fetcher: &Fetcher,
        columns: &[u8],
        decision: &Decision,
    ) -> Result<(Writes, PendingWrite), Damaged> {
        let Self { list, merges, works, source_pages, rooms, ids, .. } = self;
        let made = PendingWrite { merges, rooms, ..PendingWrite::default() };
        let begun = !list.columns.is_empty();
        let mut write = Write::new(shard, fetcher, columns, decision, list, made);
        let mut sources = source_pages.iter().map(Option::as_deref);
        for work in works {
            write.merge(work, &mut sources)?;
        }
        write.documents()?;
        if begun {
            write.postings(&ids)?;
            write.slices();
        }
        Ok(write.done())
    }
}

/// Look the ids of new documents up in memory: return the key of each, and those that may be here
/// and weren't followed.
fn find_ids(
    shard: &Shard,
    fetcher: &Fetcher,
    records: &[Vec<u8>],
) -> Result<(Vec<Option<u64>>, FxHashSet<u64>), Damaged> {
    let kept: Vec<usize> = (0..records.len()).filter(|&at| !records[at].is_empty()).collect();
    let unpacked = kept.iter().map(|&at| Record::unpack(&records[at]));
    let unpacked = unpacked.collect::<Result<Vec<Record>, Damaged>>()?;
    let found = id_keys(unpacked.iter().map(|record| record.id));
    let mut keys = vec![None; records.len()];
    for (&at, &key) in kept.iter().zip(&found) {
        keys[at] = Some(key);
    }
    let hits = shard.id_slot().map(|slot| shard.hits(slot, &found)).unwrap_or_default();
    let known = hits.into_iter().map(|(at, _)| found[at]);
    Ok((keys, known.filter(|&key| fetcher.whole_chain(key).is_none()).collect()))
}

/// Return the pages of records that forgotten documents leave, but for the last one.
fn forgotten_pages(shard: &Shard, changes: &Changes) -> Result<Vec<u64>, Damaged> {
    let kept = shard.list.slices.first()..shard.inserted;
    let ascend = changes.forgotten.is_sorted_by(|one, next| one < next);
    if let Some(number) = changes.forgotten.iter().find(|number| !ascend || !kept.contains(number))
    {
        return Err(Damaged(format!("document {number} can't be forgotten")));
    }
    let (last, _) = page_of(shard.inserted);
    let mut pages: Vec<u64> = changes.forgotten.iter().map(|&number| page_of(number).0).collect();
    pages.dedup();
    pages.retain(|&page| page != last);
    Ok(pages)
}

/// Begin the merges that are due: of each level, one at a time.
fn begin_merges(
    shard: &Shard,
    list: &mut RunList,
    merges: &mut Vec<Merge>,
    rooms: &mut Vec<(u32, Room)>,
) {
    let levels: FxHashSet<u8> = list.runs.iter().map(|run| run.level).collect();
    for level in levels {
        if list.merging.iter().any(|plan| plan.level == level) {
            continue;
        }
        let Some(runs) = list.to_merge(level) else { continue };
        let sources = runs.iter().map(|run| run.number).collect();
        let target = list.new_number();
        let began = shard.inserted;
        let plan = Merging { level, sources, target, began, done: 0, postings: 0 };
        merges.push(Merge::of(&plan));
        list.merging.push(plan);
        rooms.push((target, shard.filters.room(level + 1, 0)));
    }
}

impl Shard {
    /// Continue with what a write that is in the store has changed.
    ///
    /// `fetcher` and `pending` must be those of the last decision, and of this state.
    pub fn apply(&mut self, fetcher: Fetcher, pending: PendingWrite) {
        self.remember(&fetcher);
        if let Some(list) = pending.list {
            if self.list.columns.is_empty() && !list.columns.is_empty() {
                self.filters = Filters::new(list.columns.len(), list.run_documents);
                self.memtable = Memtable::new(list.columns.len(), self.inserted);
            }
            self.list = list;
        }
        self.merges = pending.merges;
        for (run, room) in pending.rooms {
            self.filters.reserve(run, room);
        }
        pending.parts.iter().for_each(|part| self.filters.put(part));
        pending.asked.iter().for_each(|&run| self.filters.ask(run));
        pending.removed.iter().for_each(|&run| self.filters.remove(run));
        if let Some(first) = pending.emptied {
            self.memtable.empty(first);
            self.memtable_writes = 0;
        }
        if !pending.added.is_empty() {
            self.memtable.put(&pending.added);
            self.memtable_writes += 1;
        }
        let mut start = 0;
        for &end in &pending.record_ends {
            self.recent_records.add(self.inserted, &pending.records[start..end]);
            self.inserted += 1;
            start = end;
        }
        self.last_page = pending.last_page;
        self.all_kept &= pending.forgotten.is_empty();
        pending.forgotten.iter().for_each(|number| self.recent_records.forget(number));
        for Changed { key, grown } in pending.grown {
            match grown {
                Some(bucket) => self.recent_buckets.put(key, &bucket),
                None => self.recent_buckets.forget(&key),
            }
        }
    }

    /// Keep what was read for the next batch.
    fn remember(&mut self, fetcher: &Fetcher) {
        fetcher.old_records.iter().for_each(|&number| self.recent_records.keep(number));
        for &number in &fetcher.read_records {
            if self.recent_records.get(&number).is_none()
                && let Some(record) = fetcher.read_record(number)
            {
                self.recent_records.add(number, record);
            }
        }
        fetcher.old_buckets.iter().for_each(|&key| self.recent_buckets.keep(key));
        for (key, slice, bucket) in fetcher.read_grown() {
            let packed = pack_bucket(&bucket.entries, bucket.has_overflow);
            self.recent_buckets.put(key, &[&slice.to_le_bytes()[..], &packed].concat());
        }
    }

    /// Whether the memtable is closed before so many documents are added.
    ///
    /// Those of a write are in one run. A run has as nearly as possible the size that its filter
    /// and its pages are made for.
    pub(super) fn closes(&self, documents: u64) -> bool {
        let has = self.inserted - self.memtable.first;
        let left = u64::from(self.list.run_documents).saturating_sub(has);
        has > 0 && 2 * left < documents
    }

    /// How many more documents fit.
    pub fn room(&self) -> u64 {
        MOST_DOCUMENTS - 1 - (self.inserted - self.list.slices.first())
    }
}
