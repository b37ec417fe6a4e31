//! NFKC of sequences, by the algorithm of Unicode Standard Annex 15: decompose, sort runs of
//! non-starters by class, compose.

use std::sync::LazyLock;

use icu_normalizer::properties::{
    CanonicalCompositionBorrowed, CanonicalDecompositionBorrowed, Decomposed,
};

use super::mapping::{Mapping, Rule};
use super::properties::{Properties, SECOND};
use super::unicode::{casefold, nfkc, nfkd};

/// All code points that compose lie below.
const COMPOSE_BELOW: u32 = 0x2_0000;
/// The code points of the longest compatibility forms that are kept: see `marks`.
const LONGEST_FORM: usize = 6;

const SYLLABLES: u32 = 0xAC00;
const LEADS: u32 = 0x1100;
const VOWELS: u32 = 0x1161;
const TAILS: u32 = 0x11A7;
const LEAD_COUNT: u32 = 19;
const VOWEL_COUNT: u32 = 21;
const TAIL_COUNT: u32 = 28;

/// The canonical compositions of two code points, apart from Hangul.
///
/// An open hash table with a key of both; a key of 0 is an empty slot.
struct Compositions {
    slots: Box<[(u64, u32)]>,
    /// All seconds, also of pairs that are never composed again. Ascending.
    seconds: Vec<u32>,
}

const SLOTS: usize = 1 << 12;

static COMPOSITIONS: LazyLock<Compositions> = LazyLock::new(Compositions::made);

impl Compositions {
    fn made() -> Self {
        let decomposition = CanonicalDecompositionBorrowed::new();
        let composition = CanonicalCompositionBorrowed::new();
        let mut made = Self { slots: vec![(0, 0); SLOTS].into_boxed_slice(), seconds: Vec::new() };
        for whole in (0..COMPOSE_BELOW).filter_map(char::from_u32) {
            if is_syllable(whole.into()) {
                continue;
            }
            if let Decomposed::Expansion(first, second) = decomposition.decompose(whole) {
                made.seconds.push(second.into());
                if composition.compose(first, second) == Some(whole) {
                    made.insert(first.into(), second.into(), whole.into());
                }
            }
        }
        made.seconds.sort_unstable();
        made.seconds.dedup();
        made
    }

    fn insert(&mut self, first: u32, second: u32, whole: u32) {
        let key = key_of(first, second);
        let mut at = slot_of(key);
        while self.slots[at].0 != 0 {
            at = (at + 1) % SLOTS;
        }
        self.slots[at] = (key, whole);
    }

    #[inline(always)]
    fn whole(&self, first: u32, second: u32) -> Option<u32> {
        let key = key_of(first, second);
        let mut at = slot_of(key);
        loop {
            let (found, whole) = self.slots[at];
            if found == key {
                return Some(whole);
            }
            if found == 0 {
                return None;
            }
            at = (at + 1) % SLOTS;
        }
    }
}

#[inline(always)]
fn key_of(first: u32, second: u32) -> u64 {
    u64::from(first) << 32 | u64::from(second)
}

#[inline(always)]
fn slot_of(key: u64) -> usize {
    // Multiplicative hashing, with the golden ratio.
    (key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 52) as usize
}

const fn is_syllable(point: u32) -> bool {
    point.wrapping_sub(SYLLABLES) < LEAD_COUNT * VOWEL_COUNT * TAIL_COUNT
}

/// Return what two code points compose to.
#[inline(always)]
pub fn compose(first: u32, second: u32) -> Option<u32> {
    let lead = first.wrapping_sub(LEADS);
    let vowel = second.wrapping_sub(VOWELS);
    if lead < LEAD_COUNT && vowel < VOWEL_COUNT {
        return Some(SYLLABLES + (lead * VOWEL_COUNT + vowel) * TAIL_COUNT);
    }
    let tail = second.wrapping_sub(TAILS);
    if is_syllable(first)
        && (first - SYLLABLES).is_multiple_of(TAIL_COUNT)
        && 0 < tail
        && tail < TAIL_COUNT
    {
        return Some(first + tail);
    }
    COMPOSITIONS.whole(first, second)
}

/// Return whether a code point is the second of a canonical composition, even of one that isn't
/// composed again.
pub fn is_second(point: u32) -> bool {
    point.wrapping_sub(VOWELS) < VOWEL_COUNT
        || point.wrapping_sub(TAILS + 1) < TAIL_COUNT - 1
        || COMPOSITIONS.seconds.binary_search(&point).is_ok()
}

/// NFKD, with long forms cut.
struct Apart;

