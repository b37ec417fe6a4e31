//! The matches of documents that were sent again: those of the first one.

use std::collections::HashMap;

use super::batch::Batch;
use super::decision::{Match, Matches};
use super::ids::{First, Identities};
use super::reader::Damaged;
use super::similar::Measures;

/// Return the matches of all documents of a batch; `found` are those of documents that came first.
///
/// A match has no id if its document was forgotten after the first one.
pub fn with_repeated(
    found: Matches,
    batch: &Batch,
    identities: &Identities,
    measures: &Measures,
) -> Result<Matches, Damaged> {
    if identities.repeats.is_empty() {
        return Ok(found);
    }
    let mut gone: HashMap<&[u8], Vec<usize>> = HashMap::new();
    for one in &batch.forgotten {
        gone.entry(&one.id).or_default().push(one.row);
    }
    let mut repeats = identities.repeats.iter().peekable();
    let mut made = Matches { starts: vec![0], matches: Vec::new(), ids: found.ids };
    for row in 0..batch.len() {
        match repeats.next_if(|(again, _)| *again as usize == row) {
            None => {
                let own = found.starts[row]..found.starts[row + 1];
                made.matches.extend_from_slice(&found.matches[own]);
            }
            Some(&(_, First::Row(first))) => {
                let first = first as usize;
                for at in found.starts[first]..found.starts[first + 1] {
                    let mut one = found.matches[at].clone();
                    let rows = gone.get(&made.ids[one.id.clone()]).into_iter().flatten();
                    if rows.copied().any(|from| first < from && from <= row) {
                        one.id = 0..0;
                    }
                    made.matches.push(one);
                }
            }
            Some(&(_, First::Stored(number))) => {
                for (one, id) in identities.verdict(number) {
                    let equal = measures.equal_for(one.similarity).ok_or_else(|| {
                        Damaged(format!("no sketches have a similarity of {}", one.similarity))
                    })?;
                    let from = made.ids.len();
                    let rows = gone.get(&id[..]).into_iter().flatten();
                    if rows.copied().all(|from| from > row) {
                        made.ids.extend_from_slice(id);
                    }
                    let id = from..made.ids.len();
                    let (sequence, containment) = (one.sequence, one.containment);
                    made.matches.push(Match { sequence, equal: equal as u16, containment, id });
                }
            }
        }
        made.starts.push(made.matches.len());
    }
    Ok(made)
}
