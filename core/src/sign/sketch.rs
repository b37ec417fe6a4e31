//! `MinHash` signatures by one-permutation hashing, and the similarity of sketches.
//!
//! One hash h serves all slots: its high bits assign a shingle to a slot, and the slot takes its
//! least shingle (Li, Owen, Zhang, "One permutation hashing", NIPS 2012). Its value is h with its
//! low half mixed; only winners need that. A slot without any shingle of the text takes the minimum,
//! over all shingles, of a hash of its own, which is made of 16 bits of that value. `lsh.sketch`
//! has the proof that slots of two texts are equal with the probability of their Jaccard
//! similarity. A sketch keeps the low 8 bits of each slot.

use super::mixing::{finalise, fold, splitmix64};
use crate::vectors::vectorised;
#[cfg(target_arch = "x86_64")]
use crate::vectors::{Vectors, vectors};

const EMPTY: u64 = u64::MAX;
/// Words of 16 bits of a hash that fill slots. Slot i uses word i % 3.
const WORDS: usize = 3;
const FACTOR_STATE: u64 = 0x736C_6F74; // "slot"
const OFFSET_STATE: u64 = 0x6669_6C6C; // "fill"
/// Tables of slots: a shingle needn't wait for what the last one wrote.
const TABLES: usize = 4;
/// Empty slots, of a word or of all, that go through the shingles one by one.
const FEW: usize = 4;
/// Factors of a vector of 256 bits.
const LANES: usize = 16;
/// Shingles for each slot from which most repeats are left out before more than a few are filled.
/// So many different ones leave hardly a slot empty.
const MANY: usize = 8;
/// If one slot in so many is empty, all of them are filled: it takes as long to pick these.
const MOSTLY: usize = 4;

/// The slots of a signature.
pub struct Slots {
    count: usize,
    /// What empty slots multiply their words by: for each of the words, the slots that use it. A
    /// multiple of `LANES`.
    factors: [Vec<u16>; WORDS],
    /// What distinguishes an empty slot from others.
    offsets: Vec<u64>,
}

/// What is reused from one text to the next.
#[derive(Default)]
pub struct Tables {
    table: Vec<u64>,
    /// The least own hash of each slot that was looked at.
    own: Vec<u16>,
    places: Vec<u16>,
    distinct: Vec<u64>,
    recent: Vec<u64>,
    factors: Vec<u16>,
    least: Vec<u16>,
}

impl Slots {
    /// `count` is from 1 to 4,096.
    pub fn new(count: usize) -> Self {
        let drawn = splitmix64(FACTOR_STATE, count);
        let factors = std::array::from_fn(|word| {
            let own = drawn.iter().skip(word).step_by(WORDS);
            let mut own: Vec<u16> = own.map(|&factor| factor as u16 | 1).collect();
            own.resize(own.len().next_multiple_of(LANES), 1);
            own
        });
        Self { count, factors, offsets: splitmix64(OFFSET_STATE, count) }
    }

    pub fn count(&self) -> usize {
        self.count
    }

    /// Return the value of each slot for the shingles with these hashes; there must be some.
    ///
    /// Repeats change nothing.
    pub fn sign<'a>(&self, hashes: &[u64], tables: &'a mut Tables) -> &'a [u64] {
        self.assign(hashes, &mut tables.table);
        let empty = tables.table.iter().filter(|&&value| value == EMPTY).count();
        tables.own.resize(self.count, 0);
        if empty > 0 {
            self.fill(hashes, empty, tables);
        }
        finish(&mut tables.table, &tables.own, &self.offsets);
        &tables.table
    }

    /// Set each slot of the table to its least hash, or to `EMPTY`.
    fn assign(&self, hashes: &[u64], table: &mut Vec<u64>) {
        let count = self.count;
        table.clear();
        if hashes.len() > TABLES * count && count > 1 && count.is_power_of_two() {
            table.resize(TABLES * count, EMPTY);
            let shift = 64 - count.trailing_zeros();
            assign_by_bits(hashes, shift, table);
            let (first, others) = table.split_at_mut(count);
            for other in others.chunks_exact(count) {
                for (slot, &value) in first.iter_mut().zip(other) {
                    *slot = value.min(*slot);
                }
            }
            table.truncate(count);
            return;
        }
        table.resize(count, EMPTY);
        // The same division of the range into equal intervals, for any number of slots.
        for &hash in hashes {
            let slot = &mut table[(((hash >> 32) * count as u64) >> 32) as usize];
            *slot = hash.min(*slot);
        }
    }

    /// Find the minimum of each empty slot's own hashes. `empty` is how many there are.
    fn fill(&self, hashes: &[u64], empty: usize, tables: &mut Tables) {
        let Tables { table, own, places, distinct, recent, factors, least } = tables;
        let many = MANY * self.count.next_power_of_two();
        let hashes = if hashes.len() > many && empty > FEW {
            without_most_repeats(hashes, many, recent, distinct);
            distinct.as_slice()
        } else {
            hashes
        };
        for word in 0..WORDS {
            let slots = (word..self.count).step_by(WORDS);
            let all = &self.factors[word];
            let shift = 16 * word as u32;
            least.clear();
            if MOSTLY * empty >= self.count {
                least.resize(all.len(), u16::MAX);
                least_of_many(hashes, shift, all, least);
                for (slot, &least) in slots.zip(least.iter()) {
                    own[slot] = least;
                }
                continue;
            }
            // Whether a slot is empty can't be predicted, so nothing branches on it here.
            places.resize(all.len(), 0);
            factors.resize(all.len(), 0);
            let mut count = 0;
            for (slot, &factor) in slots.zip(all) {
                places[count] = slot as u16;
                factors[count] = factor;
                count += usize::from(table[slot] == EMPTY);
            }
            let filled = count.next_multiple_of(LANES);
            factors[count..filled].fill(1);
            least.resize(filled, u16::MAX);
            if count <= FEW {
                for (factor, least) in factors[..count].iter().zip(least.iter_mut()) {
                    least_of_one(hashes, shift, *factor, least);
                }
            } else {
                least_of_many(hashes, shift, &factors[..filled], least);
            }
            for (&slot, &least) in places[..count].iter().zip(least.iter()) {
                own[usize::from(slot)] = least;
            }
        }
    }
}

