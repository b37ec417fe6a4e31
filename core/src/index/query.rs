//! Queries: which documents a text would match, and where; nothing changes.

use std::sync::Arc;

use super::batch::Batch;
use super::buckets::Buckets;
use super::cells::Contested;
use super::clock::Clock;
use super::court::Court;
use super::decision::Matches;
use super::judge::matching;
use super::known::Known;
use super::sight::{Cell, Damaged, Seen, Sight};
use super::walk::Walk;

/// A bucket that a query met.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetBucket {
    /// The place of its key's column.
    pub column: usize,
    /// 0 for the bucket of the key; from 1 for finer ones.
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
    court: Arc<Court>,
    batch: Arc<Batch>,
    clock: Clock,
    oldest: Option<Vec<i64>>,
    /// Whether to describe the buckets that are met.
    describes: bool,
    asked: Option<Asked>,
}

/// What is known of the documents and buckets that queries meet.
struct Asked {
    known: Known,
    buckets: Buckets,
    cells: Vec<Contested>,
    /// Buffers of `Walk`.
    compared: Vec<u32>,
    live: Vec<u32>,
    /// The places of all documents that the last query was compared with.
    places: Vec<u32>,
}

/// A bucket on a query's way: its column, level and live entries, and whether it has finer ones.
struct Visit {
    column: usize,
    level: usize,
    sequences: Vec<u64>,
    beyond: bool,
}

impl Query {
    /// Begin to answer; `batch` has the queries, whose ids and sequence numbers don't count, and
    /// `clock` is that of the index.
    pub fn new(court: Arc<Court>, batch: Arc<Batch>, clock: &Clock) -> Result<Self, String> {
        batch.check(court.columns.len(), court.slots)?;
        let oldest = |&time| clock.oldest_alone(time, &court.rules);
        let oldest = court.rules.window.map(|_| batch.times.iter().map(oldest).collect());
        Ok(Self { court, batch, clock: clock.clone(), oldest, describes: true, asked: None })
    }

    /// Leave out the buckets in which there was something: `Answers::met` stays empty.
    pub fn without_buckets(self) -> Self {
        Self { describes: false, ..self }
    }

    /// Return the answers, if nothing has to be read for them any more.
    pub fn step(&mut self, sight: &mut impl Sight) -> Result<Seen<Answers>, Damaged> {
        let mut asked = match self.asked.take() {
            Some(asked) => asked,
            None => self.begun(sight),
        };
        let mut made = Answers::default();
        made.matches.starts.push(0);
        let mut read = true;
        for row in 0..self.batch.len() {
            read &= self.answer(row, &mut asked, &mut made, sight)? != Seen::Unread;
        }
        if !read {
            self.asked = Some(asked);
            return Ok(Seen::Unread);
        }
        made.matches.ids = asked.known.ids;
        Ok(Seen::Here(made))
    }

    fn begun(&self, sight: &mut impl Sight) -> Asked {
        let mut buckets = Buckets::default();
        let mut cells = Vec::new();
        for row in 0..self.batch.len() {
            for column in 0..self.court.columns.len() {
                if sight.may_exist(Cell { column, row }) {
                    let hash = self.batch.key(column, row);
                    let (row, column) = (row as u32, column as u16);
                    let bucket = buckets.add(column, hash, row);
                    cells.push(Contested { row, column, bucket });
                }
            }
        }
        let known = Known::new(self.court.slots, self.clock.clone(), sight.inserted());
        let (compared, live, places) = (Vec::new(), Vec::new(), Vec::new());
        Asked { known, buckets, cells, compared, live, places }
    }

    fn answer(
        &self,
        row: usize,
        asked: &mut Asked,
        made: &mut Answers,
        sight: &mut impl Sight,
    ) -> Result<Seen<()>, Damaged> {
        let Asked { known, buckets, cells, compared, live, places } = asked;
        places.clear();
        let mut walk = Walk {
            court: &self.court,
            batch: &self.batch,
            oldest: self.oldest.as_deref(),
            all_live: self.oldest.is_none() && sight.all_kept(),
            known,
            buckets,
            sight,
            compared,
            live,
        };
        let (mut visits, mut read) = (Vec::new(), true);
        let from = cells.partition_point(|cell| (cell.row as usize) < row);
        for &cell in cells[from..].iter().take_while(|cell| cell.row as usize == row) {
            let Seen::Here(way) = walk.visit(cell)? else {
                read = false;
                continue;
            };
            places.extend_from_slice(walk.compared);
            if !self.describes {
                continue;
            }
            for (level, &bucket) in way.met().iter().enumerate() {
                let held = walk.buckets.get(bucket);
                let (entries, beyond) = (held.entries.len(), held.beyond);
                if walk.read_live(cell, bucket, entries)? == Seen::Unread {
                    read = false;
                    continue;
                }
                let sequences = walk.live.iter().map(|&place| walk.known.document(place).sequence);
                let sequences = sequences.collect();
                visits.push(Visit { column: usize::from(cell.column), level, sequences, beyond });
            }
        }
        if !read {
            return Ok(Seen::Unread);
        }
        places.sort_unstable();
        places.dedup();
        let mut met: Vec<(u32, u32)> =
            places.iter().map(|&place| (place, known.last_equal(place))).collect();
        made.compared.push(met.len() as u64);
        let start = made.matches.matches.len();
        let shingles = self.batch.shingles[row];
        matching(&self.court, known, shingles, &mut met, &mut made.matches.matches);
        made.matches.starts.push(made.matches.matches.len());
        if self.describes {
            let found = made.matches.matches[start..].iter().map(|one| one.sequence);
            let mut found: Vec<u64> = found.collect();
            found.sort_unstable();
            made.met.push(described(visits, &found));
        }
        Ok(Seen::Here(()))
    }
}

/// The buckets that have entries, or finer buckets; `found` has the matches, ascending.
fn described(visits: Vec<Visit>, found: &[u64]) -> Vec<MetBucket> {
    let visits = visits.into_iter().filter(|one| !one.sequences.is_empty() || one.beyond);
    let met = visits.map(|Visit { column, level, sequences, .. }| MetBucket {
        column,
        level,
        size: sequences.len(),
        holds: found.iter().copied().filter(|one| sequences.contains(one)).collect(),
    });
    met.collect()
}
