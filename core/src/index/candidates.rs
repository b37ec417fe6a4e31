//! Candidates: the documents that buckets name, as far as they were read.

use std::collections::HashMap;
use std::ops::Range;

use rustc_hash::{FxHashMap, FxHashSet};

use super::batch::Batch;
use super::clock::Clock;
use super::config::IndexConfig;
use super::decision::Match;
use super::ids::Identities;
use super::reader::{Damaged, IndexReader, Poll, Polled};
use super::record::Record;
use super::similar::Measures;

/// The row from which a document is forgotten if it never is.
pub const NEVER: u32 = u32::MAX;
/// About what the renewals of a document take.
const RENEWALS_BYTES: usize = 100;

/// A document: one of the batch, or of the index.
#[derive(Debug, Clone)]
pub struct Document {
    pub number: u64,
    pub sequence: u64,
    /// As of when it counts, in ms; a mark if there is no now after the batch.
    pub time: i64,
    /// That time, or the mark that is stored in its place.
    pub stored_time: i64,
    pub shingles: u32,
    /// The row of the batch from which on it is forgotten.
    pub gone_from: u32,
    /// Where its id is in `Candidates::ids`.
    pub id: Range<usize>,
}

/// A comparison that was made before: with the document of a row, and how many slots are equal.
#[derive(Debug, Clone, Copy)]
struct Compared {
    row: u32,
    equal: u32,
}

/// Documents by places: first those of a batch, by row, then others, as their records are read.
#[derive(Debug)]
pub struct Candidates {
    slots: usize,
    /// By this clock stored times are read: it is the one after the batch.
    clock: Clock,
    /// The number of the batch's first document. Until it is known which ones are inserted, the
    /// number of each is that of its row after those in the index.
    pub first: u64,
    own: usize,
    documents: Vec<Document>,
    compared: Vec<Compared>,
    /// Of the documents of the index.
    places: FxHashMap<u64, u32>,
    sketches: Vec<u8>,
    pub ids: Vec<u8>,
    /// By number; those of the index's documents are there once they were read.
    renewals: FxHashMap<u64, Vec<(u8, i64)>>,
    /// From which row on documents of the index are forgotten in the batch.
    gone: FxHashMap<u64, u32>,
}

impl Candidates {
    /// Know nothing yet. The next document gets the number `first`.
    pub fn new(slots: usize, clock: Clock, first: u64) -> Self {
        Self {
            slots,
            clock,
            first,
            own: 0,
            documents: Vec::new(),
            compared: Vec::new(),
            places: FxHashMap::default(),
            sketches: Vec::new(),
            ids: Vec::new(),
            renewals: FxHashMap::default(),
            gone: FxHashMap::default(),
        }
    }

    /// Know a batch, before anything else; `times` are as of when its documents count.
    pub fn add_batch(&mut self, batch: &Batch, times: &[i64]) {
        self.own = batch.len();
        self.ids.extend_from_slice(batch.ids.bytes());
        self.documents.extend((0..batch.len()).map(|row| Document {
            number: self.first + row as u64,
            sequence: batch.sequences[row],
            time: times[row],
            stored_time: times[row],
            shingles: batch.shingles[row],
            gone_from: NEVER,
            id: batch.ids.range(row),
        }));
        self.compared.resize(batch.len(), Compared { row: NEVER, equal: 0 });
    }

    /// Note from which rows on documents are forgotten: those of the index, and of the batch before.
    pub fn forget(&mut self, batch: &Batch, ids: &Identities, rows: &[u32]) {
        if ids.forgotten.is_empty() {
            return;
        }
        let mut own: HashMap<&[u8], Vec<u32>> =
            ids.forgotten.iter().map(|forgotten| (&forgotten.id[..], Vec::new())).collect();
        for &row in rows.iter().rev() {
            if let Some(rows) = own.get_mut(batch.ids.get(row as usize)) {
                rows.push(row);
            }
        }
        for forgotten in &ids.forgotten {
            let from = forgotten.row as u32;
            for &number in ids.stored(&forgotten.id) {
                self.gone.entry(number).or_insert(from);
            }
            if let Some(rows) = own.get_mut(&forgotten.id[..]) {
                while let Some(row) = rows.pop_if(|row| *row < from) {
                    let document = &mut self.documents[row as usize];
                    document.gone_from = document.gone_from.min(from);
                }
            }
        }
    }

    /// The numbers of the documents of the index that are forgotten in the batch, ascending.
    pub fn forgotten(&self) -> Vec<u64> {
        let mut numbers: Vec<u64> = self.gone.keys().copied().collect();
        numbers.sort_unstable();
        numbers
    }

    pub fn document(&self, place: u32) -> &Document {
        &self.documents[place as usize]
    }

