//! An index in memory: documents without ids and times, which all stay until they are removed.
//!
//! Documents have *rows*, in the order in which they came. Unlike an index on disk, it has all
//! documents, also those that no bucket names because an entry stands for them. So one can also be
//! removed: the buckets become as if it had never come.
//!
//! Between the judge and its application, the documents of a batch have numbers from that of the
//! first row on. Those that are inserted have records, which name their rows.

mod column;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use rustc_hash::FxHashMap;

use self::column::{Column, MOST_ROWS, NONE, extend, singleton_of};
use super::batch::Batch;
use super::clock::Clock;
use super::config::IndexConfig;
use super::decision::{Decision, Matches};
use super::judge::Judge;
use super::overflow::LEVELS;
use super::reader::{Bucket, Damaged, IndexReader, Poll, Polled, Posting};
use super::record::Record;
use super::rules::{Rules, SameId};

/// How many documents are judged, or queried, at a time. It decides nothing.
const TOGETHER: usize = 256;

/// n documents, as they come.
#[derive(Debug, Clone, Default)]
pub struct Given {
    /// n keys for each column, one column after the other.
    pub keys: Vec<u64>,
    /// The sketches, one after the other.
    pub sketches: Vec<u8>,
    pub shingles: Vec<u32>,
}

/// Documents and what they match: a document's matches are together, the best first.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Found {
    /// The documents' rows, or the queries' places; ascending.
    pub documents: Vec<i64>,
    /// The rows of the matches.
    pub rows: Vec<i64>,
    pub similarity: Vec<f64>,
    /// How much of the document is in the match, if that is enough; else 0.
    pub containment: Vec<f64>,
}

/// All documents, and all buckets.
#[derive(Debug, Clone)]
pub struct MemoryIndex {
    config: Arc<IndexConfig>,
    columns: Vec<Column>,
    sketches: Vec<u8>,
    shingles: Vec<u32>,
    compared: u64,
}

impl MemoryIndex {
    /// Begin empty. There are no ids, so `Rules::same_id` doesn't count.
    pub fn new(rules: Rules, columns: usize, slots: usize) -> Result<Self, String> {
        if let Some(window) = rules.window {
            return Err(format!("window_ms: got {window}, an index in memory takes None"));
        }
        if columns > 1 << u8::BITS {
            return Err(format!("columns: got {columns}, an index takes at most 256"));
        }
        let rules = Rules { same_id: SameId::Duplicate, rows: 0, ..rules };
        let numbers = (0..=u8::MAX).take(columns).collect();
        Ok(Self {
            config: Arc::new(IndexConfig::new(rules, numbers, slots)?),
            columns: vec![Column::default(); columns],
            sketches: Vec::new(),
            shingles: Vec::new(),
            compared: 0,
        })
    }

    /// How many rows there are, also those of removed documents.
    pub fn len(&self) -> usize {
        self.shingles.len()
    }

    pub fn is_empty(&self) -> bool {
        self.shingles.is_empty()
    }

    pub fn slots(&self) -> usize {
        self.config.slots
    }

    /// How many columns there are.
    pub fn width(&self) -> usize {
        self.columns.len()
    }

    /// How many comparisons all judgements made.
    pub fn compared(&self) -> u64 {
        self.compared
    }

    /// The keys of all rows in a column.
    pub fn keys(&self, column: usize) -> &[u64] {
        self.columns[column].keys()
    }

    pub fn sketch(&self, row: usize) -> &[u8] {
        &self.sketches[row * self.config.slots..(row + 1) * self.config.slots]
    }

    pub fn shingles(&self) -> &[u32] {
        &self.shingles
    }

    /// The estimated similarity of the documents in two rows.
    pub fn similarity(&self, one: usize, other: usize) -> f64 {
        let measures = &self.config.measures;
        measures.estimate(measures.equal(self.sketch(one), self.sketch(other)))
    }

