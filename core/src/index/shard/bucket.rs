//! A bucket that is read: its newest posting, and what it has grown to.

use super::keys::grown_key;
use super::layout::unpack_bucket;
use super::reads::Reads;
use super::search::Search;
use super::state::Shard;
use crate::index::reader::{Bucket, Poll, Polled};

/// A bucket that may exist.
#[derive(Debug)]
pub struct BucketFetch {
    pub column: u8,
    pub search: Search,
    /// The time slices in which it may have grown, as far as they weren't read.
    pub slices: Vec<u32>,
    /// What it grew to in the newest slice in which it did.
    pub grown: Option<(u32, Bucket)>,
    pub state: Option<BucketState>,
}

/// What a bucket is, without the entries that are not kept any more.
#[derive(Debug)]
pub enum BucketState {
    Nothing,
    /// It has one posting: the number of its document.
    Alone(u64, Standing),
    Grown(Bucket, Standing),
}

impl BucketState {
    pub fn entries(&self) -> &[u64] {
        match self {
            Self::Nothing => &[],
            Self::Alone(number, _) => std::slice::from_ref(number),
            Self::Grown(bucket, _) => &bucket.entries,
        }
    }

    pub fn bucket(&self) -> Bucket {
        let has_overflow = matches!(self, Self::Grown(bucket, _) if bucket.has_overflow);
        Bucket { entries: self.entries().to_vec(), has_overflow }
    }

    pub fn standing(&self) -> Standing {
        match self {
            Self::Nothing => Standing::default(),
            Self::Alone(_, standing) | Self::Grown(_, standing) => *standing,
        }
    }
}

/// Whether a bucket has a posting, or has grown, in the current time slice.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Standing {
    pub posted: bool,
    pub grown: bool,
}

impl BucketFetch {
    /// Find out what the bucket is; return whether that is known.
    ///
    /// `singleton` is a document that is the only one in it if it has not grown.
    pub fn poll(&mut self, shard: &Shard, reads: &mut Reads, singleton: Option<u64>) -> Polled<()> {
        ready!(self.poll_growth(shard, reads)?);
        if self.state.is_some() {
            return Ok(Poll::Ready(()));
        }
        if let (Some(number), None, None) = (singleton, &self.grown, self.search.found) {
            self.state = Some(alone(shard, number));
            return Ok(Poll::Ready(()));
        }
        let found = ready!(self.search.poll(&shard.list, reads)?);
        // Of its newest posting and the newest slice in which it has grown, the newer one counts. In
        // one slice, what it has grown to is newer than its posting.
        let slice = found.map(|number| shard.list.slices.of_document(number));
        self.grown = self.grown.take().filter(|(grown, _)| slice.is_none_or(|one| one <= *grown));
        self.state = Some(match (&self.grown, found) {
            (Some((slice, bucket)), _) => grown(shard, *slice, bucket.clone()),
            (None, Some(number)) => alone(shard, number),
            (None, None) => BucketState::Nothing,
        });
        Ok(Poll::Ready(()))
    }

    /// Find out what the bucket may have grown to.
    pub fn poll_growth(&mut self, shard: &Shard, reads: &mut Reads) -> Polled<()> {
        if self.state.is_some() || self.slices.is_empty() {
            return Ok(Poll::Ready(()));
        }
        let mut left = Vec::new();
        for slice in std::mem::take(&mut self.slices) {
            match reads.take_verified(grown_key(slice, self.column, self.search.hash))? {
                Poll::Pending => left.push(slice),
                Poll::Ready(None) => {}
                Poll::Ready(Some(packed)) => {
                    let bucket = unpack_bucket(&packed, shard.inserted)?;
                    if self.grown.as_ref().is_none_or(|(newest, _)| *newest < slice) {
                        self.grown = Some((slice, bucket));
                    }
                }
            }
        }
        self.slices = left;
        if !self.slices.is_empty() {
            return Ok(Poll::Pending);
        }
        if let Some((slice, _)) = self.grown {
            self.search.after(slice, &shard.list);
        }
        Ok(Poll::Ready(()))
    }
}

/// A bucket that has one posting.
pub fn alone(shard: &Shard, number: u64) -> BucketState {
    let slices = &shard.list.slices;
    if number < slices.first() {
        return BucketState::Nothing;
    }
    BucketState::Alone(number, Standing { posted: number >= slices.current().first, grown: false })
}

/// A bucket that has grown in a time slice.
pub fn grown(shard: &Shard, slice: u32, mut bucket: Bucket) -> BucketState {
    let slices = &shard.list.slices;
    bucket.entries.retain(|&one| one >= slices.first());
    BucketState::Grown(bucket, Standing { posted: false, grown: slice == slices.current().number })
}
