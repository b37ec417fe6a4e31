//! The bytes of buckets and renewals, and the numbers in them.
//!
//! Documents are numbered as they are inserted, with 64 bits. Postings and buckets have the lowest 31
//! bits of a number, because a shard has fewer documents at a time. A grown bucket is the numbers
//! of its documents, in the order in which they came, 4 bytes each, and all bits if it has finer
//! ones. Renewals are, for each time or mark, that (8 bytes), how many columns have it (1), and
//! these columns' numbers (1 each). Numbers are little-endian.

use super::checksum;
use crate::index::bytes::Cursor;
use crate::index::reader::{Bucket, Damaged};

/// The most documents that a shard has at a time.
pub const MOST_DOCUMENTS: u64 = 1 << 31;
const LOW: u64 = MOST_DOCUMENTS - 1;
const OVERFLOW: u32 = u32::MAX;

/// What is stored of a number.
pub fn low_of(number: u64) -> u32 {
    (number & LOW) as u32
}

/// The greatest number below `end` with these lowest 31 bits; none if there is none.
pub fn number_before(low: u32, end: u64) -> Option<u64> {
    let last = end.checked_sub(1)?;
    last.checked_sub(last.wrapping_sub(u64::from(low)) & LOW)
}

pub fn pack_bucket(entries: &[u64], has_overflow: bool) -> Vec<u8> {
    let lows = entries.iter().map(|&number| low_of(number)).chain(has_overflow.then_some(OVERFLOW));
    let mut packed = Vec::with_capacity(4 * (entries.len() + 1) + checksum::BYTES);
    lows.for_each(|low| packed.extend_from_slice(&low.to_le_bytes()));
    packed
}

/// The bucket of these bytes. `end` is the number that the next document gets.
pub fn unpack_bucket(packed: &[u8], end: u64) -> Result<Bucket, Damaged> {
    let (lows, rest) = packed.as_chunks::<4>();
    if !rest.is_empty() {
        return Err(Damaged(format!("{} bytes are not whole entries", packed.len())));
    }
    let mut bucket = Bucket { entries: Vec::with_capacity(lows.len()), has_overflow: false };
    for low in lows.iter().map(|low| u32::from_le_bytes(*low)) {
        if bucket.has_overflow {
            return Err(Damaged("a bucket has entries behind its last one".into()));
        }
        if low == OVERFLOW {
            bucket.has_overflow = true;
        } else {
            let number = number_before(low, end).filter(|_| u64::from(low) <= LOW);
            bucket.entries.push(
                number.ok_or_else(|| Damaged(format!("a bucket names document {low} of {end}")))?,
            );
        }
    }
    Ok(bucket)
}

/// `renewals` are columns' numbers and times.
pub fn pack_renewals(renewals: &[(u8, i64)]) -> Vec<u8> {
    let mut times: Vec<i64> = renewals.iter().map(|&(_, time)| time).collect();
    times.sort_unstable();
    times.dedup();
    let mut packed = Vec::new();
    for time in times {
        let columns =
            renewals.iter().filter(|renewal| renewal.1 == time).map(|&(column, _)| column);
        let columns: Vec<u8> = columns.collect();
        packed.extend_from_slice(&time.to_le_bytes());
        packed.push(u8::try_from(columns.len()).expect("a column has one time"));
        packed.extend_from_slice(&columns);
    }
    packed
}

pub fn unpack_renewals(packed: &[u8]) -> Result<Vec<(u8, i64)>, Damaged> {
    let wrong = || Damaged(format!("{} bytes are not renewals", packed.len()));
    let mut left = Cursor(packed);
    let mut renewals = Vec::new();
    let mut renewed = [false; 1 << u8::BITS];
    while !left.is_empty() {
        let (time, count) = left.i64().zip(left.u8()).ok_or_else(wrong)?;
        let columns = left.take(count.into()).ok_or_else(wrong)?;
        for &column in columns {
            if std::mem::replace(&mut renewed[usize::from(column)], true) {
                return Err(Damaged(format!("column {column} is renewed twice")));
            }
            renewals.push((column, time));
        }
    }
    Ok(renewals)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_again_past_31_bits() {
        let end = 5 * MOST_DOCUMENTS + 3;
        for number in [end - MOST_DOCUMENTS, end - 7, end - 3, end - 1] {
            assert_eq!(number_before(low_of(number), end), Some(number));
        }
        assert_eq!(number_before(0, 0), None);
        assert_eq!(number_before(3, 3), None);
    }

    #[test]
    fn buckets_and_renewals_are_what_they_were() {
        let bucket = Bucket { entries: vec![3, 900, 4], has_overflow: true };
        assert_eq!(unpack_bucket(&pack_bucket(&bucket.entries, true), 901), Ok(bucket));
        let renewals = vec![(3, -5), (7, -5), (1, 9)];
        assert_eq!(unpack_renewals(&pack_renewals(&renewals)), Ok(renewals));
    }

    #[test]
    fn what_cannot_be_is_refused() {
        assert!(unpack_bucket(&[1, 0, 0], 9).is_err());
        assert!(unpack_bucket(&pack_bucket(&[9], false), 9).is_err());
        assert!(unpack_bucket(&[0xff; 8], 9).is_err());
        let packed = pack_renewals(&[(3, -5), (1, 9)]);
        assert!(unpack_renewals(&packed[..packed.len() - 1]).is_err());
        assert!(unpack_renewals(&packed.repeat(2)).is_err());
    }
}