    /// Check that there is room for so many documents.
    pub fn check_room(&self, count: usize) -> Result<(), Damaged> {
        if count > MOST_ROWS - self.len() {
            return Err(Damaged(format!("an index in memory takes {MOST_ROWS} documents")));
        }
        Ok(())
    }

    /// Add documents in order, each as if it came alone; return their matches.
    ///
    /// `blank` says which ones come to no bucket. Unless there is no room, nothing can fail.
    pub fn judge(&mut self, given: &Given, blank: &[bool]) -> Result<Found, Damaged> {
        self.check_room(blank.len())?;
        let mut found = Found::default();
        for low in (0..blank.len()).step_by(TOGETHER) {
            let rows = low..blank.len().min(low + TOGETHER);
            let first = self.len();
            let judged: Vec<usize> = rows.clone().filter(|&row| !blank[row]).collect();
            let sequences = judged.iter().map(|&row| (first + row - low) as u64);
            let batch = Arc::new(self.batch(given, &judged, sequences.collect()));
            let config = Arc::clone(&self.config);
            let decision = self.decide(&config, &batch)?;
            self.append(given, blank.len(), rows);
            self.apply(&config, &decision, first)?;
            self.compared += decision.counts.candidates;
            found.add(&decision.matches, &config, |place| batch.sequences[place] as i64);
        }
        Ok(found)
    }

    /// Return what each of some documents matches, and change nothing.
    pub fn matches(&self, given: &Given) -> Result<Found, Damaged> {
        let mut found = Found::default();
        let count = given.shingles.len();
        let looked = Looked::up(self, &self.config, &given.keys, count);
        for low in (0..count).step_by(TOGETHER) {
            let rows: Vec<usize> = (low..count.min(low + TOGETHER)).collect();
            let batch = Arc::new(self.batch(given, &rows, vec![0; rows.len()]));
            let judge = Judge::query(self.config.clone(), batch.clone(), &Clock::default(), false);
            let mut reader = InMemory::new(self, &self.config, &looked, low);
            let decision = here(judge.map_err(Damaged)?.step(&mut reader)?)?;
            found.add(&decision.matches, &self.config, |place| (low + place) as i64);
        }
        Ok(found)
    }

    /// Remove documents that aren't blank: the buckets become as if they had never come.
    ///
    /// `others` are the rows of all other documents that aren't blank, ascending. A bucket depends
    /// on the documents that have its key alone, so these are judged again.
    pub fn remove(&mut self, rows: &[usize], others: &[usize]) -> Result<(), Damaged> {
        let mut rows = rows.to_vec();
        rows.sort_unstable();
        for column in 0..self.columns.len() {
            let keys = self.keys(column);
            let mut concerned: FxHashMap<u64, (Vec<usize>, Vec<usize>)> = FxHashMap::default();
            rows.iter().for_each(|&row| concerned.entry(keys[row]).or_default().0.push(row));
            for &other in others {
                if let Some((_, left)) = concerned.get_mut(&keys[other]) {
                    left.push(other);
                }
            }
            for (key, (gone, left)) in concerned {
                self.refill(column, key, &gone, &left)?;
            }
        }
        Ok(())
    }

