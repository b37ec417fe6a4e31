//! Full buckets key their later entries more finely, so nothing has to leave them.
//!
//! A bucket has room for `Rules::capacity` entries. A document that comes to a full one, and for
//! which no entry stands, goes on to an overflow bucket: the same key, with some slots of its sketch.
//! Documents that are much alike have most slots in common, so they meet there; those that only
//! share the bucket's key are divided. An overflow bucket that is full has overflow buckets, too. Only the
//! last overflow drops its oldest entry.
//!
//! So whoever fills a bucket can't make it forget what was there before. And what comes later
//! shares an overflow bucket only with documents that are as alike to it as its copies are.
//!
//! A bucket notes that it has overflow buckets, because its own entries may go before theirs.

/// How many slots of the sketch choose an overflow bucket, by level from 1.
const SLOTS: [usize; LEVELS] = [2, 4, 8, 16, 32];
pub const LEVELS: usize = 5;

/// Makes the keys of overflow buckets.
#[derive(Debug, Clone)]
pub struct Overflow {
    /// The slots that choose the last overflow bucket, by the column's place; a coarser one takes less of
    /// them.
    slots: Vec<Vec<u16>>,
    hashing: [blake2b_simd::Params; LEVELS],
}

impl Overflow {
    /// `columns` are the columns' numbers; `slots` is how many a sketch has.
    pub fn new(columns: &[u8], slots: usize) -> Self {
        let chosen = |&column: &u8| {
            let draws = splitmix64(u64::from(column) + 1, slots);
            let mut order: Vec<u16> = (0..=u16::MAX).take(slots).collect();
            order.sort_by_key(|&slot| draws[usize::from(slot)]);
            order.truncate(SLOTS[LEVELS - 1]);
            order
        };
        let hashing = [1, 2, 3, 4, 5].map(|level| {
            let mut hashing = blake2b_simd::Params::new();
            hashing.hash_length(size_of::<u64>()).personal(format!("finer {level}").as_bytes());
            hashing
        });
        Self { slots: columns.iter().map(chosen).collect(), hashing }
    }

    /// The key of a document's overflow bucket; `level` is from 1, and `hash` the bucket's key.
    pub fn key(&self, column: usize, hash: u64, level: usize, sketch: &[u8]) -> u64 {
        let mut told = [0; size_of::<u64>() + SLOTS[LEVELS - 1]];
        let (first, rest) = told.split_at_mut(size_of::<u64>());
        first.copy_from_slice(&hash.to_le_bytes());
        let slots = &self.slots[column];
        let slots = &slots[..slots.len().min(SLOTS[level - 1])];
        for (byte, &slot) in rest.iter_mut().zip(slots) {
            *byte = sketch[usize::from(slot)];
        }
        let digest = self.hashing[level - 1].hash(&told[..size_of::<u64>() + slots.len()]);
        let bytes = digest.as_bytes().try_into().expect("the hash is as long as a key");
        u64::from_le_bytes(bytes)
    }
}

/// The first integers of SplitMix64 from a state: Steele, Lea, Flood, "Fast splittable pseudorandom
/// number generators", OOPSLA 2014.
fn splitmix64(mut state: u64, count: usize) -> Vec<u64> {
    let next = || {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let word = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        word ^ (word >> 31)
    };
    std::iter::repeat_with(next).take(count).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_what_stores_were_written_with() {
        let sketch: Vec<u8> = (0..128_u8).map(|slot| slot.wrapping_mul(3)).collect();
        let overflow = Overflow::new(&[0, 3, 18], sketch.len());
        assert_eq!(overflow.key(0, 0, 1, &sketch), 0x84F6_E4C8_10F4_6A7E);
        assert_eq!(overflow.key(1, u64::MAX, 2, &sketch), 0xE328_B1FA_6030_E04A);
        assert_eq!(overflow.key(2, 12_345, 5, &sketch), 0xAB73_A645_93D9_C277);
    }

    #[test]
    fn a_short_sketch_has_as_many_levels() {
        let overflow = Overflow::new(&[0], 16);
        assert_ne!(overflow.key(0, 7, 4, &[1; 16]), overflow.key(0, 7, 5, &[1; 16]));
    }
}
