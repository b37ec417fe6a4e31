//! What is kept of a verdict, for documents that are sent again: `SameId::Ignore`.
//!
//! A verdict names documents by their numbers in the index, not by their ids. So a document that is
//! forgotten is forgotten in all verdicts. A verdict takes 24 bytes for each match: the sequence
//! number, the similarity and the number. If one of them has a containment, it takes 32 bytes for
//! each match, and one before them: a 1. So its length is odd.

use super::bytes::Cursor;
use super::reader::Damaged;

const WITH_CONTAINMENT: u8 = 1;

/// A match of a verdict, best first.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct VerdictMatch {
    pub sequence: u64,
    pub similarity: f64,
    /// That of the matched document; none if it was forgotten before the verdict was stored.
    pub number: Option<u64>,
    /// Zero if there is none.
    pub containment: f64,
}

pub fn pack(verdict: &[VerdictMatch]) -> Vec<u8> {
    let contained = verdict.iter().any(|one| one.containment != 0.0);
    let mut packed = Vec::with_capacity(1 + 32 * verdict.len());
    if contained {
        packed.push(WITH_CONTAINMENT);
    }
    for one in verdict {
        packed.extend_from_slice(&one.sequence.to_le_bytes());
        packed.extend_from_slice(&one.similarity.to_le_bytes());
        packed.extend_from_slice(&one.number.unwrap_or(u64::MAX).to_le_bytes());
        if contained {
            packed.extend_from_slice(&one.containment.to_le_bytes());
        }
    }
    packed
}

pub fn unpack(packed: &[u8]) -> Result<Vec<VerdictMatch>, Damaged> {
    let mut left = Cursor(packed);
    let mut read = || {
        let contained = !packed.len().is_multiple_of(8);
        if contained && left.u8()? != WITH_CONTAINMENT {
            return None;
        }
        let mut verdict = Vec::with_capacity(packed.len() / 24);
        while !left.is_empty() {
            let (sequence, similarity) = (left.u64()?, f64::from_bits(left.u64()?));
            let number = Some(left.u64()?).filter(|&number| number != u64::MAX);
            let containment = if contained { f64::from_bits(left.u64()?) } else { 0.0 };
            verdict.push(VerdictMatch { sequence, similarity, number, containment });
        }
        Some(verdict)
    };
    read().ok_or_else(|| Damaged(format!("{} bytes are not a verdict", packed.len())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_is_what_it_was_packed_from() {
        let one = VerdictMatch { sequence: 7, similarity: 0.5, number: Some(3), containment: 0.0 };
        let other = VerdictMatch { number: None, containment: 0.25, ..one };
        for verdict in [vec![], vec![one], vec![one, other], vec![other; 3]] {
            assert_eq!(unpack(&pack(&verdict)), Ok(verdict));
        }
    }

    #[test]
    fn other_bytes_are_refused() {
        for packed in [&[1; 25][..], &[2; 33], &[0; 32], &[0; 23]] {
            assert_eq!(
                unpack(packed),
                Err(Damaged(format!("{} bytes are not a verdict", packed.len())))
            );
        }
    }
}
