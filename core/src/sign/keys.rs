//! Keys: of whole texts and of words by keyed BLAKE2b, and of the bands of sketches.
//!
//! Nobody can construct two texts with one key without the seed. For a faster hash such as
//! MurmurHash3 one can, whatever its seed.

use blake2b_simd::Params;
use blake2b_simd::many::{HashManyJob, hash_many};

use super::mixing::{finalise, splitmix64};

/// The first 8 bytes, little-endian, of BLAKE2b with a key.
pub struct Keyed(Params);

impl Keyed {
    pub fn new(key: &[u8; 32]) -> Self {
        let mut params = Params::new();
        params.hash_length(8).key(key);
        Self(params)
    }

    pub fn hash(&self, bytes: &[u8]) -> u64 {
        word(self.0.hash(bytes).as_bytes())
    }
}

fn word(digest: &[u8]) -> u64 {
    u64::from_le_bytes(digest.try_into().expect("a digest of 8 bytes"))
}

/// Texts whose keys are still to be made: several at a time take a third of the time.
#[derive(Default)]
pub struct Waiting {
    bytes: Vec<u8>,
    /// The row of each text, and where it ends.
    ends: Vec<(usize, usize)>,
}

impl Waiting {
    /// Texts that are hashed together: as many as the widest vectors take, twice.
    const TEXTS: usize = 8;
    const BYTES: usize = 1 << 16;

    /// Add the text of a row, which `write` appends.
    pub fn add(&mut self, row: usize, write: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.bytes);
        self.ends.push((row, self.bytes.len()));
    }

    pub fn is_due(&self) -> bool {
        self.ends.len() >= Self::TEXTS || self.bytes.len() >= Self::BYTES
    }

    /// Write the keys of all texts to their rows.
    pub fn finish(&mut self, keyed: &Keyed, keys: &mut [u64]) {
        let mut start = 0;
        let mut jobs: Vec<_> = Vec::with_capacity(self.ends.len());
        for &(_, end) in &self.ends {
            jobs.push(HashManyJob::new(&keyed.0, &self.bytes[start..end]));
            start = end;
        }
        hash_many(jobs.iter_mut());
        for (job, &(row, _)) in jobs.iter().zip(&self.ends) {
            keys[row] = word(job.to_hash().as_bytes());
        }
        drop(jobs);
        self.bytes.clear();
        self.ends.clear();
    }

    /// Return the bytes that are held.
    pub fn held(&self) -> usize {
        self.bytes.capacity()
    }
}

const BAND_STATE: u64 = 0x6261_6E64; // "band"
const WORD_STATE: u64 = 0x776F_7264; // "word"
/// Slots of 8 bits in a word of 64.
const WORD: usize = 8;

/// How the keys of bands are made. Equal rows in one band give equal keys; otherwise keys are equal
/// only by a 64-bit collision, and in a band of up to 8 rows never.
pub struct Bands {
    rows: usize,
    starts: Vec<u64>,
    /// For each word of a band's rows, an odd factor of each band.
    factors: Vec<u64>,
}

impl Bands {
    pub fn new(bands: usize, rows: usize) -> Self {
        let words = rows.div_ceil(WORD);
        let mut factors = splitmix64(WORD_STATE, words * bands);
        for factor in &mut factors {
            *factor |= 1;
        }
        Self { rows, starts: splitmix64(BAND_STATE, bands), factors }
    }

    /// Return the key of a band of a sketch, which has all rows of the band.
    #[inline]
    pub fn key(&self, sketch: &[u8], band: usize) -> u64 {
        let bands = self.starts.len();
        let own = &sketch[band * self.rows..(band + 1) * self.rows];
        let mut key = self.starts[band];
        for (number, part) in own.chunks(WORD).enumerate() {
            let mut bytes = [0; WORD];
            bytes[..part.len()].copy_from_slice(part);
            let factor = self.factors[number * bands + band];
            key = key.wrapping_add(u64::from_le_bytes(bytes).wrapping_mul(factor));
        }
        finalise(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_together_have_the_keys_that_each_has_alone() {
        let keyed = Keyed::new(&[3; 32]);
        let texts: Vec<Vec<u8>> = (0..300).map(|size| vec![size as u8; size]).collect();
        let mut keys = vec![0; texts.len()];
        let mut waiting = Waiting::default();
        for (row, text) in texts.iter().enumerate() {
            waiting.add(row, |bytes| bytes.extend_from_slice(text));
            if waiting.is_due() {
                waiting.finish(&keyed, &mut keys);
            }
        }
        waiting.finish(&keyed, &mut keys);
        for (text, key) in texts.iter().zip(keys) {
            assert_eq!(key, keyed.hash(text));
        }
    }
}
