//! Marks that are drawn over or around a letter, which stays readable.
//!
//! These are the marks of two blocks that all scripts share, Combining Diacritical Marks and those
//! for Symbols, that have combining class 1 (overlays: strokes, slashes, rings) or enclose a letter
//! (category Me: circles, squares, keycaps). Overlays of single scripts, such as the tones of Bassa
//! Vah and Vedic signs, are part of a language.
//!
//! A negated sign such as U+2260 (not equal) is canonically equivalent to a sign and a slash over
//! it (U+003D U+0338), so it loses the slash too.

use icu_properties::props::GeneralCategory;

use crate::text::unicode::{category, combining_class, nfc, nfd};

const OVERLAY: u8 = 1;

/// Return `text` without overlays.
pub fn without_overlays(text: &str) -> String {
    let apart = nfd(text);
    if !apart.contains(is_overlay) {
        return text.to_owned();
    }
    nfc(&apart.replace(is_overlay, ""))
}

fn is_overlay(char: char) -> bool {
    let point = u32::from(char);
    matches!(point, 0x300..0x370 | 0x20D0..0x2100)
        && (combining_class(point) == OVERLAY || category(point) == GeneralCategory::EnclosingMark)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlays_are_dropped_also_from_what_is_composed_with_them() {
        for (text, expected) in [
            ("\u{336}", ""),
            ("\u{20DD}", ""),
            ("\u{2260}", "="),
            ("\u{2ADC}", "\u{2ADD}"),
            ("\u{E9}", "\u{E9}"),
            ("\u{16AF0}", "\u{16AF0}"),
        ] {
            assert_eq!(without_overlays(text), expected);
        }
    }
}
