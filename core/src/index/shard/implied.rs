//! Buckets that follow from another one, and aren't read.
//!
//! The keys of a document's bands follow from its sketch. So the record of a candidate, found in one
//! bucket, says in which others it is too. If a bucket of the candidate was new when it came, and
//! has not grown since, it has no other document. So of each document's buckets, the last one is
//! read first: that of its exact text, if that may exist. Buckets that follow from the records of
//! the candidates in it aren't read. To read them would cost most of what a copy or a near variant
//! costs.

use std::ops::Range;

use super::bucket::BucketState;
use super::fetch::{BatchKeys, Fetcher, Possible};
use super::state::Shard;
use crate::index::reader::{Poll, Polled};
use crate::index::record::Record;

/// Entries of a bucket from which others follow. A fuller one is that of a mould, whose documents
/// are in grown buckets mostly, and to look at all of them takes longer than to read.
const FEW: usize = 4;

impl Fetcher {
    /// Find out what all buckets of a document are.
    pub(super) fn advance_row(
        &mut self,
        shard: &Shard,
        batch: BatchKeys,
        row: Range<usize>,
    ) -> Polled<()> {
        let (others, first) = (row.start..row.end - 1, self.possible[row.end - 1].bucket);
        let is_known = self.poll_bucket(shard, first, None)?.is_ready();
        let mut all = true;
        for at in others.clone() {
            let bucket = self.possible[at].bucket;
            let _ = self.poll_growth(shard, bucket)?;
            all &= self.state(bucket).is_some();
        }
        if !is_known || all {
            return Ok(if is_known { Poll::Ready(()) } else { Poll::Pending });
        }
        let candidates = ready!(self.candidates(shard, batch, first)?);
        let postings = &self.possible[others.clone()];
        let chosen = self.first_in(shard, batch, &candidates, postings);
        let mut read = Poll::Ready(());
        for (at, candidate) in others.zip(chosen) {
            if self.poll_bucket(shard, self.possible[at].bucket, candidate)?.is_pending() {
                read = Poll::Pending;
            }
        }
        Ok(read)
    }

    /// The documents in a bucket from which others may follow.
    ///
    /// A document that may have moved may not be in all of its buckets any more.
    fn candidates(&mut self, shard: &Shard, batch: BatchKeys, bucket: u32) -> Polled<Vec<u64>> {
        let entries = self.state(bucket).map_or(&[][..], BucketState::entries);
        if entries.len() > FEW || batch.rows == 0 {
            return Ok(Poll::Ready(Vec::new()));
        }
        let settled = shard.list.slices.current().first;
        let candidates: Vec<u64> = entries.iter().copied().filter(|&one| one >= settled).collect();
        let mut read = Poll::Ready(());
        for &number in &candidates {
            if self.record(shard, number)?.is_pending() {
                read = Poll::Pending;
            }
        }
        Ok(read.map(|()| candidates))
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
