//! The constants of a scheme of fingerprints: immutable, and shared by threads.

use super::mixing::splitmix64;
use super::sketch::Slots;

/// What a shingle is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    CodePoint,
    Word,
}

/// What is derived from a site's seed, each independent of the others.
pub struct Secrets {
    /// The state from which the constants of shingle hashes are drawn.
    pub shingle_state: u64,
    pub word_key: [u8; 32],
    pub text_key: [u8; 32],
}

/// How normal forms become sketches and keys.
pub struct Scheme {
    pub unit: Unit,
    /// Units in a shingle.
    pub size: usize,
    pub slots: Slots,
    /// Whether the number of shingles is that of the different ones.
    pub count_distinct: bool,
    pub word_key: [u8; 32],
    pub text_key: [u8; 32],
    /// What a product is multiplied by once its high half is mixed into the low one.
    pub factor: u64,
    /// What a window of packed bytes is multiplied by.
    pub packing: u64,
    /// The base of the polynomial to the power of 0 to `size`.
    pub powers: Vec<u64>,
}

impl Scheme {
    /// `size` is from 1 to 64, `slots` from 1 to 4,096.
    pub fn new(
        unit: Unit,
        size: usize,
        slots: usize,
        count_distinct: bool,
        secrets: Secrets,
    ) -> Self {
        let drawn = splitmix64(secrets.shingle_state, 3);
        let base = drawn[0] | 1;
        let powers = std::iter::successors(Some(1u64), |power| Some(power.wrapping_mul(base)));
        Self {
            unit,
            size,
            slots: Slots::new(slots),
            count_distinct,
            word_key: secrets.word_key,
            text_key: secrets.text_key,
            factor: drawn[1] | 1,
            packing: drawn[2] | 1,
            powers: powers.take(size + 1).collect(),
        }
    }
}
