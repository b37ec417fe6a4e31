//! What the normal form must know of each code point.
//!
//! A code point *starts afresh* if its NFKD begins with a starter that is not the second of any
//! canonical composition. Nothing before it can then reorder or compose with it or with what
//! follows, so NFKC can be split in front of it (Unicode Standard Annex 15, "Concatenation of
//! Normalized Strings"). NFKC is applied again after case folding, so the folded form of a code
//! point must start afresh too.
//!
//! The others *join* what is before them: marks, some vowel signs, the jamo of Hangul. A special
//! mark is U+0345, the iota below a letter: case folding turns it into a letter, behind all other
//! marks. So letters that have one start afresh, but their forms don't hold if marks follow.
//!
//! U+200C and U+200D join nothing, but they count as what joins: whether they stay depends on
//! their neighbours (`joiners`).

use std::sync::OnceLock;

use icu_properties::props::{GeneralCategory, JoiningType};

use super::composition::is_second;
use super::unicode::{
    self, CODE_POINTS, casefold, category, combining_class, joining_type, nfkc, nfkd, size_in_utf8,
};

/// How a code point depends on its neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Afresh,
    Joins,
    /// It joins, and its case folds to a letter.
    Iota,
    /// It starts afresh, and has an iota below.
    WithIota,
}

/// What a code point is when letters are run together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    Other,
    /// A letter or number that starts afresh.
    Letter,
    /// A mark, or whatever else joins what is before it.
    Mark,
    /// Punctuation or a symbol.
    Symbol,
    Space,
}

/// Its last letter joins the next one in cursive writing.
pub const TO_NEXT: u32 = 1 << 16;
/// Its first letter joins the one before it.
pub const TO_LAST: u32 = 1 << 17;
/// It is nothing but marks.
pub const MARK: u32 = 1 << 18;
/// It has a starter.
pub const STARTER: u32 = 1 << 19;
/// Behind its last starter, there is a virama.
pub const ENDS_IN_VIRAMA: u32 = 1 << 20;
/// It is U+200C or U+200D.
pub const JOINER: u32 = 1 << 21;
/// It is U+0345.
pub const IOTA: u32 = 1 << 22;
/// It is the second of a canonical composition.
pub const SECOND: u32 = 1 << 5;
/// It neither decomposes nor folds to anything else.
pub const STABLE: u32 = 1 << 6;
/// It can become more code points than it has bytes.
pub const EXPANDING: u32 = 1 << 31;

const IOTA_BELOW: u32 = 0x345;
const IOTA_BELOW_CHAR: char = '\u{345}';
const VIRAMA: u8 = 9;

/// The properties of one code point.
///
/// Bits 0 to 1: its kind; 2 to 4: its sort; 7 to 11: `marks_alone`; 12 to 15: `marks_behind`;
/// 23 to 30: `last_class`. The other bits are flags.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Properties(u32);

impl Properties {
    /// Return the properties of a code point.
    #[inline(always)]
    pub fn of(point: u32) -> Self {
        let page = &PAGES[(point >> 8) as usize];
        let page = match page.get() {
            Some(page) => page,
            None => fill(point >> 8),
        };
        page[(point & 0xFF) as usize]
    }

    #[inline(always)]
    pub fn has(self, flags: u32) -> bool {
        self.0 & flags != 0
    }

    #[inline(always)]
    pub fn kind(self) -> Kind {
        match self.0 & 3 {
            0 => Kind::Afresh,
            1 => Kind::Joins,
            2 => Kind::Iota,
            _ => Kind::WithIota,
        }
    }

    #[inline(always)]
    pub fn sort(self) -> Sort {
        match self.0 >> 2 & 7 {
            0 => Sort::Other,
            1 => Sort::Letter,
            2 => Sort::Mark,
            3 => Sort::Symbol,
            _ => Sort::Space,
        }
    }

    /// Return the length of its NFKD if that has no starter, else 0.
    #[inline(always)]
    pub fn marks_alone(self) -> u32 {
        self.0 >> 7 & 31
    }

    /// Return how many non-starters its NFKD ends with, if it has a starter; else 0.
    #[inline(always)]
    pub fn marks_behind(self) -> u32 {
        self.0 >> 12 & 15
    }

    /// Return the combining class of the last code point of its NFKD.
    #[inline(always)]
    pub fn last_class(self) -> u8 {
        (self.0 >> 23) as u8
    }

    fn made(point: u32) -> Self {
        let Some(char) = char::from_u32(point) else {
            return Self(STARTER | STABLE);
        };
        let text = String::from(char);
        let apart = nfkd(&text);
        let classes: Vec<u8> = apart.chars().map(|part| combining_class(part.into())).collect();
        let behind = classes.iter().rev().take_while(|&&class| class > 0).count();
        let (alone, behind) = if behind == classes.len() { (behind, 0) } else { (0, behind) };
        let folded = casefold(&text);
        let kind = kind_of(point, &text, &apart);
        let longest = nfkc(&text).chars().count().max(folded.chars().count());
        let flags = [
            (SECOND, is_second(point)),
            (STABLE, apart == text && folded == text),
            (EXPANDING, longest > size_in_utf8(point)),
        ];
        let flags: u32 = flags.iter().map(|&(flag, is)| flag * u32::from(is)).sum();
        Self(
            kind as u32
                | (sort_of(point, kind) as u32) << 2
                | (alone as u32) << 7
                | (behind as u32) << 12
                | traits_of(point, &apart, &classes)
                | u32::from(classes[classes.len() - 1]) << 23
                | flags,
        )
    }
}