impl Tables {
    /// Return the bytes that are held.
    pub fn held(&self) -> usize {
        8 * (self.table.capacity() + self.distinct.capacity() + self.recent.capacity())
    }
}

/// Set each slot of `TABLES` tables to its least hash; the bits above `shift` say which slot.
fn assign_by_bits(hashes: &[u64], shift: u32, table: &mut [u64]) {
    let count = 1 << (64 - shift);
    assert_eq!(table.len(), TABLES * count);
    let mut groups = hashes.chunks_exact(TABLES);
    for group in groups.by_ref() {
        let places: [usize; TABLES] =
            std::array::from_fn(|at| at * count + (group[at] >> shift) as usize);
        // SAFETY: a hash shifted so is below `count`, so each place is below TABLES * count, which
        // was asserted to be the table's length. The places are in different tables.
        let values = places.map(|place| unsafe { *table.get_unchecked(place) });
        for at in 0..TABLES {
            // SAFETY: as above.
            unsafe { *table.get_unchecked_mut(places[at]) = values[at].min(group[at]) };
        }
    }
    for &hash in groups.remainder() {
        let slot = &mut table[(hash >> shift) as usize];
        *slot = hash.min(*slot);
    }
}

/// Write the hashes to `distinct`, without those that were seen last in one of `places`, a power
/// of two.
///
/// A slot of a long text is left empty only because most of its shingles are repeats. Nearly all
/// repeats of fewer different ones than there are places are found here.
fn without_most_repeats(
    hashes: &[u64],
    places: usize,
    recent: &mut Vec<u64>,
    distinct: &mut Vec<u64>,
) {
    recent.clear();
    // What stands in a place initially belongs to another place.
    recent.resize(places, 0);
    recent[0] = EMPTY;
    distinct.clear();
    for &hash in hashes {
        let place = &mut recent[(hash >> 40) as usize & (places - 1)];
        if *place != hash {
            *place = hash;
            distinct.push(hash);
        }
    }
}

/// Return the word of a hash that fills slots; 0 would be the least in every slot.
#[inline(always)]
fn word_of(hash: u64, shift: u32) -> u16 {
    ((fold(hash) >> shift) as u16).max(1)
}

vectorised! {
    /// Mix the values of slots: of an empty one that is its own hash.
    fn finish(table: &mut [u64], own: &[u16], offsets: &[u64]) {
        for ((value, &own), &offset) in table.iter_mut().zip(own).zip(offsets) {
            let filled = finalise(u64::from(own) ^ offset);
            *value = if *value == EMPTY { filled } else { fold(*value) };
        }
    }
}

vectorised! {
    /// Set `least` to the least own hash of one slot.
    fn least_of_one(hashes: &[u64], shift: u32, factor: u16, least: &mut u16) {
        let own = hashes.iter().map(|&hash| word_of(hash, shift).wrapping_mul(factor));
        *least = own.min().unwrap_or(u16::MAX);
    }
}

