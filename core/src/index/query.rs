//! What queries met. They are judged like documents, and change nothing; see `judge`.

use super::collisions::Collision;
use super::decision::{Answer, MetBucket};
use super::judge::{BatchState, ProbePath};
use super::reader::{Damaged, IndexReader};

impl BatchState {
    /// Note the buckets that a query met, with all their entries for now.
    pub(super) fn describe(
        &mut self,
        collision: Collision,
        path: ProbePath,
        reader: &mut impl IndexReader,
    ) -> Result<(), Damaged> {
        let (row, column) = (collision.row as usize, usize::from(collision.column));
        self.answers.resize_with(row + 1, Answer::default);
        for (level, &bucket) in path.buckets[..path.probed].iter().enumerate() {
            let held = self.buckets.get(bucket);
            let (entries, has_overflow) = (held.entries.len(), held.has_overflow);
            if self.read_live(collision, bucket, entries, reader)?.is_pending() {
                return Err(Damaged("what was read is gone".into()));
            }
            if has_overflow || !self.live.is_empty() {
                let document = |&candidate| self.candidates.document(candidate).sequence;
                let holds: Vec<u64> = self.live.iter().map(document).collect();
                self.answers[row].met.push(MetBucket { column, level, size: holds.len(), holds });
            }
        }
        Ok(())
    }

    /// Write down what the query of a row met; those after it, before `end`, have met nothing.
    pub(super) fn finish_queries(&mut self, row: usize, end: usize) {
        self.answers.resize_with(end, Answer::default);
        let answer = &mut self.answers[row];
        answer.compared = self.met.len() as u64;
        let own = &self.matches.matches[self.matches.starts[row]..];
        let mut matches: Vec<u64> = own.iter().map(|found| found.sequence).collect();
        matches.sort_unstable();
        for bucket in &mut answer.met {
            let entries = std::mem::take(&mut bucket.holds);
            bucket.holds = matches.iter().copied().filter(|one| entries.contains(one)).collect();
        }
    }
}
