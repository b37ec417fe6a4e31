//! Which documents have an id: a column of the runs that has the newest document of each.
//!
//! A document with the same id as an earlier one also names that one, so all can be found from the
//! newest. Two ids with the same key share a chain; whoever follows it compares the ids.

use std::iter;

use blake2b_simd::Hash;
use blake2b_simd::many::{HashManyJob, hash_many};

use super::Shard;
use super::lookup::Hit;
use super::reading::Reading;
use super::search::Search;
use crate::index::record::Record;
use crate::index::sight::{Damaged, Seen};

/// The documents with one key of their ids, as far as they are known.
#[derive(Debug)]
pub struct Chain {
    pub search: Search,
    /// The documents that were not forgotten, newest first.
    numbers: Vec<u64>,
    next: Next,
}

#[derive(Debug, Clone, Copy)]
enum Next {
    Newest,
    Document(u64),
    Nothing,
}

impl Chain {
    /// The documents, if all of them are known; those that were forgotten are left out.
    pub fn whole(&self) -> Option<&[u64]> {
        matches!(self.next, Next::Nothing).then_some(&self.numbers)
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

/// Begin to look for the newest document of an id's key.
pub fn newest(shard: &Shard, slot: u8, key: u64) -> Search {
    Search::of(slot, key, shard.hit(slot, key).unwrap_or_default())
}

impl Reading {
    /// The documents that have an id and were not forgotten, newest first.
    pub(super) fn identified(
        &mut self,
        shard: &Shard,
        id: &[u8],
    ) -> Result<Seen<Vec<u64>>, Damaged> {
        let Some(slot) = shard.id_slot() else { return Ok(Seen::Here(Vec::new())) };
        let key = id_keys(iter::once(id))[0];
        let mut chain = self.chains.remove(&key).unwrap_or_else(|| Chain {
            search: newest(shard, slot, key),
            numbers: Vec::new(),
            next: Next::Newest,
        });
        let whole = self.follow(shard, &mut chain)?;
        let has_id = |number: &u64| {
            let record = self.record_here(shard, *number).map(Record::unpack);
            matches!(record, Some(Ok(record)) if record.id == id)
        };
        let numbers = chain.numbers.iter().copied().filter(has_id).collect();
        self.chains.insert(key, chain);
        Ok(if whole { Seen::Here(numbers) } else { Seen::Unread })
    }

    /// Return whether a chain has been followed to its end; else name what has to be read.
    fn follow(&mut self, shard: &Shard, chain: &mut Chain) -> Result<bool, Damaged> {
        let kept = |number: &u64| *number >= shard.list.eras.first();
        let next = |number: Option<u64>| number.filter(kept).map_or(Next::Nothing, Next::Document);
        loop {
            match chain.next {
                Next::Nothing => return Ok(true),
                Next::Newest if chain.search.is_over() => chain.next = next(chain.search.found()),
                Next::Newest => {
                    self.want_newest(chain.search.hash, chain.search.name(&shard.list));
                    return Ok(false);
                }
                Next::Document(number) => {
                    let (here, before) = (self.has_record(shard, number)?, self.previous(number));
                    let (true, Some(before)) = (here, before) else { return Ok(false) };
                    if self.record_here(shard, number).is_some_and(|record| !record.is_empty()) {
                        chain.numbers.push(number);
                    }
                    chain.next = next(before);
                }
            }
        }
    }
}

/// The newest documents of new ids' keys: for each, its key and what is known of it.
pub struct NewIds {
    /// By place among the new records.
    searches: Vec<Option<Search>>,
}

impl NewIds {
    /// Look all ids up in memory; a document that is forgotten has none.
    pub fn new(shard: &Shard, records: &[Vec<u8>]) -> Result<Self, Damaged> {
        let kept = records.iter().enumerate().filter(|(_, record)| !record.is_empty());
        let mut places = Vec::with_capacity(records.len());
        let mut ids = Vec::with_capacity(records.len());
        for (place, record) in kept {
            places.push(place);
            ids.push(Record::unpack(record)?.id);
        }
        let keys = id_keys(ids.into_iter());
        let mut searches = vec![None; records.len()];
        let slot = shard.id_slot().unwrap_or(0);
        for (&place, &key) in places.iter().zip(&keys) {
            searches[place] = Some(Search::of(slot, key, Hit::default()));
        }
        if shard.id_slot().is_some() {
            for (at, hit) in shard.hits(slot, &keys) {
                searches[places[at]] = Some(Search::of(slot, keys[at], hit));
            }
        }
        Ok(Self { searches })
    }

    /// The searches that aren't over, by place.
    pub fn open(&mut self) -> impl Iterator<Item = (usize, &mut Search)> {
        let searches = self.searches.iter_mut().enumerate();
        searches
            .filter_map(|(place, search)| Some((place, search.as_mut()?)))
            .filter(|(_, search)| !search.is_over())
    }

    pub fn get_mut(&mut self, place: usize) -> Option<&mut Search> {
        self.searches[place].as_mut()
    }

    /// The keys of the documents that have one, by place, and the newest stored document of each.
    pub fn newest(&self) -> impl Iterator<Item = (usize, u64, Option<u64>)> {
        let searches = self.searches.iter().enumerate();
        searches.filter_map(|(place, search)| {
            let search = search.as_ref()?;
            Some((place, search.hash, search.found()))
        })
    }
}
