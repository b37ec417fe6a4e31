//! Which documents have an id: a column of the runs that has the newest document of each.
//!
//! Under the number of the newest one are the earlier ones with the same key; see `id_list`. Ids
//! with the same key share a list; whoever follows it compares the ids. A list that something is
//! forgotten of is written anew without it.

use std::iter;

use blake2b_simd::Hash;
use blake2b_simd::many::{HashManyJob, hash_many};

use super::fetch::Fetcher;
use super::id_list::Chain;
use super::search::Search;
use super::state::Shard;
use crate::index::reader::{Damaged, Poll, Polled};
use crate::index::record::Record;

/// How many records are looked at together: so many pages are kept, at most.
const TOGETHER: usize = 2048;

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
    pub(super) fn identified(&mut self, shard: &Shard, id: &[u8]) -> Polled<Vec<u64>> {
        let key = id_keys(iter::once(id))[0];
        let Some(mut chain) = self.take_chain(shard, key) else {
            return Ok(Poll::Ready(Vec::new()));
        };
        let followed = self.follow(shard, &mut chain);
        let found = chain.is_whole().then(|| chain.with_id(id));
        self.chains.insert(key, chain);
        followed.map(|()| found.map_or(Poll::Pending, Poll::Ready))
    }

    /// Take the chain of a key out of the fetcher; none before the first write.
    fn take_chain(&mut self, shard: &Shard, key: u64) -> Option<Chain> {
        let slot = shard.id_slot()?;
        let new = || Chain::new(Search::of(slot, key, shard.hit(slot, key).unwrap_or_default()));
        Some(self.chains.remove(&key).unwrap_or_else(new))
    }

    /// Have the newest document with a key of its id be found, and its list be read.
    pub(super) fn newest_of_id(&mut self, shard: &Shard, key: u64) -> Polled<()> {
        let Some(mut chain) = self.take_chain(shard, key) else { return Ok(Poll::Ready(())) };
        let begun = self.begin(shard, &mut chain);
        let newest = chain.newest;
        self.chains.insert(key, chain);
        ready!(begun?);
        if let Some(number) = newest {
            ready!(self.id_list(number)?);
        }
        Ok(Poll::Ready(()))
    }

    /// Find the newest document of a chain.
    fn begin(&mut self, shard: &Shard, chain: &mut Chain) -> Polled<()> {
        if !chain.begun {
            let found = ready!(chain.search.poll(&shard.list, &mut self.reads)?);
            chain.begun = true;
            chain.newest = found.filter(|&number| number >= shard.list.slices.first());
            chain.newest.into_iter().for_each(|number| chain.add(number, true));
        }
        Ok(Poll::Ready(()))
    }

    /// The documents with a key of their ids, if all of them are known.
    pub(super) fn whole_chain(&self, key: u64) -> Option<&Chain> {
        self.chains.get(&key).filter(|chain| chain.is_whole())
    }

    /// Follow a chain as far as possible, and name what has to be read.
    fn follow(&mut self, shard: &Shard, chain: &mut Chain) -> Result<(), Damaged> {
        let first = shard.list.slices.first();
        if self.begin(shard, chain)?.is_pending() {
            return Ok(());
        }
        for number in std::mem::take(&mut chain.open_lists) {
            match self.id_list(number)? {
                Poll::Pending => chain.open_lists.push(number),
                Poll::Ready(Some(list)) => {
                    let kept = list.entries().iter().filter(|(_, number)| *number >= first);
                    kept.for_each(|&(height, number)| chain.add(number, height > 0));
                }
                Poll::Ready(None) if chain.newest == Some(number) => {}
                Poll::Ready(None) => {
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
                let Poll::Ready(record) = self.record(shard, number)? else {
                    missing.push(number);
                    continue;
                };
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
