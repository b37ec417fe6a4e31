//! The shingle hashes of a normal form.

use super::hashing::{PACKED, hash_ascii, hash_rolling, hash_wide, windows};
use super::scheme::{Scheme, Unit};
use super::words::Words;
use crate::text::Form;

/// What is reused from one text to the next.
#[derive(Default)]
pub struct Shingles {
    hashes: Vec<u64>,
    ordered: Vec<u64>,
    words: Words,
}

impl Shingles {
    /// Return the hash of each shingle, in order; none if the text is empty or has no words.
    ///
    /// A text that is shorter than a shingle has one, of the whole text.
    pub fn of(&mut self, scheme: &Scheme, form: &Form<'_>) -> &[u64] {
        let size = scheme.size;
        let units = match (scheme.unit, form) {
            (Unit::Word, form) => self.words.read(scheme, form).len(),
            (Unit::CodePoint, Form::Ascii(text)) => text.len(),
            (Unit::CodePoint, Form::Wide(codes)) => codes.len(),
        };
        let count = windows(units, size);
        if self.hashes.len() < count {
            self.hashes.resize(count, 0);
        }
        let out = &mut self.hashes[..count];
        match (scheme.unit, form) {
            (Unit::Word, _) => {
                let words = self.words.hashes();
                hash_rolling(scheme, units, |at| words[at], out);
            }
            (Unit::CodePoint, Form::Ascii(text)) if size <= PACKED => {
                hash_ascii(scheme, text, out);
            }
            (Unit::CodePoint, Form::Ascii(text)) => {
                hash_rolling(scheme, units, |at| u64::from(text[at]) + 1, out);
            }
            (Unit::CodePoint, Form::Wide(codes)) if size <= PACKED => {
                hash_wide(scheme, codes, out);
            }
            (Unit::CodePoint, Form::Wide(codes)) => {
                hash_rolling(scheme, units, |at| u64::from(codes[at]) + 1, out);
            }
        }
        out
    }

    /// Return how many different ones the first `count` hashes have that were made last.
    pub fn distinct(&mut self, count: usize) -> usize {
        self.ordered.clear();
        self.ordered.extend_from_slice(&self.hashes[..count]);
        self.ordered.sort_unstable();
        self.ordered.dedup();
        self.ordered.len()
    }

    /// Return the bytes that are held.
    pub fn held(&self) -> usize {
        8 * (self.hashes.capacity() + self.ordered.capacity()) + self.words.held()
    }
}
