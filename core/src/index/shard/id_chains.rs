//! Which documents have an id: a column of the runs that has the newest document of each.
//!
//! Under the number of the newest one are the earlier ones with the same key; see `id_list`. Ids
//! with the same key share a list; whoever follows it compares the ids. A list that something is
//! forgotten of is written anew without it.

use std::iter;

use blake2b_simd::Hash;
use blake2b_simd::many::{HashManyJob, hash_many};
use rustc_hash::{FxHashMap, FxHashSet};

use super::Shard;
use super::fetch::Fetcher;
use super::id_list::IdList;
use super::search::Search;
use crate::index::reader::{Damaged, Poll};
use crate::index::record::Record;

/// How many records are looked at together: so many pages are kept, at most.
const TOGETHER: usize = 2048;

/// The documents with one key of their ids, as far as they are known.
#[derive(Debug)]
pub struct Chain {
    pub search: Search,
    /// The newest one, once it was found.
    pub newest: Option<u64>,
    begun: bool,
    /// The documents whose lists are or were read, and those whose lists weren't looked at.
    pub listed: FxHashSet<u64>,
    open_lists: Vec<u64>,
    /// All documents, and those whose records weren't looked at.
    found: FxHashSet<u64>,
    open: Vec<u64>,
    /// The documents that were not forgotten, with the places of their ids.
    numbers: Vec<(u64, usize)>,
    ids: Vec<Vec<u8>>,
}

impl Chain {
    fn new(search: Search) -> Self {
        Self {
            search,
            newest: None,
            begun: false,
            listed: FxHashSet::default(),
            open_lists: Vec::new(),
            found: FxHashSet::default(),
            open: Vec::new(),
            numbers: Vec::new(),
            ids: Vec::new(),
        }
    }

    fn is_whole(&self) -> bool {
        self.begun && self.open_lists.is_empty() && self.open.is_empty()
    }

    fn add(&mut self, number: u64, with_list: bool) {
        if self.found.insert(number) {
            self.open.push(number);
        }
        if with_list && self.listed.insert(number) {
            self.open_lists.push(number);
        }
    }

    fn add_id(&mut self, number: u64, id: &[u8]) {
        let place = self.ids.iter().position(|other| other == id).unwrap_or_else(|| {
            self.ids.push(id.to_vec());
            self.ids.len() - 1
        });
        self.numbers.push((number, place));
    }

    /// The documents with an id, newest first.
    fn with_id(&self, id: &[u8]) -> Vec<u64> {
        let own = self.numbers.iter().filter(|(_, place)| self.ids[*place] == id);
        let mut numbers: Vec<u64> = own.map(|(number, _)| *number).collect();
        numbers.sort_unstable_by(|one, other| other.cmp(one));
        numbers
    }

    /// Whether one of the documents is among some, which ascend.
    pub fn has_any(&self, some: &[u64]) -> bool {
        self.numbers.iter().any(|(number, _)| some.binary_search(number).is_ok())
    }

    /// What is left of the documents without some, which ascend, if any is forgotten: ascending.
    pub fn left(&self, forgotten: &[u64]) -> Option<Vec<u64>> {
        let numbers = self.numbers.iter().map(|(number, _)| *number);
        let mut left: Vec<u64> =
            numbers.filter(|number| forgotten.binary_search(number).is_err()).collect();
        left.sort_unstable();
        (left.len() < self.found.len()).then_some(left)
    }
}

/// The keys of ids. The processor hashes several at a time.
pub fn id_keys<'a>(ids: impl Iterator<Item = &'a [u8]>) -> Vec<u64> {
    let mut params = blake2b_simd::Params::new();
    params.hash_length(8).personal(b"neardup id");
    let mut jobs: Vec<HashManyJob> = ids.map(|id| HashManyJob::new(&params, id)).collect();
    hash_many(&mut jobs);
    let key = |digest: Hash| digest.as_bytes().try_into().map(u64::from_le_bytes);
    jobs.iter().map(|job| key(job.to_hash()).expect("a digest of 8 bytes")).collect()
}

impl Fetcher {
    /// The documents that have an id and were not forgotten, newest first.
    pub(super) fn identified(
        &mut self,
        shard: &Shard,
        id: &[u8],
    ) -> Result<Poll<Vec<u64>>, Damaged> {
        let Some(slot) = shard.id_slot() else { return Ok(Poll::Ready(Vec::new())) };
        let key = id_keys(iter::once(id))[0];
        let mut chain = self.chains.remove(&key).unwrap_or_else(|| {
            Chain::new(Search::of(slot, key, shard.hit(slot, key).unwrap_or_default()))
        });
        let followed = self.follow(shard, &mut chain);
        let found = chain.is_whole().then(|| chain.with_id(id));
        self.chains.insert(key, chain);
        followed.map(|()| found.map_or(Poll::Pending, Poll::Ready))
    }

    /// The documents with a key of their ids, if all of them are known.
    pub(super) fn whole_chain(&self, key: u64) -> Option<&Chain> {
        self.chains.get(&key).filter(|chain| chain.is_whole())
    }

