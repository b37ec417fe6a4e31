//! What is written to the store.

use super::keys::{Key, Range};

/// What is written, in this order: the tables, then in one atomic write the ranges, the deletes and
/// the puts. What was replaced is dropped once that write is on disk.
#[derive(Debug, Clone, Default)]
pub struct Writes {
    pub tables: Vec<TableWrite>,
    /// Ranges of keys that are deleted.
    pub ranges: Vec<Range>,
    pub deletes: Vec<Key>,
    pub puts: Vec<(Key, Vec<u8>)>,
    /// The runs whose tables no list of runs names any more.
    pub replaced: Vec<u32>,
    /// The pages of records whose former bytes have to leave the files of the store.
    pub erased: Vec<u64>,
    /// How many documents were inserted so far, these included.
    pub inserted: u64,
}

/// Pages of a run. They follow those of earlier writes: a merge makes a run little by little.
#[derive(Debug, Clone)]
pub struct TableWrite {
    pub run: u32,
    /// By key, ascending.
    pub pages: Vec<(Key, Vec<u8>)>,
    /// Whether the file is finished with them. The write names its pages, so they must be on disk.
    pub finished: bool,
    /// Whether it is the last file of the run.
    pub last: bool,
}
