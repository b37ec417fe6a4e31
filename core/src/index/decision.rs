//! What is decided about a batch: its matches, and what changes in the index.

use super::clock::Dated;

/// The result of judging a batch.
#[derive(Debug, Clone, Default)]
pub struct Decision {
    /// As of when the documents count, and the clock after them.
    pub dates: Dated,
    pub matches: Matches,
    pub counts: Counts,
    pub changes: Changes,
    /// Those of the batch's forgotten ids of which the index had a document.
    pub known: Vec<Vec<u8>>,
    /// What else is known of each query; none of a batch of documents.
    pub answers: Vec<Answer>,
}

/// What a query met.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answer {
    /// The buckets in which there was something, by column, the coarsest first.
    pub met: Vec<MetBucket>,
    /// How many documents it was compared with.
    pub compared: u64,
}

/// A bucket that a query met.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetBucket {
    /// The place of its key's column.
    pub column: usize,
    /// 0 for the bucket of the key; from 1 for overflow buckets.
    pub level: usize,
    /// How many entries it has that are neither forgotten nor too old.
    pub size: usize,
    /// The sequence numbers of the matches that are in it, ascending.
    pub holds: Vec<u64>,
}

/// A match of one document of the batch with an earlier one.
#[derive(Debug, Clone, PartialEq)]
pub struct Match {
    pub sequence: u64,
    /// How many slots of both sketches are equal.
    pub equal: u16,
    /// The share of the document that is in the earlier one, if it is enough; else 0.
    pub containment: f64,
    /// Where the earlier one's id is in `Matches::ids`. Empty if it was forgotten meanwhile.
    pub id: std::ops::Range<usize>,
}

/// The matches of a batch: those of row i are `matches[starts[i]..starts[i + 1]]`, best first.
#[derive(Debug, Clone, Default)]
pub struct Matches {
    pub starts: Vec<usize>,
    pub matches: Vec<Match>,
    pub ids: Vec<u8>,
}

/// How much work a batch was.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Comparisons with candidates.
    pub candidates: u64,
    /// Postings that were not inserted because an entry stands for them.
    pub absorbed: u64,
    /// How many of these are less similar to it than `absorb`, in hot buckets.
    pub absorbed_similar: u64,
    /// Buckets that were full, and have overflow buckets from now on.
    pub divided: u64,
    /// Entries that were removed from the last overflow buckets, which were full.
    pub dropped: u64,
    /// Documents that were ignored because they were sent again.
    pub repeated: u64,
}

/// A bucket that did not exist, and has one document from now on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewPosting {
    pub column: usize,
    pub hash: u64,
    pub number: u64,
    /// Whether something may be stored of the bucket; see `IndexReader::may_exist`.
    pub may_exist: bool,
}

/// The whole content of a bucket that has changed otherwise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedBucket {
    pub column: usize,
    pub hash: u64,
    pub entries: Vec<u64>,
    pub has_overflow: bool,
}

/// What a batch changes in the index. Columns are given by their places among the batch's.
#[derive(Debug, Clone, Default)]
pub struct Changes {
    pub postings: Vec<NewPosting>,
    pub buckets: Vec<ChangedBucket>,
    /// The records of the documents that get the next numbers, one after the other.
    pub records: Vec<Vec<u8>>,
    /// All renewals of each document that has a new one: its number, and (column's number, time).
    pub renewals: Vec<(u64, Vec<(u8, i64)>)>,
    /// The verdicts that are kept, by number.
    pub verdicts: Vec<(u64, Vec<u8>)>,
    /// The numbers of the documents that are forgotten, ascending.
    pub forgotten: Vec<u64>,
}