/// Lower `least` to the least own hashes of the slots with these factors, of which there are a
/// multiple of `LANES`. The factors are odd, so each own hash is a permutation of the word, and
/// uniform like it.
fn least_of_many(hashes: &[u64], shift: u32, factors: &[u16], least: &mut [u16]) {
    /// Vectors that stay in registers from one shingle to the next.
    const MOST: usize = 4;
    for (factors, least) in factors.chunks(MOST * LANES).zip(least.chunks_mut(MOST * LANES)) {
        #[cfg(target_arch = "x86_64")]
        if vectors() != Vectors::Plain {
            // SAFETY: the processor has AVX2.
            unsafe {
                match factors.len() / LANES {
                    1 => least_in_vectors::<1>(hashes, shift, factors, least),
                    2 => least_in_vectors::<2>(hashes, shift, factors, least),
                    3 => least_in_vectors::<3>(hashes, shift, factors, least),
                    _ => least_in_vectors::<MOST>(hashes, shift, factors, least),
                }
            }
            continue;
        }
        for &hash in hashes {
            let word = word_of(hash, shift);
            for (least, &factor) in least.iter_mut().zip(factors) {
                *least = word.wrapping_mul(factor).min(*least);
            }
        }
    }
}

/// Do what `least_of_many` does for N vectors of factors. Compilers don't keep these in registers.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn least_in_vectors<const N: usize>(
    hashes: &[u64],
    shift: u32,
    factors: &[u16],
    least: &mut [u16],
) {
    use std::arch::x86_64::{
        _mm256_loadu_si256, _mm256_min_epu16, _mm256_mullo_epi16, _mm256_set1_epi16,
        _mm256_storeu_si256,
    };
    let lanes = |at: usize| at * LANES..(at + 1) * LANES;
    let load = |from: &[u16], at: usize| {
        let from = &from[lanes(at)];
        // SAFETY: the slice has as many bytes as a vector, and needs no alignment.
        unsafe { _mm256_loadu_si256(from.as_ptr().cast()) }
    };
    let factors: [_; N] = std::array::from_fn(|at| load(factors, at));
    let mut lowest: [_; N] = std::array::from_fn(|at| load(least, at));
    for &hash in hashes {
        let word = _mm256_set1_epi16(word_of(hash, shift).cast_signed());
        for at in 0..N {
            lowest[at] = _mm256_min_epu16(lowest[at], _mm256_mullo_epi16(word, factors[at]));
        }
    }
    for (at, &vector) in lowest.iter().enumerate() {
        let to = &mut least[lanes(at)];
        // SAFETY: the slice has as many bytes as a vector, and needs no alignment.
        unsafe { _mm256_storeu_si256(to.as_mut_ptr().cast(), vector) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vectors::tests::with_each_vectors;

    /// Return the signature by its definition.
    fn defined(hashes: &[u64], count: usize) -> Vec<u64> {
        let slots = Slots::new(count);
        (0..count)
            .map(|slot| {
                let is_own = |hash: &&u64| ((**hash >> 32) * count as u64) >> 32 == slot as u64;
                if let Some(&least) = hashes.iter().filter(is_own).min() {
                    return least ^ (least >> 32);
                }
                let own = |&hash: &u64| {
                    let word = ((hash ^ (hash >> 32)) >> (16 * (slot % 3))) as u16;
                    word.max(1).wrapping_mul(slots.factors[slot % WORDS][slot / WORDS])
                };
                finalise(u64::from(hashes.iter().map(own).min().unwrap()) ^ slots.offsets[slot])
            })
            .collect()
    }

    #[test]
    fn every_way_signs_by_the_definition() {
        // Miri takes a thousand times as long.
        let (counts, sizes, many): (&[usize], &[usize], usize) = if cfg!(miri) {
            (&[3, 70], &[1, 10], 30)
        } else {
            let counts = &[1, 2, 3, 7, 16, 48, 100, 128, 144, 150, 256];
            (counts, &[1, 2, 5, 50, 300, 700, 1_100, 3_000], 4_000)
        };
        for &count in counts {
            for &shingles in sizes {
                let drawn = splitmix64(shingles as u64, shingles);
                let repeated: Vec<u64> = (0..many).map(|at| drawn[at % shingles]).collect();
                for hashes in [&drawn, &repeated] {
                    let expected = defined(hashes, count);
                    let mut tables = Tables::default();
                    let sign = || Slots::new(count).sign(hashes, &mut Tables::default()).to_vec();
                    for found in with_each_vectors(sign) {
                        assert_eq!(found, expected, "{count} slots, {shingles} shingles");
                    }
                    // What another text left behind changes nothing.
                    Slots::new(count).sign(&[5, u64::MAX], &mut tables);
                    assert_eq!(Slots::new(count).sign(hashes, &mut tables), expected);
                }
            }
        }
    }

    #[test]
    fn the_greatest_and_the_least_hash_are_shingles_like_others() {
        for hashes in [vec![u64::MAX], vec![0], vec![0; 600], vec![u64::MAX; 600]] {
            for count in [1, 3, 16] {
                // All bits set also says that a slot is empty: it is filled from the same shingle.
                let found = Slots::new(count).sign(&hashes, &mut Tables::default()).to_vec();
                if hashes[0] == 0 {
                    assert_eq!(found, defined(&hashes, count));
                }
                assert_eq!(found, Slots::new(count).sign(&hashes[..1], &mut Tables::default()));
            }
        }
    }
}
