//! Signs texts, one after the other.

use std::sync::Arc;

use super::columns::Columns;
use super::hashing::{hash_rolling, windows};
use super::keys::{Keyed, Waiting};
use super::scheme::Scheme;
use super::shingles::Shingles;
use super::sketch::Tables;
use crate::text::{self, Form, Normaliser, utf8};

/// Signs texts. Immutable: threads share it, each with a `Scratch` of its own.
pub struct Signer {
    normaliser: Arc<Normaliser>,
    scheme: Scheme,
    text_key: Keyed,
}

/// What is reused from one text to the next.
#[derive(Default)]
pub struct Scratch {
    text: text::Scratch,
    shingles: Shingles,
    tables: Tables,
    waiting: Waiting,
}

impl Signer {
    pub fn new(normaliser: Arc<Normaliser>, scheme: Scheme) -> Self {
        let text_key = Keyed::new(&scheme.text_key);
        Self { normaliser, scheme, text_key }
    }

    pub fn scheme(&self) -> &Scheme {
        &self.scheme
    }

    /// Return the columns of texts in UTF-8, in which lone surrogates may be encoded.
    pub fn sign(&self, texts: &[&[u8]], scratch: &mut Scratch) -> Columns {
        let slots = self.scheme.slots.count();
        let mut columns = Columns::new(texts.len(), slots);
        let Scratch { text: normal, shingles, tables, waiting } = scratch;
        for ((row, text), sketch) in
            texts.iter().enumerate().zip(columns.sketches.chunks_mut(slots))
        {
            let form = self.normaliser.form(text, normal);
            let hashes = shingles.of(&self.scheme, &form);
            if hashes.is_empty() {
                columns.blank[row] = true;
                continue;
            }
            let values = self.scheme.slots.sign(hashes, tables);
            for (slot, &value) in sketch.iter_mut().zip(values) {
                *slot = value as u8;
            }
            let mut count = hashes.len();
            if self.scheme.count_distinct {
                count = shingles.distinct(count);
            }
            columns.shingles[row] = u32::try_from(count).unwrap_or(u32::MAX);
            waiting.add(row, |bytes| append(&form, bytes));
            if waiting.is_due() {
                waiting.finish(&self.text_key, &mut columns.texts);
            }
        }
        waiting.finish(&self.text_key, &mut columns.texts);
        columns
    }

    /// Return the shingle hashes of texts, end to end, and where those of each text end.
    pub fn shingles(&self, texts: &[&[u8]], scratch: &mut Scratch) -> (Vec<u64>, Vec<usize>) {
        let (mut hashes, mut ends) = (Vec::new(), Vec::with_capacity(texts.len()));
        for text in texts {
            let form = self.normaliser.form(text, &mut scratch.text);
            hashes.extend_from_slice(scratch.shingles.of(&self.scheme, &form));
            ends.push(hashes.len());
        }
        (hashes, ends)
    }

    /// Return the shingle hashes of sequences of hashed words, end to end, and where each ends.
    ///
    /// `ends` says where the words of each sequence end.
    pub fn shingles_of_words(&self, words: &[u64], ends: &[usize]) -> (Vec<u64>, Vec<usize>) {
        let (mut hashes, mut limits) = (Vec::new(), Vec::with_capacity(ends.len()));
        let mut start = 0;
        for &end in ends {
            let own = &words[start..end];
            let before = hashes.len();
            hashes.resize(before + windows(own.len(), self.scheme.size), 0);
            hash_rolling(&self.scheme, own.len(), |at| own[at], &mut hashes[before..]);
            limits.push(hashes.len());
            start = end;
        }
        (hashes, limits)
    }
}

impl Scratch {
    /// Bytes from which buffers aren't kept for other texts.
    const MOST: usize = 1 << 23;

    /// Return whether these buffers are small enough to keep.
    pub fn is_worth_keeping(&self) -> bool {
        let signing = self.shingles.held() + self.tables.held() + self.waiting.held();
        self.text.held() + signing < Self::MOST
    }
}

fn append(form: &Form<'_>, bytes: &mut Vec<u8>) {
    match form {
        Form::Ascii(text) => bytes.extend_from_slice(text),
        Form::Wide(codes) => utf8::encode(codes, bytes),
    }
}
