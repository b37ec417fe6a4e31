//! What the judge sees: a shard, and what has been read for the batch.

use super::bucket::BucketState;
use super::fetch::{BatchKeys, Fetcher};
use super::state::Shard;
use crate::index::reader::{Bucket, IndexReader, Poll, Polled, Posting};

/// Answers the judge. What it has to read first is named by `Fetcher::poll_reads` from then on.
pub struct ShardReader<'a> {
    shard: &'a Shard,
    batch: BatchKeys<'a>,
    /// How many documents are batch for.
    rows: usize,
    fetcher: &'a mut Fetcher,
}

impl<'a> ShardReader<'a> {
    pub fn new(shard: &'a Shard, batch: BatchKeys<'a>, fetcher: &'a mut Fetcher) -> Self {
        Self { shard, batch, rows: batch.documents(), fetcher }
    }

    fn bucket_of(&self, posting: Posting) -> Option<u32> {
        self.fetcher.bucket_of(posting.column * self.rows + posting.row)
    }

    fn content(&self, bucket: Option<u32>) -> Poll<Bucket> {
        let Some(bucket) = bucket else { return Poll::Ready(Bucket::default()) };
        self.fetcher.state(bucket).map_or(Poll::Pending, |state| Poll::Ready(state.bucket()))
    }
}

impl IndexReader for ShardReader<'_> {
    fn may_exist(&mut self, posting: Posting) -> bool {
        self.bucket_of(posting).is_some()
    }

    fn singleton(&mut self, posting: Posting) -> Option<u64> {
        match self.fetcher.state(self.bucket_of(posting)?)? {
            &BucketState::Alone(number, _) => Some(number),
            _ => None,
        }
    }

    fn bucket(&mut self, posting: Posting) -> Polled<Bucket> {
        Ok(self.content(self.bucket_of(posting)))
    }

    fn overflow(&mut self, column: usize, hash: u64) -> Polled<Bucket> {
        let bucket = self.fetcher.overflow(self.shard, self.batch, column, hash)?;
        Ok(self.content(bucket))
    }

    fn record(&mut self, number: u64) -> Polled<&[u8]> {
        self.fetcher.record(self.shard, number)
    }

    fn renewals(&mut self, number: u64) -> Polled<Vec<(u8, i64)>> {
        Ok(self.fetcher.renewals(number)?.map(Clone::clone))
    }

    fn identified(&mut self, id: &[u8]) -> Polled<Vec<u64>> {
        self.fetcher.identified(self.shard, id)
    }

    fn verdict(&mut self, number: u64) -> Polled<Option<Vec<u8>>> {
        Ok(self.fetcher.verdict(number)?.map(Clone::clone))
    }

    fn inserted(&self) -> u64 {
        self.shard.inserted
    }

    fn moved_below(&self) -> u64 {
        self.shard.list.slices.current().first
    }

    fn all_kept(&self) -> bool {
        self.shard.all_kept
    }

    fn unread(&self) -> usize {
        self.fetcher.reads.unread()
    }

    fn room_bytes(&self, known: usize) -> usize {
        self.shard.candidate_bytes.saturating_sub(known + self.fetcher.held_bytes())
    }

    fn release(&mut self) {
        self.fetcher.release();
    }
}
