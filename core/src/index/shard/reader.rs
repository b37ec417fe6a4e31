//! What the judge sees: a shard, and what has been read for the batch.

use super::Shard;
use super::fetch::{BatchKeys, Fetcher};
use crate::index::reader::{Bucket, Damaged, IndexReader, Poll, Posting};

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

    fn posting(&self, posting: Posting) -> Option<u32> {
        self.fetcher.bucket_of(posting.column * self.rows + posting.row)
    }

    fn seen(&self, bucket: Option<u32>) -> Poll<Bucket> {
        bucket.map_or(Poll::Ready(Bucket::default()), |bucket| seen(self.fetcher.content(bucket)))
    }
}

fn seen<T>(found: Option<T>) -> Poll<T> {
    found.map_or(Poll::Pending, Poll::Ready)
}

impl IndexReader for ShardReader<'_> {
    fn may_exist(&mut self, posting: Posting) -> bool {
        self.posting(posting).is_some()
    }

    fn singleton(&mut self, posting: Posting) -> Option<u64> {
        self.fetcher.singleton(self.posting(posting)?)
    }

    fn bucket(&mut self, posting: Posting) -> Result<Poll<Bucket>, Damaged> {
        Ok(self.seen(self.posting(posting)))
    }

    fn overflow(&mut self, column: usize, hash: u64) -> Result<Poll<Bucket>, Damaged> {
        let bucket = self.fetcher.overflow(self.shard, self.batch, column, hash)?;
        Ok(self.seen(bucket))
    }

    fn record(&mut self, number: u64) -> Result<Poll<&[u8]>, Damaged> {
        // Floods ask for most records that are in memory, so these are looked up once.
        if let Some((record, age)) = self.shard.find_record(number) {
            self.fetcher.note_record(number, age);
            return Ok(Poll::Ready(record));
        }
        if !self.fetcher.has_record(self.shard, number)? {
            return Ok(Poll::Pending);
        }
        Ok(seen(self.fetcher.record_here(self.shard, number)))
    }

    fn renewals(&mut self, number: u64) -> Result<Poll<Vec<(u8, i64)>>, Damaged> {
        Ok(seen(self.fetcher.renewals(number).cloned()))
    }

    fn identified(&mut self, id: &[u8]) -> Result<Poll<Vec<u64>>, Damaged> {
        self.fetcher.identified(self.shard, id)
    }

    fn verdict(&mut self, number: u64) -> Result<Poll<Option<Vec<u8>>>, Damaged> {
        Ok(seen(self.fetcher.verdict(number).cloned()))
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
        self.fetcher.unread()
    }

    fn room_bytes(&self, known: usize) -> usize {
        self.shard.candidate_bytes.saturating_sub(known + self.fetcher.held_bytes())
    }

    fn release(&mut self) {
        self.fetcher.release();
    }
}