    pub fn documents(&self) -> &[Document] {
        &self.documents
    }

    /// The place of a document; its record is read if it is new here.
    #[inline]
    pub fn read(&mut self, number: u64, reader: &mut impl IndexReader) -> Polled<u32> {
        if let Some(place) = self.known(number) {
            return Ok(Poll::Ready(place));
        }
        self.learn(number, reader)
    }

    /// The place of a document, if it is known.
    #[inline]
    pub fn known(&self, number: u64) -> Option<u32> {
        match number.checked_sub(self.first) {
            Some(row) => Some(row as u32),
            None => self.places.get(&number).copied(),
        }
    }

    fn learn(&mut self, number: u64, reader: &mut impl IndexReader) -> Polled<u32> {
        let packed = ready!(reader.record(number)?);
        let place = u32::try_from(self.documents.len())
            .map_err(|_| Damaged("buckets name more than 2^32 documents".into()))?;
        let from = self.ids.len();
        if packed.is_empty() {
            self.sketches.resize(self.sketches.len() + self.slots, 0);
            self.documents.push(Document {
                number,
                sequence: u64::MAX,
                time: 0,
                stored_time: 0,
                shingles: 0,
                gone_from: 0,
                id: from..from,
            });
        } else {
            let record = Record::unpack(packed)?;
            if record.sketch.len() != self.slots {
                let (got, slots) = (record.sketch.len(), self.slots);
                let message =
                    format!("the sketch of document {number} has {got} slots, not {slots}");
                return Err(Damaged(message));
            }
            self.sketches.extend_from_slice(record.sketch);
            self.ids.extend_from_slice(record.id);
            self.documents.push(Document {
                number,
                sequence: record.sequence,
                time: self.clock.settled(record.time),
                stored_time: record.time,
                shingles: record.shingles,
                gone_from: self.gone.get(&number).copied().unwrap_or(NEVER),
                id: from..self.ids.len(),
            });
        }
        self.compared.push(Compared { row: NEVER, equal: 0 });
        self.places.insert(number, place);
        Ok(Poll::Ready(place))
    }

    /// How many slots of the sketches of a row's document and of another one are equal.
    #[inline]
    pub fn equal(&mut self, batch: &Batch, row: u32, place: u32, measures: &Measures) -> u32 {
        let at = place as usize;
        if self.compared[at].row == row {
            return self.compared[at].equal;
        }
        let own = batch.sketch(row as usize, self.slots);
        let other = match at.checked_sub(self.own) {
            None => batch.sketch(at, self.slots),
            Some(stored) => &self.sketches[stored * self.slots..(stored + 1) * self.slots],
        };
        let equal = measures.equal(own, other);
        self.compared[at] = Compared { row, equal };
        equal
    }

    /// How many slots were equal when a document was compared last.
    pub fn last_equal(&self, place: u32) -> u32 {
        self.compared[place as usize].equal
    }

