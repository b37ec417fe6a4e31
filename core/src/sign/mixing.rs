//! Integer mixing, and the source of the constants.

/// Return the first `count` integers of `SplitMix64` from `state`.
///
/// Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014.
pub fn splitmix64(state: u64, count: usize) -> Vec<u64> {
    let mut state = state;
    (0..count)
        .map(|_| {
            state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let word = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            let word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            word ^ (word >> 31)
        })
        .collect()
}

/// Mix a word, so that every output bit depends on every input bit: `MurmurHash3`'s fmix64.
#[inline(always)]
pub fn finalise(word: u64) -> u64 {
    let word = (word ^ (word >> 33)).wrapping_mul(0xFF51_AFD7_ED55_8CCD);
    let word = (word ^ (word >> 33)).wrapping_mul(0xC4CE_B9FE_1A85_EC53);
    word ^ (word >> 33)
}

/// Mix a word's high half into its low one.
#[inline(always)]
pub fn fold(word: u64) -> u64 {
    word ^ (word >> 32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generator_gives_its_published_numbers() {
        let published = [0xE220_A839_7B1D_CDAF, 0x6E78_9E6A_A1B9_65F4, 0x06C4_5D18_8009_454F];
        assert_eq!(splitmix64(0, 3), published);
    }

    #[test]
    fn the_finaliser_is_that_of_murmurhash3() {
        assert_eq!(finalise(0), 0);
        assert_eq!(finalise(1), 0xB456_BCFC_34C2_CB2C);
    }
}
