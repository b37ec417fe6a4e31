//! What Unicode says of single code points and of short strings.
//!
//! These are ICU4X's answers. They are used to fill tables; no text goes through them.

use icu_casemap::CaseMapper;
use icu_locale_core::LanguageIdentifier;
use icu_normalizer::properties::CanonicalCombiningClassMapBorrowed;
use icu_normalizer::{ComposingNormalizerBorrowed, DecomposingNormalizerBorrowed};
use icu_properties::props::{DefaultIgnorableCodePoint, GeneralCategory, JoiningType};
use icu_properties::{CodePointMapData, CodePointSetData};

/// The version of the Unicode data that normal forms are made with.
pub const UNICODE_VERSION: &str = "18.0.0";

/// Code points are below this.
pub const CODE_POINTS: u32 = 0x11_0000;

pub fn nfc(text: &str) -> String {
    ComposingNormalizerBorrowed::new_nfc().normalize(text).into_owned()
}

pub fn nfkc(text: &str) -> String {
    ComposingNormalizerBorrowed::new_nfkc().normalize(text).into_owned()
}

pub fn nfd(text: &str) -> String {
    DecomposingNormalizerBorrowed::new_nfd().normalize(text).into_owned()
}

pub fn nfkd(text: &str) -> String {
    DecomposingNormalizerBorrowed::new_nfkd().normalize(text).into_owned()
}

/// Full case folding, without the special cases of Turkic languages.
pub fn casefold(text: &str) -> String {
    CaseMapper::new().fold_string(text).into_owned()
}

/// Full mapping to capitals, of no language.
pub fn uppercase(text: &str) -> String {
    CaseMapper::new().uppercase_to_string(text, &LanguageIdentifier::UNKNOWN).into_owned()
}

pub fn category(point: u32) -> GeneralCategory {
    CodePointMapData::<GeneralCategory>::new().get32(point)
}

pub fn joining_type(point: u32) -> JoiningType {
    CodePointMapData::<JoiningType>::new().get32(point)
}

pub fn is_default_ignorable(point: u32) -> bool {
    CodePointSetData::new::<DefaultIgnorableCodePoint>().contains32(point)
}

/// Return the canonical combining class.
pub fn combining_class(point: u32) -> u8 {
    CanonicalCombiningClassMapBorrowed::new().get32_u8(point)
}

/// Return whether a code point separates words: Bidi_Class B, S or WS, or category Zs.
///
/// Python's `str.isspace` and `str.split` have the same set.
pub const fn is_white_space(point: u32) -> bool {
    matches!(
        point,
        0x09..=0x0D
            | 0x1C..=0x20
            | 0x85
            | 0xA0
            | 0x1680
            | 0x2000..=0x200A
            | 0x2028
            | 0x2029
            | 0x202F
            | 0x205F
            | 0x3000
    )
}

pub fn is_decimal(point: u32) -> bool {
    category(point) == GeneralCategory::DecimalNumber
}

/// Return whether a code point is a letter or a number.
pub fn is_alphanumeric(point: u32) -> bool {
    use GeneralCategory::*;
    matches!(
        category(point),
        UppercaseLetter
            | LowercaseLetter
            | TitlecaseLetter
            | ModifierLetter
            | OtherLetter
            | DecimalNumber
            | LetterNumber
            | OtherNumber
    )
}

pub fn is_punctuation_or_symbol(point: u32) -> bool {
    use GeneralCategory::*;
    matches!(
        category(point),
        ConnectorPunctuation
            | DashPunctuation
            | OpenPunctuation
            | ClosePunctuation
            | InitialPunctuation
            | FinalPunctuation
            | OtherPunctuation
            | MathSymbol
            | CurrencySymbol
            | ModifierSymbol
            | OtherSymbol
    )
}

/// Return whether a code point is a mark, of any of the three categories.
pub fn is_mark(point: u32) -> bool {
    use GeneralCategory::*;
    matches!(category(point), NonspacingMark | SpacingMark | EnclosingMark)
}

/// Return the size of a code point in UTF-8.
pub const fn size_in_utf8(point: u32) -> usize {
    1 + (point > 0x7F) as usize + (point > 0x7FF) as usize + (point > 0xFFFF) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Another release of the crates may have other data. Then `UNICODE_VERSION` must change.
    #[test]
    fn the_data_are_of_the_version() {
        let assigned = (0..CODE_POINTS).filter(|&point| {
            !matches!(
                category(point),
                GeneralCategory::Unassigned
                    | GeneralCategory::PrivateUse
                    | GeneralCategory::Surrogate
            )
        });
        assert_eq!((UNICODE_VERSION, assigned.count()), ("18.0.0", 172_873));
    }

    #[test]
    fn white_space_is_what_unicode_calls_so_and_four_separators() {
        use icu_properties::props::WhiteSpace;
        let set = CodePointSetData::new::<WhiteSpace>();
        for point in 0..CODE_POINTS {
            let expected = set.contains32(point) || (0x1C..=0x1F).contains(&point);
            assert_eq!(is_white_space(point), expected, "{point:X}");
        }
    }
}
