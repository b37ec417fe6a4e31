//! Buckets that follow from another one, and aren't read.
//!
//! The keys of a document's bands follow from its sketch. So the record of a candidate, found in one
//! bucket, says in which others it is too. If a bucket of the candidate was new when it came, and
//! has not grown since, it has no other document. So of each document's buckets, the last one is
//! read first: that of its exact text, if that may exist. Buckets that follow from the records of
//! the candidates in it aren't read. To read them would cost most of what a copy or a near variant
//! costs.

use std::ops::Range;

use super::Shard;
use super::bucket::BucketState;
use super::fetch::{BatchKeys, Fetcher, Possible};
use crate::index::reader::Damaged;
use crate::index::record::Record;

/// Entries of a bucket from which others follow. A fuller one is that of a mould, whose documents
/// are in grown buckets mostly, and to look at all of them takes longer than to read.
const FEW: usize = 4;

impl Fetcher {
    /// Return whether all buckets of a document are known.
    pub(super) fn advance_row(
        &mut self,
        shard: &Shard,
        batch: BatchKeys,
        row: Range<usize>,
    ) -> Result<bool, Damaged> {
        let (others, first) = (row.start..row.end - 1, self.possible[row.end - 1].bucket);
        let is_known = self.step(shard, first, None);
        let mut all = true;
        for at in others.clone() {
            let bucket = self.possible[at].bucket;
            self.step_growth(shard, bucket);
            all &= self.known(bucket).is_some();
        }
        if !is_known || all {
            return Ok(is_known);
        }
        let Some(candidates) = self.candidates(shard, batch, first)? else { return Ok(false) };
        let postings = &self.possible[others.clone()];
        let chosen = self.first_in(shard, batch, &candidates, postings);
        let mut all = true;
        for (at, candidate) in others.zip(chosen) {
            all &= self.step(shard, self.possible[at].bucket, candidate);
        }
        Ok(all)
    }

    /// The documents in a bucket from which others may follow; none if their records must be read.
    ///
    /// A document that may have moved may not be in all of its buckets any more.
    fn candidates(
        &mut self,
        shard: &Shard,
        batch: BatchKeys,
        bucket: u32,
    ) -> Result<Option<Vec<u64>>, Damaged> {
        let entries = self.known(bucket).map_or(&[][..], BucketState::entries);
        if entries.len() > FEW || batch.rows == 0 {
            return Ok(Some(Vec::new()));
        }
        let settled = shard.list.slices.current().first;
        let candidates: Vec<u64> = entries.iter().copied().filter(|&one| one >= settled).collect();
        let mut all = true;
        for &number in &candidates {
            all &= self.has_record(shard, number)?;
        }
        Ok(all.then_some(candidates))
    }

    /// Which of some documents was the first one in each of a document's buckets, if one was.
    fn first_in(
        &self,
        shard: &Shard,
        batch: BatchKeys,
        candidates: &[u64],
        postings: &[Possible],
    ) -> Vec<Option<u64>> {
        let record = |&number: &u64| {
            let record = Record::unpack(self.record_here(shard, number)?).ok()?;
            let bits = batch.columns.len().div_ceil(8);
            (record.new.len() == bits).then_some((number, record))
        };
        let records: Vec<(u64, Record)> = candidates.iter().filter_map(record).collect();
        let first_in = |posting: &Possible| {
            let column = usize::from(posting.column);
            let band = usize::from(batch.columns[column]);
            let own = batch.slots(posting.row as usize, band)?;
            let shares = |(_, record): &&(u64, Record)| {
                record.new[column / 8] >> (column % 8) & 1 == 1
                    && record.sketch.get(batch.slots_of(band)) == Some(own)
            };
            if band < batch.bands { records.iter().find(shares).map(|one| one.0) } else { None }
        };
        postings.iter().map(first_in).collect()
    }
}
