//! What a judgement sees: a shard, and what has been read for the batch.

use super::Shard;
use super::reading::{Asked, Reading};
use crate::index::sight::{Bucket, Cell, Damaged, Seen, Sight};

/// Answers a judgement. What it has to read first is named by `Reading::wanted` from then on.
pub struct Sighting<'a> {
    shard: &'a Shard,
    asked: Asked<'a>,
    /// How many documents are asked for.
    rows: usize,
    reading: &'a mut Reading,
}

impl<'a> Sighting<'a> {
    pub fn new(shard: &'a Shard, asked: Asked<'a>, reading: &'a mut Reading) -> Self {
        Self { shard, asked, rows: asked.documents(), reading }
    }

    fn cell(&self, cell: Cell) -> Option<u32> {
        self.reading.bucket_of(cell.column * self.rows + cell.row)
    }

    fn seen(&self, bucket: Option<u32>) -> Seen<Bucket> {
        bucket.map_or(Seen::Here(Bucket::default()), |bucket| seen(self.reading.content(bucket)))
    }
}

fn seen<T>(found: Option<T>) -> Seen<T> {
    found.map_or(Seen::Unread, Seen::Here)
}

impl Sight for Sighting<'_> {
    fn may_exist(&mut self, cell: Cell) -> bool {
        self.cell(cell).is_some()
    }

    fn sole(&mut self, cell: Cell) -> Option<u64> {
        self.reading.sole(self.cell(cell)?)
    }

    fn bucket(&mut self, cell: Cell) -> Result<Seen<Bucket>, Damaged> {
        Ok(self.seen(self.cell(cell)))
    }

    fn finer(&mut self, column: usize, hash: u64) -> Result<Seen<Bucket>, Damaged> {
        let bucket = self.reading.finer(self.shard, self.asked, column, hash)?;
        Ok(self.seen(bucket))
    }

    fn record(&mut self, number: u64) -> Result<Seen<&[u8]>, Damaged> {
        // Floods ask for most records that are in memory, so these are looked up once.
        if let Some((record, age)) = self.shard.find_record(number) {
            self.reading.note_record(number, age);
            return Ok(Seen::Here(record));
        }
        if !self.reading.has_record(self.shard, number)? {
            return Ok(Seen::Unread);
        }
        Ok(seen(self.reading.record_here(self.shard, number)))
    }

    fn renewals(&mut self, number: u64) -> Result<Seen<Vec<(u8, i64)>>, Damaged> {
        Ok(seen(self.reading.renewals(number).cloned()))
    }

    fn identified(&mut self, id: &[u8]) -> Result<Seen<Vec<u64>>, Damaged> {
        self.reading.identified(self.shard, id)
    }

    fn verdict(&mut self, number: u64) -> Result<Seen<Option<Vec<u8>>>, Damaged> {
        Ok(seen(self.reading.verdict(number).cloned()))
    }

    fn inserted(&self) -> u64 {
        self.shard.inserted
    }

    fn moved_below(&self) -> u64 {
        self.shard.list.eras.current().first
    }

    fn all_kept(&self) -> bool {
        self.shard.all_kept
    }

    fn unread(&self) -> usize {
        self.reading.unread()
    }

    fn room_bytes(&self, known: usize) -> usize {
        self.shard.candidate_bytes.saturating_sub(known + self.reading.held_bytes())
    }

    fn release(&mut self) {
        self.reading.release();
    }
}
