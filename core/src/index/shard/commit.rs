//! Plans the write of what was decided about a batch, and what has to be read for it.
//!
//! Nothing changes before `Shard::apply`.

use rustc_hash::{FxHashMap, FxHashSet};

use super::checksum::verify_checksum;
use super::fetch::Fetcher;
use super::filter::{Part, Room};
use super::id_chains::NewIds;
use super::id_list::IdList;
use super::keys::{self, number_key};
use super::layout::MOST_DOCUMENTS;
use super::memtable::Added;
use super::merge::{Merge, Work};
use super::record_pages::{RecordPage, page_key, page_of};
use super::run_list::{ID_COLUMN, Merging, RunList};
use super::slices::Dates;
use super::write::Write;
use super::{ReadKey, Shard, Writes};
use crate::index::decision::Changes;
use crate::index::reader::Damaged;

/// What is decided about a batch, as far as it is stored.
#[derive(Debug, Clone, Copy)]
pub struct Decided<'a> {
    /// The numbers of the batch's columns.
    pub columns: &'a [u8],
    pub changes: &'a Changes,
    pub dates: Dates,
}

/// What a value is that was named.
#[derive(Clone, Copy)]
enum Purpose {
    Id { place: usize, at: usize },
    IdList(u64),
    Source { work: usize, at: usize },
    Forgotten(u64),
}

/// A write, while it is known what it has to read.
pub struct Commit {
    list: RunList,
    merges: Vec<Merge>,
    works: Vec<Work>,
    rooms: Vec<(u32, Room)>,
    ids: NewIds,
    pages: FxHashMap<u64, RecordPage>,
    wants: Vec<(ReadKey, Purpose)>,
    named: Vec<Purpose>,
}

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
pub(super) struct Changed {
    /// Its column's number, and its key.
    pub key: (u8, u64),
    /// The time slice, then the bytes of what it has grown to; none if it is one posting.
    pub grown: Option<Vec<u8>>,
}

impl PendingWrite {
    /// About how many bytes it takes to apply it, beside those of the batch.
    pub fn weight(&self, shard: &Shard) -> usize {
        let filters: usize = self.parts.iter().map(|part| 8 * part.words.len()).sum();
        let open = self.emptied.is_some() || shard.open.outgrown_by(&self.added);
        filters + if open { shard.open.size_bytes() } else { 0 }
    }
}