type Page = [Properties; 256];

static PAGES: [OnceLock<Box<Page>>; CODE_POINTS as usize / 256] =
    [const { OnceLock::new() }; CODE_POINTS as usize / 256];

#[cold]
#[inline(never)]
fn fill(number: u32) -> &'static Page {
    PAGES[number as usize].get_or_init(|| {
        Box::new(std::array::from_fn(|place| Properties::made(number << 8 | place as u32)))
    })
}

/// Return whether a code point is U+200C or U+200D.
#[inline(always)]
pub const fn is_joiner(point: u32) -> bool {
    point & !1 == 0x200C
}

fn kind_of(point: u32, text: &str, apart: &str) -> Kind {
    if is_joiner(point) {
        return Kind::Joins;
    }
    let starts_afresh = |text: &str| {
        text.chars()
            .next()
            .is_none_or(|first| combining_class(first.into()) == 0 && !is_second(first.into()))
    };
    if apart.contains(IOTA_BELOW_CHAR) {
        return if starts_afresh(apart) { Kind::WithIota } else { Kind::Iota };
    }
    let folded = nfkd(&casefold(&nfkc(text)));
    if starts_afresh(apart) && starts_afresh(&folded) { Kind::Afresh } else { Kind::Joins }
}

fn sort_of(point: u32, kind: Kind) -> Sort {
    if unicode::is_white_space(point) {
        Sort::Space
    } else if unicode::is_alphanumeric(point) {
        if kind == Kind::Afresh { Sort::Letter } else { Sort::Mark }
    } else if unicode::is_mark(point) {
        Sort::Mark
    } else if unicode::is_punctuation_or_symbol(point) {
        Sort::Symbol
    } else {
        Sort::Other
    }
}

/// Return the traits by which joiners are judged, of a code point with this NFKD.
///
/// The first letter decides whether it joins the last one, the last letter whether it joins the
/// next one.
fn traits_of(point: u32, apart: &str, classes: &[u8]) -> u32 {
    if is_joiner(point) {
        return JOINER;
    }
    let mut letters = apart.chars().map(u32::from).filter(|&part| {
        // The case of the iota below is folded to a letter.
        let is_mark = matches!(
            category(part),
            GeneralCategory::NonspacingMark | GeneralCategory::EnclosingMark
        );
        !is_mark || part == IOTA_BELOW
    });
    let first = letters.next();
    let last = letters.next_back().or(first);
    let mut traits = match (first, last) {
        (Some(first), Some(last)) => joins(first) & TO_LAST | joins(last) & TO_NEXT,
        _ => MARK,
    };
    let starter = classes.iter().rposition(|&class| class == 0);
    if starter.is_some() {
        traits |= STARTER;
    }
    if classes[starter.unwrap_or(0)..].contains(&VIRAMA) {
        traits |= ENDS_IN_VIRAMA;
    }
    if point == IOTA_BELOW {
        traits |= IOTA;
    }
    traits
}

fn joins(letter: u32) -> u32 {
    match joining_type(letter) {
        JoiningType::DualJoining => TO_NEXT | TO_LAST,
        JoiningType::LeftJoining => TO_NEXT,
        JoiningType::RightJoining => TO_LAST,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds() {
        for (point, kind) in [
            (0x61, Kind::Afresh),
            (0xE9, Kind::Afresh),
            (0x301, Kind::Joins),
            (0x9BE, Kind::Joins),
            (0x1161, Kind::Joins),
            (0x200D, Kind::Joins),
            (0xFF9E, Kind::Joins),
            (0x345, Kind::Iota),
            (0x1FB3, Kind::WithIota),
            (0xD800, Kind::Afresh),
        ] {
            assert_eq!(Properties::of(point).kind(), kind, "{point:X}");
        }
    }

    #[test]
    fn marks_are_counted_in_nfkd() {
        assert_eq!(Properties::of(0x344).marks_alone(), 2);
        assert_eq!(Properties::of(0x1F82).marks_behind(), 3);
        assert_eq!(Properties::of(0xE9).last_class(), 230);
        assert_eq!(Properties::of(0x61).marks_behind(), 0);
    }

    /// The folded form stands for the letter itself where marks behind a letter are counted.
    #[test]
    fn folding_keeps_the_marks_of_what_starts_afresh() {
        for point in (0..CODE_POINTS).filter(|&point| char::from_u32(point).is_some()) {
            let properties = Properties::of(point);
            if properties.kind() != Kind::Afresh {
                continue;
            }
            let text = String::from(char::from_u32(point).unwrap_or_default());
            let folded = nfkc(&casefold(&nfkc(&text)));
            let last = folded.chars().last().map_or(0, u32::from);
            assert!(properties.marks_behind() <= 2, "{point:X}");
            let last = Properties::of(last);
            if !last.has(STARTER) {
                continue; // Such a letter is normalised together with what joins it.
            }
            assert_eq!(last.marks_behind(), properties.marks_behind(), "{point:X}");
            assert_eq!(last.last_class(), properties.last_class(), "{point:X}");
        }
    }
}
