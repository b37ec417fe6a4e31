//! The fingerprint of a normal form by its definition, as `tests/oracle/fingerprint.py` has it.

/// The constants of shingle hashes, drawn from a state.
pub struct Constants {
    base: u64,
    factor: u64,
    packing: u64,
}

impl Constants {
    pub fn new(shingle_state: u64) -> Self {
        let mut drawn = SplitMix(shingle_state);
        Self { base: drawn.draw() | 1, factor: drawn.draw() | 1, packing: drawn.draw() | 1 }
    }

    /// A hash of each shingle of code points. A shorter text is one shingle.
    pub fn shingles(&self, codes: &[u32], size: usize) -> Vec<u64> {
        let powers = powers(self.base, size);
        let weight = |code: u32, place: usize| {
            if size <= 6 && code < 128 {
                self.packing.wrapping_shl(8 * place as u32)
            } else {
                powers[size - place]
            }
        };
        let units: Vec<(u32, u64)> =
            codes.iter().map(|&code| (code, u64::from(code) + 1)).collect();
        self.hashes(&units, size, weight)
    }

    /// A hash of each shingle of words, which are hashed.
    pub fn word_shingles(&self, words: &[u64], size: usize) -> Vec<u64> {
        let units: Vec<(u32, u64)> = words.iter().map(|&word| (0, word)).collect();
        let powers = powers(self.base, size);
        self.hashes(&units, size, |_, place| powers[size - place])
    }

    fn hashes(
        &self,
        units: &[(u32, u64)],
        size: usize,
        weight: impl Fn(u32, usize) -> u64,
    ) -> Vec<u64> {
        let count = if units.is_empty() { 0 } else { units.len().saturating_sub(size - 1).max(1) };
        let mut hashes = Vec::new();
        for begin in 0..count {
            let mut sum = 0u64;
            for (place, &(code, unit)) in units[begin..].iter().take(size).enumerate() {
                sum = sum.wrapping_add(unit.wrapping_mul(weight(code, place)));
            }
            hashes.push((sum ^ sum >> 32).wrapping_mul(self.factor));
        }
        hashes
    }
}

/// The `MinHash` signature of some hashes, by one permutation.
pub fn signature(hashes: &[u64], slots: usize) -> Vec<u64> {
    let (mut factors, mut offsets) = (SplitMix(0x736C_6F74), SplitMix(0x6669_6C6C));
    let mut signed = Vec::new();
    for slot in 0..slots {
        let (factor, offset) = (factors.draw() as u16 | 1, offsets.draw());
        let own = |hash: &&u64| ((**hash >> 32) * slots as u64) >> 32 == slot as u64;
        signed.push(match hashes.iter().filter(own).min() {
            Some(least) => least ^ least >> 32,
            None => {
                let word = |hash: &u64| ((hash ^ hash >> 32) >> (16 * (slot % 3))) as u16;
                let words = hashes.iter().map(|hash| word(hash).max(1).wrapping_mul(factor));
                fmix64(u64::from(words.min().unwrap_or(0)) ^ offset)
            }
        });
    }
    signed
}

/// The powers of a base, from 0 to the last one.
fn powers(base: u64, last: usize) -> Vec<u64> {
    let powers = std::iter::successors(Some(1u64), |power| Some(power.wrapping_mul(base)));
    powers.take(last + 1).collect()
}

fn fmix64(word: u64) -> u64 {
    let word = (word ^ word >> 33).wrapping_mul(0xFF51_AFD7_ED55_8CCD);
    let word = (word ^ word >> 33).wrapping_mul(0xC4CE_B9FE_1A85_EC53);
    word ^ word >> 33
}

/// The generator of Steele, Lea and Flood.
pub struct SplitMix(pub u64);

impl SplitMix {
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let word = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let word = (word ^ word >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        word ^ word >> 31
    }
}