impl Commit {
    /// Plan a write. An error says that something contradicts itself, or that the shard is full.
    pub fn new(shard: &Shard, fetcher: &Fetcher, decided: Decided) -> Result<Self, Damaged> {
        let changes = decided.changes;
        let mut list = shard.list.clone();
        let begins = !decided.columns.is_empty() || !changes.records.is_empty();
        if list.columns.is_empty() && begins {
            list.columns = decided.columns.to_vec();
            list.columns.sort_unstable();
            list.columns.push(ID_COLUMN);
            if !list.columns.is_sorted_by(|one, next| one < next) {
                let got = decided.columns;
                return Err(Damaged(format!("columns {got:?}: takes different ones below 251")));
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
        let works = works.collect();
        let ids = NewIds::new(shard, fetcher, &changes.records)?;
        let (pages, wants, named) = (FxHashMap::default(), Vec::new(), Vec::new());
        let mut made = Self { list, merges, works, rooms, ids, pages, wants, named };
        made.want_forgotten(shard, changes)?;
        for (work, some) in made.works.iter_mut().enumerate() {
            let reads = some.poll_reads(&made.list).into_iter().enumerate();
            made.wants.extend(reads.map(|(at, reads)| (reads, Purpose::Source { work, at })));
        }
        made.want_ids();
        Ok(made)
    }

    fn want_ids(&mut self) {
        for (place, search) in self.ids.open() {
            for (at, reads) in search.name(&self.list) {
                self.wants.push((reads, Purpose::Id { place, at }));
            }
        }
        for number in self.ids.open_lists(self.list.slices.first()) {
            let reads = ReadKey { table: None, key: number_key(keys::ID_LISTS, number) };
            self.wants.push((reads, Purpose::IdList(number)));
        }
    }

    fn want_forgotten(&mut self, shard: &Shard, changes: &Changes) -> Result<(), Damaged> {
        let (last, _) = page_of(shard.inserted);
        let mut before = None;
        for &number in &changes.forgotten {
            let kept = (shard.list.slices.first()..shard.inserted).contains(&number);
            if !kept || before.is_some_and(|before| before >= number) {
                return Err(Damaged(format!("document {number} can't be forgotten")));
            }
            before = Some(number);
        }
        let mut pages: Vec<u64> = changes.forgotten.iter().map(|&n| page_of(n).0).collect();
        pages.dedup();
        for page in pages.into_iter().filter(|&page| page != last) {
            let reads = ReadKey { table: None, key: page_key(page) };
            self.wants.push((reads, Purpose::Forgotten(page)));
        }
        Ok(())
    }

    /// The keys that must be read next, by table and ascending; give all their values to `handle_values`.
    pub fn poll_reads(&mut self) -> Vec<ReadKey> {
        let mut wants = std::mem::take(&mut self.wants);
        wants.sort_unstable_by(|one, other| one.0.cmp(&other.0));
        let (reads, named) = wants.into_iter().unzip();
        self.named = named;
        reads
    }

    /// Take the values of the keys that `poll_reads` returned last, in their order.
    pub fn handle_values<'v>(
        &mut self,
        values: impl IntoIterator<Item = Option<&'v [u8]>>,
    ) -> Result<(), Damaged> {
        let mut values = values.into_iter();
        for purpose in std::mem::take(&mut self.named) {
            let value = values.next().ok_or_else(|| Damaged("a value wasn't given".into()))?;
            match purpose {
                Purpose::Id { place, at } => {
                    if let Some(search) = self.ids.get_mut(place) {
                        search.handle_values(&self.list, at, value)?;
                    }
                }
                Purpose::IdList(number) => {
                    let key = number_key(keys::ID_LISTS, number);
                    let packed = value.map(|value| verify_checksum(&key, value)).transpose()?;
                    let list = packed.map(|packed| IdList::unpack(number, packed)).transpose()?;
                    self.ids.give_list(number, list);
                }
                Purpose::Source { work, at } => self.works[work].handle_values(at, value),
                Purpose::Forgotten(page) => {
                    let missing = || Damaged(format!("page {page} of the records is missing"));
                    let found = RecordPage::unpack(page, value.ok_or_else(missing)?)?;
                    self.pages.insert(page, found);
                }
            }
        }
        self.want_ids();
        Ok(())
    }

    /// About how many bytes it takes to make the write, beside those of the batch.
    pub fn weight(&self, shard: &Shard, decided: Decided) -> usize {
        let merged: usize = self.works.iter().map(Work::bytes).sum();
        let closes = shard.closes(decided.changes.records.len() as u64)
            || self.list.slices.is_due(decided.dates.now, shard.settings.window);
        merged + if closes { shard.open.size_bytes() } else { 0 }
    }

    /// Make the write, once there is nothing left to read.
    pub fn finish(
        self,
        shard: &Shard,
        fetcher: &Fetcher,
        decided: Decided,
    ) -> Result<(Writes, PendingWrite), Damaged> {
        let Self { list, merges, works, rooms, ids, pages, .. } = self;
        let made = PendingWrite { merges, rooms, ..PendingWrite::default() };
        let begun = !list.columns.is_empty();
        let mut write = Write::new(shard, fetcher, decided, list, made);
        for work in works {
            write.merge(work)?;
        }
        write.documents(&pages)?;
        if begun {
            write.postings(&ids)?;
            write.slices();
        }
        Ok(write.done())
    }
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
    /// Whether the memtable is closed before so many documents are added.
    ///
    /// Those of a write are in one run. A run has as nearly as possible the size that its filter
    /// and its pages are made for.
    pub(super) fn closes(&self, documents: u64) -> bool {
        let has = self.inserted - self.open.first;
        let left = u64::from(self.list.run_documents).saturating_sub(has);
        has > 0 && 2 * left < documents
    }

    /// How many more documents fit.
    pub fn room(&self) -> u64 {
        MOST_DOCUMENTS - 1 - (self.inserted - self.list.slices.first())
    }
}
