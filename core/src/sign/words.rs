//! The words of a normal form, hashed.

use super::keys::Keyed;
use super::scheme::Scheme;
use crate::text::{Form, utf8};

/// Bytes of a word that is remembered: with its length, it fits into 16.
const SHORT: usize = 15;
const REMEMBERED: usize = 1 << 12;

/// The hashes of the words of a text. Short words are remembered, the last one of each place.
#[derive(Default)]
pub struct Words {
    hashes: Vec<u64>,
    encoded: Vec<u8>,
    known: Box<[(u128, u64)]>,
}

impl Words {
    /// Return the hash of each word, in order.
    pub fn read(&mut self, scheme: &Scheme, form: &Form<'_>) -> &[u64] {
        self.hashes.clear();
        if self.known.is_empty() {
            // No word is packed into 0, because its length is not 0.
            self.known = vec![(0, 0); REMEMBERED].into();
        }
        let keyed = Keyed::new(&scheme.word_key);
        match form {
            Form::Ascii(text) => {
                for word in text.split(|&byte| is_white_space(u32::from(byte))) {
                    if !word.is_empty() {
                        let hash = remembered(&mut self.known, &keyed, word);
                        self.hashes.push(hash);
                    }
                }
            }
            Form::Wide(codes) => {
                for word in codes.split(|&code| is_white_space(code)) {
                    if !word.is_empty() {
                        self.encoded.clear();
                        utf8::encode(word, &mut self.encoded);
                        let hash = remembered(&mut self.known, &keyed, &self.encoded);
                        self.hashes.push(hash);
                    }
                }
            }
        }
        &self.hashes
    }

    /// Return what `read` returned last.
    pub fn hashes(&self) -> &[u64] {
        &self.hashes
    }

    /// Return the bytes that are held.
    pub fn held(&self) -> usize {
        8 * self.hashes.capacity() + self.encoded.capacity()
    }
}

fn remembered(known: &mut [(u128, u64)], keyed: &Keyed, word: &[u8]) -> u64 {
    if word.len() > SHORT {
        return keyed.hash(word);
    }
    let mut bytes = [0; SHORT + 1];
    bytes[..word.len()].copy_from_slice(word);
    bytes[SHORT] = word.len() as u8;
    let packed = u128::from_le_bytes(bytes);
    let mixed = (packed as u64 ^ (packed >> 64) as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let place = &mut known[(mixed >> 52) as usize];
    if place.0 != packed {
        *place = (packed, keyed.hash(word));
    }
    place.1
}

/// Return whether words end here: Unicode's white space, and four separators, as in `str.split`.
pub fn is_white_space(code: u32) -> bool {
    matches!(code, 0x1C..=0x1F) || char::from_u32(code).is_some_and(char::is_whitespace)
}

#[cfg(test)]
mod tests {
    use super::super::hashing::tests::scheme;
    use super::super::scheme::Unit;
    use super::*;

    #[test]
    fn a_word_has_one_hash_wherever_it_stands() {
        let scheme = scheme(Unit::Word, 1, 1);
        let keyed = Keyed::new(&scheme.word_key);
        let text = "one a\x1Ctwo\u{2003}one sixteen-bytes--- fifteen-bytes-- one";
        let codes: Vec<u32> = text.chars().map(u32::from).collect();
        let expected: Vec<u64> =
            ["one", "a", "two", "one", "sixteen-bytes---", "fifteen-bytes--", "one"]
                .map(|word| keyed.hash(word.as_bytes()))
                .to_vec();
        let mut words = Words::default();
        for _ in 0..2 {
            assert_eq!(words.read(&scheme, &Form::Wide(&codes)), expected);
        }
        let ascii = text.replace('\u{2003}', " ");
        assert_eq!(words.read(&scheme, &Form::Ascii(ascii.as_bytes())), expected);
    }
}
