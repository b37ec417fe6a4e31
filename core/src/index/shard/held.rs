//! A bucket that is read: its newest cell, and what it has grown to.

use super::Shard;
use super::search::Search;
use crate::index::sight::Bucket;

/// A bucket that may exist.
#[derive(Debug)]
pub struct Held {
    pub column: u8,
    pub search: Search,
    /// The eras in which it may have grown, newest first.
    pub eras: Vec<u32>,
    /// How many values of those were not given yet; none before they are named.
    pub grown_left: Option<usize>,
    /// What it grew to in the newest era in which it did.
    pub grown: Option<(u32, Bucket)>,
    pub known: Option<Known>,
}

/// What a bucket is, without the entries that are not kept any more.
#[derive(Debug)]
pub enum Known {
    Nothing,
    /// It has one cell: the number of its document.
    Alone(u64, Standing),
    Grown(Bucket, Standing),
}

impl Known {
    pub fn entries(&self) -> &[u64] {
        match self {
            Self::Nothing => &[],
            Self::Alone(number, _) => std::slice::from_ref(number),
            Self::Grown(bucket, _) => &bucket.entries,
        }
    }

    pub fn bucket(&self) -> Bucket {
        let beyond = matches!(self, Self::Grown(bucket, _) if bucket.beyond);
        Bucket { entries: self.entries().to_vec(), beyond }
    }

    pub fn standing(&self) -> Standing {
        match self {
            Self::Nothing => Standing::default(),
            Self::Alone(_, standing) | Self::Grown(_, standing) => *standing,
        }
    }
}

/// Whether a bucket has a cell, or has grown, in the current era.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Standing {
    pub celled: bool,
    pub grown: bool,
}

impl Held {
    /// Settle what it is, once all of it was read. Of its newest cell and the newest era in which
    /// it has grown, the newer one counts. In one era, what it has grown to is newer than its cell.
    pub fn settle(&mut self, shard: &Shard) {
        let found = self.search.found();
        let era = found.map(|number| shard.list.eras.of_document(number));
        self.grown = self.grown.take().filter(|(grown, _)| era.is_none_or(|era| era <= *grown));
        self.known = Some(match (&self.grown, found) {
            (Some((era, bucket)), _) => grown(shard, *era, bucket.clone()),
            (None, Some(number)) => alone(shard, number),
            (None, None) => Known::Nothing,
        });
    }
}

/// A bucket that has one cell.
pub fn alone(shard: &Shard, number: u64) -> Known {
    let eras = &shard.list.eras;
    if number < eras.first() {
        return Known::Nothing;
    }
    Known::Alone(number, Standing { celled: number >= eras.current().first, grown: false })
}

/// A bucket that has grown in an era.
pub fn grown(shard: &Shard, era: u32, mut bucket: Bucket) -> Known {
    let eras = &shard.list.eras;
    bucket.entries.retain(|&one| one >= eras.first());
    Known::Grown(bucket, Standing { celled: false, grown: era == eras.current().number })
}