    /// Make a bucket, and its overflow buckets, those of some documents; `gone` are those that left it, ascending.
    fn refill(
        &mut self,
        place: usize,
        key: u64,
        gone: &[usize],
        rows: &[usize],
    ) -> Result<(), Damaged> {
        let column = &mut self.columns[place];
        let bucket = column.bucket(key);
        let mut left: Vec<u64> = bucket.entries.clone();
        left.retain(|&entry| gone.binary_search(&(entry as usize)).is_err());
        if !bucket.has_overflow {
            if left.len() == bucket.entries.len() {
                return Ok(()); // Entries stood for them.
            }
            // In a hot bucket, later documents were compared with the leaders.
            let leaders = self.config.rules.leaders();
            let led = bucket.entries.len() > leaders
                && left.get(..leaders) != Some(&bucket.entries[..leaders]);
            if !led && left.iter().map(|&entry| entry as usize).eq(rows.iter().copied()) {
                column.put(key, left.iter().map(|&entry| entry as u32).collect(), false);
                return Ok(()); // They stood for nothing.
            }
        }
        column.put(key, Box::default(), false);
        if bucket.has_overflow {
            for &row in rows.iter().chain(gone) {
                for level in 1..=LEVELS {
                    let overflow = self.config.overflow.key(place, key, level, self.sketch(row));
                    self.columns[place].put(overflow, Box::default(), false);
                }
            }
        }
        let number = vec![self.config.columns[place]];
        let config = IndexConfig::new(self.config.rules.clone(), number, self.config.slots);
        let config = Arc::new(config.map_err(Damaged)?);
        let batch = Batch {
            sequences: rows.iter().map(|&row| row as u64).collect(),
            times: vec![0; rows.len()],
            ids: rows.iter().map(|_| []).collect(),
            shingles: rows.iter().map(|&row| self.shingles[row]).collect(),
            keys: vec![key; rows.len()],
            sketches: rows.iter().flat_map(|&row| self.sketch(row)).copied().collect(),
            forgotten: Vec::new(),
        };
        let first = self.len();
        let decision = self.decide(&config, &Arc::new(batch))?;
        self.apply(&config, &decision, first)
    }

    fn batch(&self, given: &Given, rows: &[usize], sequences: Vec<u64>) -> Batch {
        let (count, slots) = (given.shingles.len(), self.config.slots);
        let mut keys = Vec::with_capacity(rows.len() * self.columns.len());
        for column in 0..self.columns.len() {
            let own = &given.keys[column * count..(column + 1) * count];
            keys.extend(rows.iter().map(|&row| own[row]));
        }
        let mut sketches = Vec::with_capacity(rows.len() * slots);
        for &row in rows {
            sketches.extend_from_slice(&given.sketches[row * slots..(row + 1) * slots]);
        }
        Batch {
            sequences,
            times: vec![0; rows.len()],
            ids: rows.iter().map(|_| []).collect(),
            shingles: rows.iter().map(|&row| given.shingles[row]).collect(),
            keys,
            sketches,
            forgotten: Vec::new(),
        }
    }

    fn decide(&self, config: &Arc<IndexConfig>, batch: &Arc<Batch>) -> Result<Decision, Damaged> {
        let judge = Judge::new(config.clone(), batch.clone(), &Clock::default());
        let looked = Looked::up(self, config, &batch.keys, batch.len());
        let mut reader = InMemory::new(self, config, &looked, 0);
        here(judge.map_err(Damaged)?.step(&mut reader)?)
    }

    fn append(&mut self, given: &Given, count: usize, rows: std::ops::Range<usize>) {
        for (place, column) in self.columns.iter_mut().enumerate() {
            column.append(&given.keys[place * count..(place + 1) * count][rows.clone()]);
        }
        let slots = self.config.slots;
        extend(&mut self.sketches, &given.sketches[rows.start * slots..rows.end * slots]);
        extend(&mut self.shingles, &given.shingles[rows]);
    }

    /// Apply a decision; `first` is the number that it gave to the first document with a record.
    fn apply(
        &mut self,
        config: &IndexConfig,
        decision: &Decision,
        first: usize,
    ) -> Result<(), Damaged> {
        let changes = &decision.changes;
        let rows = changes.records.iter().map(|record| Ok(Record::unpack(record)?.sequence as u32));
        let rows = rows.collect::<Result<Vec<u32>, Damaged>>()?;
        let row_of = |number: u64| match number.checked_sub(first as u64) {
            None => number as u32,
            Some(place) => rows[place as usize],
        };
        for posting in &changes.postings {
            let column = usize::from(config.columns[posting.column]);
            self.columns[column].insert(posting.hash, row_of(posting.number));
        }
        for bucket in &changes.buckets {
            let column = usize::from(config.columns[bucket.column]);
            let entries = bucket.entries.iter().map(|&number| row_of(number)).collect();
            self.columns[column].put(bucket.hash, entries, bucket.has_overflow);
        }
        Ok(())
    }
}