    /// The record of a document of the index, without which of its buckets were new.
    pub fn record(&self, place: u32, with_sketch: bool) -> Record<'_> {
        let document = self.document(place);
        let stored = place as usize - self.own;
        let sketch = &self.sketches[stored * self.slots..(stored + 1) * self.slots];
        Record {
            sequence: document.sequence,
            time: document.stored_time,
            shingles: document.shingles,
            sketch: if with_sketch { sketch } else { &[] },
            new: &[],
            id: self.id(place),
        }
    }

    pub fn id(&self, place: u32) -> &[u8] {
        &self.ids[self.document(place).id.clone()]
    }

    /// Whether an entry is neither forgotten nor too old when the document of a row comes.
    ///
    /// `column` is its bucket's number; `oldest` the least time of an entry, if it matters.
    pub fn live(
        &mut self,
        place: u32,
        column: u8,
        row: u32,
        oldest: Option<i64>,
        reader: &mut impl IndexReader,
    ) -> Polled<bool> {
        let document = self.document(place);
        if document.gone_from <= row {
            return Ok(Poll::Ready(false));
        }
        let Some(oldest) = oldest.filter(|&oldest| document.time < oldest) else {
            return Ok(Poll::Ready(true));
        };
        let time = ready!(self.renewed_time(place, column, reader)?);
        Ok(Poll::Ready(time >= oldest))
    }

    /// The time of an entry: its document's, or the one to which it was renewed.
    pub fn renewed_time(
        &mut self,
        place: u32,
        column: u8,
        reader: &mut impl IndexReader,
    ) -> Polled<i64> {
        let Document { number, time, .. } = *self.document(place);
        ready!(self.read_renewals(number, reader)?);
        let renewed = self.renewals.get(&number).into_iter().flatten();
        let own = renewed.filter(|(of, _)| *of == column);
        Ok(Poll::Ready(own.fold(time, |latest, &(_, time)| self.clock.later(latest, time))))
    }

    fn read_renewals(&mut self, number: u64, reader: &mut impl IndexReader) -> Polled<()> {
        if number < self.first && !self.renewals.contains_key(&number) {
            let mut renewals = ready!(reader.renewals(number)?);
            renewals.iter_mut().for_each(|(_, time)| *time = self.clock.settled(*time));
            self.renewals.insert(number, renewals);
        }
        Ok(Poll::Ready(()))
    }

    /// Renew an entry to a time; its renewals were read.
    pub fn renew(&mut self, number: u64, column: u8, time: i64) {
        let renewals = self.renewals.entry(number).or_default();
        match renewals.iter_mut().find(|(of, _)| *of == column) {
            Some((_, latest)) => *latest = self.clock.later(*latest, time),
            None => renewals.push((column, time)),
        }
    }

    /// The renewals of a document that were read or made, by number of the column, ascending.
    pub fn renewals(&self, number: u64) -> Vec<(u8, i64)> {
        let mut renewals = self.renewals.get(&number).cloned().unwrap_or_default();
        renewals.sort_unstable();
        renewals
    }

    /// The later of two times of entries, or their joint mark; see `Clock::later`.
    pub fn later(&self, one: i64, other: i64) -> i64 {
        self.clock.later(one, other)
    }

    /// About how many bytes are held of documents of the index.
    pub fn held_bytes(&self) -> usize {
        let documents = self.documents.len() - self.own;
        documents * self.document_bytes() + self.ids.len() + RENEWALS_BYTES * self.renewals.len()
    }

    /// About how many bytes a document takes beside its id.
    pub fn document_bytes(&self) -> usize {
        2 * size_of::<Document>() + self.slots
    }

    /// Let go of the documents of the index but those that matched, or were renewed. The places of
    /// these change.
    pub fn release(&mut self, renewed: &FxHashSet<u64>, matches: &mut [Match]) {
        let matched: FxHashSet<u64> = matches.iter().map(|one| one.sequence).collect();
        self.renewals.retain(|number, _| renewed.contains(number));
        let own_ids = self.documents[..self.own].last().map_or(0, |last| last.id.end);
        let ids = self.ids.split_off(own_ids);
        let sketches = std::mem::take(&mut self.sketches);
        let documents = self.documents.split_off(self.own);
        self.compared.truncate(self.own);
        self.places.clear();
        let mut starts = FxHashMap::default();
        for (document, sketch) in documents.into_iter().zip(sketches.chunks_exact(self.slots)) {
            let Document { number, sequence, id, .. } = document.clone();
            if !matched.contains(&sequence) && !renewed.contains(&number) {
                continue;
            }
            let start = self.ids.len();
            starts.insert(id.start, start);
            self.ids.extend_from_slice(&ids[id.start - own_ids..id.end - own_ids]);
            self.places.insert(number, self.documents.len() as u32);
            self.documents.push(Document { id: start..self.ids.len(), ..document });
            self.sketches.extend_from_slice(sketch);
            self.compared.push(Compared { row: NEVER, equal: 0 });
        }
        for one in matches.iter_mut().filter(|one| one.id.start >= own_ids && !one.id.is_empty()) {
            let start = starts[&one.id.start];
            one.id = start..start + one.id.len();
        }
    }

    /// Add the matches among comparisons: most similar first, ties oldest first.
    ///
    /// `met` has candidates, and how many slots are equal.
    pub fn add_matches(
        &self,
        config: &IndexConfig,
        shingles: u32,
        met: &[(u32, u32)],
        matches: &mut Vec<Match>,
    ) {
        let (measures, from) = (&config.measures, matches.len());
        for &(candidate, equal) in met {
            let document = self.document(candidate);
            let containment = measures.share(equal, shingles, document.shingles);
            if equal >= measures.matches || containment > 0.0 {
                let (sequence, id) = (document.sequence, document.id.clone());
                matches.push(Match { sequence, equal: equal as u16, containment, id });
            }
        }
        matches[from..].sort_by_key(|found| (std::cmp::Reverse(found.equal), found.sequence));
        // A document that was renewed may have several numbers.
        let mut kept = from;
        for at in from..matches.len() {
            if kept - from == config.rules.max_matches {
                break;
            }
            if kept == from || matches[kept - 1].sequence != matches[at].sequence {
                matches.swap(kept, at);
                kept += 1;
            }
        }
        matches.truncate(kept);
    }

    /// Whether some documents are forgotten in the batch.
    pub fn forgets(&self) -> bool {
        !self.gone.is_empty() || self.documents[..self.own].iter().any(|one| one.gone_from != NEVER)
    }
}
