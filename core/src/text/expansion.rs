//! How far a text may expand.
//!
//! A text can be made of nothing but characters that expand, such as U+3316: to two code points for
//! each byte. Whether it goes too far is decided for the text as a whole: its characters may expand
//! beyond their own sizes by a quarter of the text's size, and 32 more. Otherwise each is cut to its
//! size. Such a text is a list of characters, not language; any other one is unchanged. So a normal
//! form has at most 1.25 code points for each byte of the text, and 32 more.

use super::Switches;
use super::composition::Steps;
use super::folding::{ReplacedAndFolded, Replacement, fold};
use super::mapping::{JOINS, Rule};
use super::properties::{EXPANDING, Properties};
use super::unicode::size_in_utf8;

/// A text may expand by this part of its size in UTF-8,
const SHARE: usize = 4;
/// and by so many code points.
const FREE: usize = 32;

/// Counts by how much the characters of a text expand.
#[derive(Default)]
pub struct Expansion {
    /// The code points beyond the sizes of their characters in UTF-8.
    excess: usize,
}

impl Expansion {
    /// Count a code point that becomes so many.
    #[inline(always)]
    pub fn add(&mut self, point: u32, becomes: usize) {
        self.excess += becomes.saturating_sub(size_in_utf8(point));
    }

    /// Return whether a text of so many bytes in UTF-8 expands too far.
    #[inline(always)]
    pub fn is_too_far(&self, size: usize) -> bool {
        self.excess > FREE && SHARE.saturating_mul(self.excess - FREE) > size
    }
}

/// What characters become by themselves, even those that join what is before them.
pub struct Alone(pub Switches);

impl Rule for Alone {
    fn apply(&self, point: u32, form: &mut Vec<u32>) -> u32 {
        if ReplacedAndFolded(self.0).apply(point, form) & JOINS != 0 {
            fold(form, &self.0, &mut Steps::default());
        }
        0
    }
}

/// What characters are replaced by where a text expands too far: by forms that are cut to the sizes
/// of the characters. These have yet to be folded.
pub struct Cut(pub Switches);

impl Rule for Cut {
    fn apply(&self, point: u32, form: &mut Vec<u32>) -> u32 {
        let mut parts = vec![point];
        if Properties::of(point).has(EXPANDING) {
            parts.clear();
            Alone(self.0).apply(point, &mut parts);
            parts.truncate(size_in_utf8(point));
        }
        for part in parts {
            Replacement(self.0).apply(part, form);
        }
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::unicode::CODE_POINTS;

    #[test]
    fn a_quarter_and_a_few_more_are_allowed() {
        let mut expansion = Expansion::default();
        for _ in 0..32 {
            expansion.add(0xBD, 3);
        }
        assert!(!expansion.is_too_far(0));
        expansion.add(0x41, 1);
        assert!(!expansion.is_too_far(0));
        expansion.add(0x3316, 5);
        assert!(expansion.is_too_far(7) && !expansion.is_too_far(8));
    }

    #[test]
    fn cut_forms_have_no_more_code_points_than_bytes() {
        let switches = Switches { nfkc: true, casefold: true, ..Switches::default() };
        for point in 0..CODE_POINTS {
            let (mut form, mut cut) = (Vec::new(), Vec::new());
            Alone(switches).apply(point, &mut form);
            Cut(switches).apply(point, &mut cut);
            if form.len() > size_in_utf8(point) {
                assert_eq!(cut, form[..size_in_utf8(point)], "{point:X}");
            } else {
                assert!(cut.len() <= size_in_utf8(point), "{point:X}");
            }
        }
    }
}
