//! Marks that carry no words: writers leave them out, and readers read on.
//!
//! These are the nonspacing marks (category Mn) of
//!
//! - the blocks of combining diacritical marks, which Latin, Greek and Cyrillic share, and the
//!   breathings and titlo of old Cyrillic: accents, the tones of Vietnamese, the marks of й and ё;
//! - Hebrew: points and cantillation;
//! - Arabic: vowel signs (harakat), shadda, the signs of the Quran; madda and hamza, where Unicode
//!   has them as marks of a letter, such as alef;
//! - Syriac and Samaritan: points and vowel signs.
//!
//! Overlays have a switch of their own. In other scripts marks are vowels, consonants or tones that
//! no text leaves out, and stay: those of India, Thai, Lao, Khmer, Burmese and Tibetan, the voiced
//! sounds of kana, Thaana, N'Ko, Ethiopic. Marks over symbols stay too.
//!
//! A few letters have a mark that Unicode doesn't take apart. They become what is written without
//! it: ø, ł, đ, ħ, ŧ, the i without a dot, the alef with wasla; æ and œ become two letters.

use icu_properties::props::GeneralCategory;

use crate::text::unicode::{category, combining_class, nfc, nfd, nfkd};

const OVERLAY: u8 = 1;

/// Return a character without such marks; itself if it has none.
///
/// compatible: whether compatibility forms are taken apart too.
pub fn without_accents(char: char, compatible: bool) -> String {
    let whole = String::from(char);
    let apart = if compatible { nfkd(&whole) } else { nfd(&whole) };
    let mut left = String::new();
    for part in apart.chars().filter(|&part| !is_accent(part)) {
        match plain(part) {
            Some(plain) => left.push_str(plain),
            None => left.push(part),
        }
    }
    if left == apart { whole } else { nfc(&left) }
}

/// Return what a letter is without a mark that Unicode doesn't take apart.
fn plain(letter: char) -> Option<&'static str> {
    Some(match letter {
        'ø' => "o",
        'Ø' => "O",
        'ł' => "l",
        'Ł' => "L",
        'đ' => "d",
        'Đ' => "D",
        'ħ' => "h",
        'Ħ' => "H",
        'ŧ' => "t",
        'Ŧ' => "T",
        'æ' => "ae",
        'Æ' => "AE",
        'œ' => "oe",
        'Œ' => "OE",
        '\u{131}' => "i",
        '\u{671}' => "\u{627}",
        _ => return None,
    })
}

fn is_accent(char: char) -> bool {
    let point = u32::from(char);
    let of_a_script_that_leaves_them_out = matches!(
        point,
        0x300..0x370 | 0x483..0x488 | 0x1AB0..0x1B00 | 0x1DC0..0x1E00 | 0xFE20..0xFE30
            // Hebrew
            | 0x590..0x600 | 0xFB1E
            // Arabic
            | 0x600..0x700 | 0x890..0x900 | 0x10EC0..0x10F00
            // Syriac, Samaritan
            | 0x700..0x750 | 0x800..0x840
    );
    of_a_script_that_leaves_them_out
        && category(point) == GeneralCategory::NonspacingMark
        && combining_class(point) != OVERLAY
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accents_are_dropped() {
        for (char, expected) in [
            ('\u{301}', ""),
            ('é', "e"),
            ('ǽ', "ae"),
            ('й', "и"),
            ('\u{623}', "\u{627}"),
            ('\u{336}', "\u{336}"),
            ('が', "が"),
            ('½', "½"),
        ] {
            assert_eq!(without_accents(char, true), expected);
        }
        assert_eq!(without_accents('Ǆ', true), "DZ");
        assert_eq!(without_accents('Ǆ', false), "Ǆ");
    }
}
