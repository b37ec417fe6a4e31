//! The buckets that a batch comes to, while its documents are inserted into them.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::reader::{Bucket, Damaged, IndexReader, Poll, Polled, Posting};

/// Where a bucket is looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// It is that of a posting's key.
    Key {
        row: u32,
    },
    Overflow,
}

/// A bucket. Until it was read, it is empty.
#[derive(Debug, Clone)]
pub struct Held {
    pub column: u16,
    pub hash: u64,
    pub origin: Origin,
    /// Whether several documents of the batch have its key.
    pub shared: bool,
    read: bool,
    /// Whether it didn't exist before the batch.
    pub new: bool,
    pub changed: bool,
    /// Whether it was full, and an entry has gone for another one.
    pub dropped: bool,
    /// The numbers of its documents, in their order. Most buckets have one, and need no memory.
    pub entries: SmallVec<[u64; 2]>,
    /// The candidate of each, as far as they were looked at; nothing if there are few.
    candidates: Vec<u32>,
    /// Whether it has overflow buckets.
    pub has_overflow: bool,
    /// Whether it, or an overflow bucket, has become full since the postings that come to it were looked at.
    pub outgrown: bool,
}

const UNKNOWN: u32 = u32::MAX;

impl Held {
    /// The candidate of an entry, if it is noted.
    #[inline]
    pub fn candidate(&self, at: usize) -> Option<u32> {
        self.candidates.get(at).copied().filter(|&candidate| candidate != UNKNOWN)
    }

    /// Note the candidate of an entry. To find that of a singleton takes no longer than this.
    #[inline]
    pub fn note_candidate(&mut self, at: usize, candidate: u32) {
        if self.entries.len() > 1 {
            self.candidates.resize(self.entries.len(), UNKNOWN);
            self.candidates[at] = candidate;
        }
    }

    /// Replace its entries by some of them, and a new document.
    pub fn refill(&mut self, kept: &[usize], number: u64, candidate: u32) {
        self.candidates.resize(self.entries.len(), UNKNOWN);
        for (to, &from) in kept.iter().enumerate() {
            self.entries[to] = self.entries[from];
            self.candidates[to] = self.candidates[from];
        }
        self.entries.truncate(kept.len());
        self.candidates.truncate(kept.len());
        self.entries.push(number);
        self.candidates.push(candidate);
        self.changed = true;
    }
}

fn split(found: Poll<Bucket>) -> Poll<(SmallVec<[u64; 2]>, bool)> {
    match found {
        Poll::Ready(Bucket { entries, has_overflow }) => {
            Poll::Ready((entries.into(), has_overflow))
        }
        Poll::Pending => Poll::Pending,
    }
}

/// Buckets by ids: first those of the batch's keys, then overflow buckets.
#[derive(Debug, Default)]
pub struct Buckets {
    held: Vec<Held>,
    overflow: FxHashMap<(u16, u64), u32>,
}

impl Buckets {
    /// Add the bucket of a posting's key; return its id.
    pub fn add(&mut self, column: u16, hash: u64, row: u32) -> u32 {
        self.push(column, hash, Origin::Key { row })
    }

    fn push(&mut self, column: u16, hash: u64, origin: Origin) -> u32 {
        let id = u32::try_from(self.held.len()).expect("a batch has fewer buckets than 2^32");
        self.held.push(Held {
            column,
            hash,
            origin,
            shared: false,
            read: false,
            new: false,
            changed: false,
            dropped: false,
            entries: SmallVec::new(),
            candidates: Vec::new(),
            has_overflow: false,
            outgrown: false,
        });
        id
    }

    /// Return the id of an overflow bucket.
    pub fn overflow(&mut self, column: u16, hash: u64) -> u32 {
        if let Some(&id) = self.overflow.get(&(column, hash)) {
            return id;
        }
        let id = self.push(column, hash, Origin::Overflow);
        self.overflow.insert((column, hash), id);
        id
    }

    /// Read a bucket, unless it was read.
    #[inline]
    pub fn read(&mut self, id: u32, reader: &mut impl IndexReader) -> Polled<()> {
        let held = &mut self.held[id as usize];
        if held.read {
            return Ok(Poll::Ready(()));
        }
        let column = usize::from(held.column);
        let found = match held.origin {
            Origin::Key { row } => {
                let posting = Posting { column, row: row as usize };
                match reader.singleton(posting) {
                    Some(number) => Poll::Ready((SmallVec::from_iter([number]), false)),
                    None => split(reader.bucket(posting)?),
                }
            }
            Origin::Overflow => split(reader.overflow(column, held.hash)?),
        };
        let (entries, has_overflow) = ready!(found);
        if let Some(number) = entries.iter().find(|&&number| number >= reader.inserted()) {
            return Err(Damaged(format!("a bucket names document {number}, which has no record")));
        }
        held.new = entries.is_empty() && !has_overflow;
        (held.entries, held.has_overflow, held.read) = (entries, has_overflow, true);
        Ok(Poll::Ready(()))
    }

    #[inline]
    pub fn get(&self, id: u32) -> &Held {
        &self.held[id as usize]
    }

    #[inline]
    pub fn get_mut(&mut self, id: u32) -> &mut Held {
        &mut self.held[id as usize]
    }

    pub fn len(&self) -> usize {
        self.held.len()
    }

    /// Forget the candidates, whose numbers change.
    pub fn release(&mut self) {
        self.held.iter_mut().for_each(|held| held.candidates = Vec::new());
    }

    pub fn iter(&self) -> impl Iterator<Item = (u32, &Held)> {
        (0..).zip(&self.held)
    }
}
