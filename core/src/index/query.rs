//! Queries: which documents a text would match, and where; nothing changes.

use std::sync::Arc;

use super::batch::Batch;
use super::buckets::Buckets;
use super::candidates::Candidates;
use super::clock::Clock;
use super::collisions::Collision;
use super::config::IndexConfig;
use super::decision::Matches;
use super::judge::matching;
use super::reader::{Damaged, IndexReader, Poll, Posting};
use super::walk::Probe;

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

/// What an index has for each of n queries.
#[derive(Debug, Clone, Default)]
pub struct Answers {
    pub matches: Matches,
    /// The buckets in which there was something, by column, the coarsest first.
    pub met: Vec<Vec<MetBucket>>,
    /// How many documents each was compared with.
    pub compared: Vec<u64>,
}

/// Some queries, each of which is answered as if it came alone.
pub struct Query {
    config: Arc<IndexConfig>,
    batch: Arc<Batch>,
    clock: Clock,
    oldest: Option<Vec<i64>>,
    /// Whether to describe the buckets that are met.
    describes: bool,
    asked: Option<Asked>,
}

/// What is known of the documents and buckets that queries meet.
struct Asked {
    candidates: Candidates,
    buckets: Buckets,
    postings: Vec<Collision>,
    /// Buffers of `Walk`.
    compared: Vec<u32>,
    live: Vec<u32>,
    /// The places of all documents that the last query was compared with.
    places: Vec<u32>,
}

/// A bucket on a query's way: its column, level and live entries, and whether it has overflow buckets.
struct Visit {
    column: usize,
    level: usize,
    sequences: Vec<u64>,
    has_overflow: bool,
}

impl Query {
    /// Begin to answer; `batch` has the queries, whose ids and sequence numbers don't count, and
    /// `clock` is that of the index.
    pub fn new(config: Arc<IndexConfig>, batch: Arc<Batch>, clock: &Clock) -> Result<Self, String> {
        batch.check(config.columns.len(), config.slots)?;
        let oldest = |&time| clock.oldest_alone(time, &config.rules);
        let oldest = config.rules.window.map(|_| batch.times.iter().map(oldest).collect());
        Ok(Self { config, batch, clock: clock.clone(), oldest, describes: true, asked: None })
    }

    /// Leave out the buckets in which there was something: `Answers::met` stays empty.
    pub fn without_buckets(self) -> Self {
        Self { describes: false, ..self }
    }

    /// Return the answers, if nothing has to be read for them any more.
    pub fn step(&mut self, reader: &mut impl IndexReader) -> Result<Poll<Answers>, Damaged> {
        let mut asked = match self.asked.take() {
            Some(asked) => asked,
            None => self.begun(reader),
        };
        let mut made = Answers::default();
        made.matches.starts.push(0);
        let mut read = true;
        for row in 0..self.batch.len() {
            read &= self.answer(row, &mut asked, &mut made, reader)? != Poll::Pending;
        }
        if !read {
            self.asked = Some(asked);
            return Ok(Poll::Pending);
        }
        made.matches.ids = asked.candidates.ids;
        Ok(Poll::Ready(made))
    }

    fn begun(&self, reader: &mut impl IndexReader) -> Asked {
        let mut buckets = Buckets::default();
        let mut postings = Vec::new();
        for row in 0..self.batch.len() {
            for column in 0..self.config.columns.len() {
                if reader.may_exist(Posting { column, row }) {
                    let hash = self.batch.key(column, row);
                    let (row, column) = (row as u32, column as u16);
                    let bucket = buckets.add(column, hash, row);
                    postings.push(Collision { row, column, bucket });
                }
            }
        }
        let candidates = Candidates::new(self.config.slots, self.clock.clone(), reader.inserted());
        let (compared, live, places) = (Vec::new(), Vec::new(), Vec::new());
        Asked { candidates, buckets, postings, compared, live, places }
    }

    fn answer(
        &self,
        row: usize,
        asked: &mut Asked,
        made: &mut Answers,
        reader: &mut impl IndexReader,
    ) -> Result<Poll<()>, Damaged> {
        let Asked { candidates, buckets, postings, compared, live, places } = asked;
        places.clear();
        let mut probe = Probe {
            config: &self.config,
            batch: &self.batch,
            oldest: self.oldest.as_deref(),
            all_live: self.oldest.is_none() && reader.all_kept(),
            candidates,
            buckets,
            reader,
            compared,
            live,
        };
        let (mut visits, mut read) = (Vec::new(), true);
        let from = postings.partition_point(|posting| (posting.row as usize) < row);
        for &posting in postings[from..].iter().take_while(|posting| posting.row as usize == row) {
            let Poll::Ready(path) = probe.visit(posting)? else {
                read = false;
                continue;
            };
            places.extend_from_slice(probe.compared);
            if !self.describes {
                continue;
            }
            for (level, &bucket) in path.met().iter().enumerate() {
                let held = probe.buckets.get(bucket);
                let (entries, has_overflow) = (held.entries.len(), held.has_overflow);
                if probe.read_live(posting, bucket, entries)? == Poll::Pending {
                    read = false;
                    continue;
                }
                let sequences =
                    probe.live.iter().map(|&place| probe.candidates.document(place).sequence);
                let sequences = sequences.collect();
                visits.push(Visit {
                    column: usize::from(posting.column),
                    level,
                    sequences,
                    has_overflow,
                });
            }
        }
        if !read {
            return Ok(Poll::Pending);
        }
        places.sort_unstable();
        places.dedup();
        let mut met: Vec<(u32, u32)> =
            places.iter().map(|&place| (place, candidates.last_equal(place))).collect();
        made.compared.push(met.len() as u64);
        let start = made.matches.matches.len();
        let shingles = self.batch.shingles[row];
        matching(&self.config, candidates, shingles, &mut met, &mut made.matches.matches);
        made.matches.starts.push(made.matches.matches.len());
        if self.describes {
            let found = made.matches.matches[start..].iter().map(|one| one.sequence);
            let mut found: Vec<u64> = found.collect();
            found.sort_unstable();
            made.met.push(described(visits, &found));
        }
        Ok(Poll::Ready(()))
    }
}

/// The buckets that have entries, or overflow buckets; `found` has the matches, ascending.
fn described(visits: Vec<Visit>, found: &[u64]) -> Vec<MetBucket> {
    let visits = visits.into_iter().filter(|one| !one.sequences.is_empty() || one.has_overflow);
    let met = visits.map(|Visit { column, level, sequences, .. }| MetBucket {
        column,
        level,
        size: sequences.len(),
        holds: found.iter().copied().filter(|one| sequences.contains(one)).collect(),
    });
    met.collect()
}
