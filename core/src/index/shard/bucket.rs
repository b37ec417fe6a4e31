//! A bucket that is read: its newest posting, and what it has grown to.

use super::Shard;
use super::search::Search;
use crate::index::reader::Bucket;

/// A bucket that may exist.
#[derive(Debug)]
pub struct Held {
    pub column: u8,
    pub search: Search,
    /// The time slices in which it may have grown, newest first.
    pub slices: Vec<u32>,
    /// How many values of those were not given yet; none before they are named.
    pub grown_left: Option<usize>,
    /// What it grew to in the newest time slice in which it did.
    pub grown: Option<(u32, Bucket)>,
    pub known: Option<BucketState>,
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

impl Held {
    /// Settle what it is, once all of it was read. Of its newest posting and the newest time slice in which
    /// it has grown, the newer one counts. In one time slice, what it has grown to is newer than its posting.
    pub fn settle(&mut self, shard: &Shard) {
        let found = self.search.found();
        let slice = found.map(|number| shard.list.slices.of_document(number));
        self.grown =
            self.grown.take().filter(|(grown, _)| slice.is_none_or(|slice| slice <= *grown));
        self.known = Some(match (&self.grown, found) {
            (Some((slice, bucket)), _) => grown(shard, *slice, bucket.clone()),
            (None, Some(number)) => alone(shard, number),
            (None, None) => BucketState::Nothing,
        });
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