impl Rule for Apart {
    fn apply(&self, point: u32, form: &mut Vec<u32>) -> u32 {
        let Some(char) = char::from_u32(point) else {
            form.push(point);
            return 0;
        };
        let text = String::from(char);
        let whole: Vec<char> = nfkc(&text).chars().collect();
        if whole.len() > LONGEST_FORM {
            let cut: String = whole[..LONGEST_FORM].iter().collect();
            form.extend(nfkd(&cut).chars().map(u32::from));
        } else {
            form.extend(nfkd(&text).chars().map(u32::from));
        }
        0
    }
}

/// Full case folding.
struct Folded;

impl Rule for Folded {
    fn apply(&self, point: u32, form: &mut Vec<u32>) -> u32 {
        match char::from_u32(point) {
            Some(char) => {
                form.extend(casefold(char.encode_utf8(&mut [0; 4])).chars().map(u32::from))
            }
            None => form.push(point),
        }
        0
    }
}

static APART: LazyLock<Mapping<Apart>> = LazyLock::new(|| Mapping::new(Apart));
static FOLDED: LazyLock<Mapping<Folded>> = LazyLock::new(|| Mapping::new(Folded));

/// Return the NFKD of a code point, with long forms cut.
#[inline(always)]
pub fn apart(point: u32) -> impl Iterator<Item = u32> {
    APART.form(point)
}

/// A code point that doesn't decompose.
#[derive(Clone, Copy)]
pub struct Part {
    pub point: u32,
    pub properties: Properties,
}

/// Parts in canonical order: runs of non-starters are sorted by class, and equal ones keep their
/// order. Runs are short, see `marks`.
#[derive(Default)]
pub struct Parts(Vec<Part>);

impl Parts {
    pub fn clear(&mut self) {
        self.0.clear();
    }

    pub fn push(&mut self, point: u32) {
        let part = Part { point, properties: Properties::of(point) };
        let class = class_of(part.properties);
        self.0.push(part);
        if class != 0 {
            // Starters have the class 0.
            let mut at = self.0.len() - 1;
            while at > 0 && class_of(self.0[at - 1].properties) > class {
                self.0.swap(at - 1, at);
                at -= 1;
            }
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = Part> {
        self.0.iter().copied()
    }
}

/// Code points on their way through the steps.
#[derive(Default)]
pub struct Steps {
    apart: Parts,
    folded: Vec<u32>,
}

/// Replace `points` by their NFKC.
pub fn compose_all(points: &mut Vec<u32>, steps: &mut Steps) {
    let apart = &mut steps.apart;
    apart.clear();
    for &point in points.iter() {
        APART.form(point).for_each(|part| apart.push(part));
    }
    points.clear();
    // The last starter, and the class of what is behind it and didn't compose.
    let (mut starter, mut last) = (None, 0);
    for Part { point, properties } in apart.iter() {
        let class = class_of(properties);
        if properties.has(SECOND)
            && let Some(at) = starter
            && (at + 1 == points.len() || last != 0 && last < class)
            && let Some(whole) = compose(points[at], point)
        {
            points[at] = whole;
            continue;
        }
        if class == 0 {
            starter = Some(points.len());
        }
        last = class;
        points.push(point);
    }
}

/// Return the combining class of a code point that doesn't decompose.
fn class_of(properties: Properties) -> u8 {
    properties.last_class()
}

/// Fold the case of `points`, and return whether that changed them.
pub fn fold_case(points: &mut Vec<u32>, steps: &mut Steps) -> bool {
    let folded = &mut steps.folded;
    folded.clear();
    for &point in points.iter() {
        FOLDED.append(point, folded);
    }
    let changed = folded != points;
    std::mem::swap(folded, points);
    changed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::unicode::CODE_POINTS;

    fn composed(text: &str) -> String {
        let mut points: Vec<u32> = text.chars().map(u32::from).collect();
        compose_all(&mut points, &mut Steps::default());
        points.into_iter().filter_map(char::from_u32).collect()
    }

    #[test]
    fn every_code_point_is_composed_as_by_icu() {
        for char in (0..CODE_POINTS).filter_map(char::from_u32) {
            if matches!(char, '\u{FDFA}' | '\u{FDFB}') {
                continue;
            }
            for text in
                [format!("{char}"), format!("a{char}\u{301}\u{323}"), format!("\u{AC00}{char}")]
            {
                assert_eq!(composed(&text), nfkc(&text), "{text:?}");
            }
        }
    }

    #[test]
    fn runs_are_ordered_and_blocked() {
        for text in [
            "q\u{307}\u{323}",
            "e\u{301}\u{323}\u{302}",
            "\u{1112}\u{1161}\u{11AB}",
            "a\u{5AE}\u{300}\u{315}b",
            "\u{9C7}\u{301}\u{9BE}",
            "\u{1161}\u{11A8}",
            "\u{301}a\u{345}\u{301}",
        ] {
            assert_eq!(composed(text), nfkc(text), "{text:?}");
        }
    }

    #[test]
    fn long_forms_are_cut() {
        assert_eq!(composed("\u{FDFA}").chars().count(), 6);
    }
}