    /// Follow a chain as far as possible, and name what has to be read.
    fn follow(&mut self, shard: &Shard, chain: &mut Chain) -> Result<(), Damaged> {
        let first = shard.list.slices.first();
        if !chain.begun {
            if !chain.search.is_over() {
                self.want_newest(chain.search.hash, chain.search.name(&shard.list));
                return Ok(());
            }
            chain.begun = true;
            chain.newest = chain.search.found().filter(|&number| number >= first);
            chain.newest.into_iter().for_each(|number| chain.add(number, true));
        }
        for number in std::mem::take(&mut chain.open_lists) {
            match self.id_list(number) {
                None => chain.open_lists.push(number),
                Some(Some(list)) => {
                    let kept = list.entries().iter().filter(|(_, number)| *number >= first);
                    kept.for_each(|&(height, number)| chain.add(number, height > 0));
                }
                Some(None) if chain.newest == Some(number) => {}
                Some(None) => {
                    let message = format!("the list of documents before {number} is missing");
                    return Err(Damaged(message));
                }
            }
        }
        loop {
            chain.open.sort_unstable(); // Those on the same page are looked at together.
            let rest = chain.open.len().saturating_sub(TOGETHER);
            let some = chain.open.split_off(rest);
            let mut missing = Vec::new();
            for number in some {
                if !self.has_record(shard, number)? {
                    missing.push(number);
                    continue;
                }
                let record = self.record_here(shard, number).unwrap_or_default();
                if !record.is_empty() {
                    chain.add_id(number, Record::unpack(record)?.id);
                }
            }
            if rest > 0 && missing.is_empty() {
                self.release();
                continue;
            }
            chain.open.append(&mut missing);
            return Ok(());
        }
    }
}

/// The keys of new documents' ids, and the lists of the earlier documents with them.
pub struct NewIds {
    /// By place among the new records; a document that is forgotten has none.
    keys: Vec<Option<u64>>,
    /// Those that may be here, unless their chains were followed; by key, the place.
    searches: Vec<Search>,
    search_of: FxHashMap<u64, usize>,
    lists: FxHashMap<u64, Option<IdList>>,
}

impl NewIds {
    /// Look all ids up in memory.
    pub fn new(shard: &Shard, fetcher: &Fetcher, records: &[Vec<u8>]) -> Result<Self, Damaged> {
        let kept = records.iter().enumerate().filter(|(_, record)| !record.is_empty());
        let mut places = Vec::with_capacity(records.len());
        let mut ids = Vec::with_capacity(records.len());
        for (place, record) in kept {
            places.push(place);
            ids.push(Record::unpack(record)?.id);
        }
        let of_places = id_keys(ids.into_iter());
        let mut keys = vec![None; records.len()];
        for (&place, &key) in places.iter().zip(&of_places) {
            keys[place] = Some(key);
        }
        let (mut searches, mut search_of) = (Vec::new(), FxHashMap::default());
        if let Some(slot) = shard.id_slot() {
            for (at, hit) in shard.hits(slot, &of_places) {
                let key = of_places[at];
                if fetcher.whole_chain(key).is_none() && !search_of.contains_key(&key) {
                    search_of.insert(key, searches.len());
                    searches.push(Search::of(slot, key, hit));
                }
            }
        }
        Ok(Self { keys, searches, search_of, lists: FxHashMap::default() })
    }

    /// The searches that aren't over, by place.
    pub fn open(&mut self) -> impl Iterator<Item = (usize, &mut Search)> {
        self.searches.iter_mut().enumerate().filter(|(_, search)| !search.is_over())
    }

    pub fn get_mut(&mut self, place: usize) -> Option<&mut Search> {
        self.searches.get_mut(place)
    }

    /// The documents from `first` on that were found, and whose lists weren't asked for. They are
    /// asked for now.
    pub fn open_lists(&mut self, first: u64) -> Vec<u64> {
        let Self { searches, lists, .. } = self;
        let found = searches.iter().filter(|search| search.is_over()).filter_map(Search::found);
        let new = found.filter(|&number| number >= first && !lists.contains_key(&number));
        let new: Vec<u64> = new.collect();
        self.lists.extend(new.iter().map(|&number| (number, None)));
        new
    }

    pub fn give_list(&mut self, number: u64, list: Option<IdList>) {
        self.lists.insert(number, list);
    }

    /// The keys of the documents that have one, by place.
    pub fn keys(&self) -> impl Iterator<Item = (usize, u64)> {
        self.keys.iter().enumerate().filter_map(|(place, key)| Some((place, (*key)?)))
    }

    /// The newest stored document of a key, from `first` on, and its list if there is one.
    pub fn newest(&self, key: u64, first: u64) -> Option<(u64, Option<&IdList>)> {
        let found = self.searches[*self.search_of.get(&key)?].found();
        let number = found.filter(|&number| number >= first)?;
        Some((number, self.lists.get(&number).and_then(Option::as_ref)))
    }
}