impl Found {
    fn add(&mut self, matches: &Matches, config: &IndexConfig, document: impl Fn(usize) -> i64) {
        for (place, ends) in matches.starts.windows(2).enumerate() {
            for one in &matches.matches[ends[0]..ends[1]] {
                self.documents.push(document(place));
                self.rows.push(one.sequence as i64);
                self.similarity.push(config.similarity(one.equal));
                self.containment.push(one.containment);
            }
        }
    }
}

fn here<T>(seen: Poll<T>) -> Result<T, Damaged> {
    match seen {
        Poll::Ready(value) => Ok(value),
        Poll::Pending => Err(Damaged("what is in memory was unread".into())),
    }
}

/// What the tables have of the postings of n documents, one column after the other.
pub struct Looked {
    count: usize,
    values: Vec<u32>,
}

impl Looked {
    /// Look up all keys of n documents in the columns of a config, one column after the other: so
    /// much of a table stays in the processor's cache.
    pub fn up(index: &MemoryIndex, config: &IndexConfig, keys: &[u64], count: usize) -> Self {
        let mut values = Vec::with_capacity(keys.len());
        for (place, &column) in config.columns.iter().enumerate() {
            let own = &keys[place * count..(place + 1) * count];
            index.columns[usize::from(column)].find_all(own, &mut values);
        }
        Self { count, values }
    }
}

pub struct InMemory<'a> {
    index: &'a MemoryIndex,
    config: &'a IndexConfig,
    looked: &'a Looked,
    first: usize,
    /// The record that was asked for last.
    record: Vec<u8>,
}

impl<'a> InMemory<'a> {
    /// `config` may have some of the index's columns. The batch has documents of `looked`; `first`
    /// is the place of the first one there.
    pub fn new(
        index: &'a MemoryIndex,
        config: &'a IndexConfig,
        looked: &'a Looked,
        first: usize,
    ) -> Self {
        Self { index, config, looked, first, record: Vec::new() }
    }

    fn column(&self, place: usize) -> &Column {
        &self.index.columns[usize::from(self.config.columns[place])]
    }

    fn found(&self, posting: Posting) -> u32 {
        self.looked.values[posting.column * self.looked.count + self.first + posting.row]
    }
}

impl IndexReader for InMemory<'_> {
    fn may_exist(&mut self, posting: Posting) -> bool {
        self.found(posting) != NONE
    }

    fn singleton(&mut self, posting: Posting) -> Option<u64> {
        singleton_of(self.found(posting))
    }

    fn bucket(&mut self, posting: Posting) -> Polled<Bucket> {
        Ok(Poll::Ready(self.column(posting.column).bucket_of(self.found(posting))))
    }

    fn overflow(&mut self, column: usize, hash: u64) -> Polled<Bucket> {
        Ok(Poll::Ready(self.column(column).bucket(hash)))
    }

    fn record(&mut self, number: u64) -> Polled<&[u8]> {
        let row = number as usize;
        let record = Record {
            sequence: number,
            time: 0,
            shingles: self.index.shingles[row],
            sketch: self.index.sketch(row),
            new: &[],
            id: &[],
        };
        self.record.clear();
        record.pack_into(&mut self.record);
        Ok(Poll::Ready(&self.record))
    }

    fn renewals(&mut self, _number: u64) -> Polled<Vec<(u8, i64)>> {
        Ok(Poll::Ready(Vec::new()))
    }

    fn identified(&mut self, _id: &[u8]) -> Polled<Vec<u64>> {
        Ok(Poll::Ready(Vec::new()))
    }

    fn verdict(&mut self, _number: u64) -> Polled<Option<Vec<u8>>> {
        Ok(Poll::Ready(None))
    }

    fn inserted(&self) -> u64 {
        self.index.len() as u64
    }

    fn moved_below(&self) -> u64 {
        0
    }

    fn all_kept(&self) -> bool {
        true
    }
}
