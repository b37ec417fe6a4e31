//! What the judge can see of an index.

pub use std::task::Poll;

/// Whether something was read, or will be: whoever returns `Pending` has noted what is missing. Go on
/// with what else there is, and ask again once that was read.
pub type Polled<T> = Result<Poll<T>, Damaged>;

/// Something that is stored contradicts itself; the text says what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damaged(pub String);

/// A bucket as it is stored, before the batch: the numbers of its documents, in their order.
///
/// Both are empty of a bucket that doesn't exist.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Bucket {
    pub entries: Vec<u64>,
    /// Whether it has overflow buckets.
    pub has_overflow: bool,
}

/// A posting of the batch: the key of one of its documents in one column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Posting {
    /// The column's place among those of the batch.
    pub column: usize,
    pub row: usize,
}

/// What the judge asks for. Nothing that is stored changes while there is one.
///
/// A column is always given by its place among the batch's. A document is given by its number: an
/// index numbers documents as it inserts them.
pub trait IndexReader {
    /// Whether the bucket of a posting may exist; if not, `bucket` would say so, too.
    ///
    /// Most buckets don't exist, so this is asked first, for a column's postings one after the other.
    fn may_exist(&mut self, _cell: Posting) -> bool {
        true
    }

    /// The only document of the bucket that a posting's key names, if that is at hand: then `bucket`
    /// isn't asked.
    fn singleton(&mut self, _cell: Posting) -> Option<u64> {
        None
    }

    /// The bucket that a posting's key names.
    fn bucket(&mut self, posting: Posting) -> Polled<Bucket>;

    /// An overflow bucket, by its own key.
    fn overflow(&mut self, column: usize, hash: u64) -> Polled<Bucket>;

    /// The bytes of a document's record; none of one that was forgotten.
    ///
    /// An error if there is no record: a bucket names a document that the index doesn't have.
    fn record(&mut self, number: u64) -> Polled<&[u8]>;

    /// The times, or marks, to which a document's entries were renewed, by number of the column.
    fn renewals(&mut self, number: u64) -> Polled<Vec<(u8, i64)>>;

    /// The documents that have an id and were not forgotten, newest first.
    fn identified(&mut self, id: &[u8]) -> Polled<Vec<u64>>;

    /// The bytes of the verdict that is kept of a document.
    fn verdict(&mut self, number: u64) -> Polled<Option<Vec<u8>>>;

    /// The number that the next document gets.
    fn inserted(&self) -> u64;

    /// The number below which a renewed document gets another number; see `shard::time slices`.
    fn moved_below(&self) -> u64;

    /// Whether it is known that no document was ever forgotten.
    fn all_kept(&self) -> bool;

    /// How many things have to be read next.
    fn unread(&self) -> usize {
        0
    }

    /// How many more bytes of records may be held, beside so many of what is known of them.
    fn room_bytes(&self, _known: usize) -> usize {
        usize::MAX
    }

    /// Let go of the records and renewals that were read. They are read again if they are asked for.
    fn release(&mut self) {}
}
