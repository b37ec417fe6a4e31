//! How similar two sketches are, and what of it is enough.
//!
//! Estimates are ordered as the numbers of equal slots are. So thresholds become least numbers of
//! equal slots, and no decision compares floating point numbers.

use super::rules::Rules;

/// The probability that unequal slots of eight bits agree.
const CHANCE: f64 = 1.0 / 256.0;

/// How many slots of two sketches, which are as long, are equal.
#[inline]
pub fn equal_slots(one: &[u8], other: &[u8]) -> u32 {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has AVX2.
        return unsafe { equal_slots_avx2(one, other) };
    }
    equal_slots_plain(one, other)
}

fn equal_slots_plain(one: &[u8], other: &[u8]) -> u32 {
    one.iter().zip(other).map(|(a, b)| u32::from(a == b)).sum()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn equal_slots_avx2(one: &[u8], other: &[u8]) -> u32 {
    use std::arch::x86_64::*;
    let (ones, one_rest) = one.as_chunks::<32>();
    let (others, other_rest) = other.as_chunks::<32>();
    let mut equal = equal_slots_plain(one_rest, other_rest);
    // A sum of so many fits into a byte.
    for (ones, others) in ones.chunks(255).zip(others.chunks(255)) {
        let mut sums = _mm256_setzero_si256();
        for (a, b) in ones.iter().zip(others) {
            // SAFETY: both have 32 bytes.
            let (a, b) = unsafe {
                (_mm256_loadu_si256(a.as_ptr().cast()), _mm256_loadu_si256(b.as_ptr().cast()))
            };
            sums = _mm256_sub_epi8(sums, _mm256_cmpeq_epi8(a, b));
        }
        let sums = _mm256_sad_epu8(sums, _mm256_setzero_si256());
        let halves =
            _mm_add_epi64(_mm256_castsi256_si128(sums), _mm256_extracti128_si256::<1>(sums));
        equal += (_mm_extract_epi64::<0>(halves) + _mm_extract_epi64::<1>(halves)) as u32;
    }
    equal
}

/// The rules, as numbers of equal slots of two sketches.
#[derive(Debug, Clone)]
pub struct Measures {
    /// The estimated similarity for each number of equal slots.
    estimates: Vec<f64>,
    /// The greatest number of equal slots for which the estimate is zero.
    none: u32,
    pub matches: u32,
    pub absorbs: u32,
    pub absorbs_similar: u32,
    containment: Option<f64>,
    containment_error: f64,
}

impl Measures {
    pub fn of(rules: &Rules, slots: usize) -> Self {
        let estimate = |equal: usize| {
            let share = equal as f64 / slots as f64;
            ((share - CHANCE) / (1.0 - CHANCE)).clamp(0.0, 1.0)
        };
        let estimates: Vec<f64> = (0..=slots).map(estimate).collect();
        let least = |similarity: f64| estimates.partition_point(|&one| one < similarity) as u32;
        Self {
            none: estimates.partition_point(|&one| one <= 0.0) as u32 - 1,
            matches: least(rules.threshold),
            absorbs: least(rules.absorb),
            absorbs_similar: least(rules.absorbs_similar()),
            containment: rules.containment,
            containment_error: rules.containment_error,
            estimates,
        }
    }

    /// How many slots of two sketches are equal; zero if that may be by chance.
    #[inline]
    pub fn equal(&self, one: &[u8], other: &[u8]) -> u32 {
        let equal = equal_slots(one, other);
        if equal <= self.none { 0 } else { equal }
    }

    /// The estimated similarity for a number of equal slots.
    pub fn estimate(&self, equal: u32) -> f64 {
        self.estimates[equal as usize]
    }

    /// The number of equal slots with an estimate; none if there is no such number.
    pub fn equal_for(&self, estimate: f64) -> Option<u32> {
        let equal = self.estimates.partition_point(|&one| one < estimate);
        (self.estimates.get(equal) == Some(&estimate)).then_some(equal as u32)
    }

    /// The estimated share of a document in another one, if it is enough; else zero.
    ///
    /// `shingles` and `others` are the numbers of different shingles of both. The operations, and
    /// their order, are those of `lsh.containment`, so all machines find the same.
    pub fn share(&self, equal: u32, shingles: u32, others: u32) -> f64 {
        let Some(least) = self.containment else { return 0.0 };
        let slots = (self.estimates.len() - 1) as f64;
        let alike = self.estimate(equal);
        let ratio = f64::from(others.max(1)) / f64::from(shingles.max(1));
        let more = 1.0 + alike;
        let variance = alike * (1.0 - alike) / slots;
        let found = (1.0 + ratio) * (alike / more + variance / (more * more * more));
        let share = found.max(0.0).min(ratio.min(1.0));
        let error = (1.0 + ratio) / (more * more) * variance.sqrt();
        if share >= least && error <= self.containment_error { share } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_to_count_agree() {
        let mut state = 1_u64;
        let mut drawn = move || {
            state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(1);
            (state >> 60) as u8
        };
        for slots in [1, 7, 16, 31, 32, 33, 64, 128, 200, 255, 256, 257, 1000, 9000] {
            let one: Vec<u8> = (0..slots).map(|_| drawn()).collect();
            let other: Vec<u8> = (0..slots).map(|_| drawn()).collect();
            let counted = one.iter().zip(&other).filter(|(a, b)| a == b).count() as u32;
            assert_eq!(equal_slots(&one, &other), counted);
            assert_eq!(equal_slots_plain(&one, &other), counted);
            assert_eq!(equal_slots(&one, &one), slots);
        }
    }
}
