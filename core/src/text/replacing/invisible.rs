//! Characters that nothing shows.
//!
//! A text can be filled with code points that no reader sees: zero-width spaces, soft hyphens,
//! variation selectors, controls of direction, and control characters such as NUL. They are
//! dropped. So are strokes that only make a word longer: the tatweel of Arabic (U+0640), its like in
//! N'Ko and Mongolian, and presentation forms of vowel signs over a tatweel.
//!
//! Joiners are not among them: see `joiners`.

use icu_properties::props::{GeneralCategory, JoiningType};

use crate::text::properties::is_joiner;
use crate::text::unicode::{category, is_default_ignorable, is_white_space, joining_type, nfkd};

const TATWEEL: char = '\u{640}';
const PRESENTATION_FORMS_OF_ARABIC: std::ops::Range<u32> = 0xFB50..0xFF00;

/// Return whether nothing shows a character that is neither white space nor a joiner.
///
/// These are those with the property Default_Ignorable_Code_Point, assigned or not, control
/// characters (category Cc), and elongations, also in presentation forms.
pub fn is_ignorable(char: char) -> bool {
    let point = u32::from(char);
    if is_joiner(point) {
        return false;
    }
    is_default_ignorable(point)
        || is_elongation(point)
        || category(point) == GeneralCategory::Control && !is_white_space(point)
        || PRESENTATION_FORMS_OF_ARABIC.contains(&point)
            && nfkd(char.encode_utf8(&mut [0; 4])).contains(TATWEEL)
}

/// Return whether a character is a stroke that makes a cursive word longer.
fn is_elongation(point: u32) -> bool {
    joining_type(point) == JoiningType::JoinCausing
        && matches!(
            category(point),
            GeneralCategory::ModifierLetter | GeneralCategory::OtherPunctuation
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_ignorable() {
        for char in
            "\0\u{7F}\u{AD}\u{34F}\u{200B}\u{FE0F}\u{E0100}\u{640}\u{7FA}\u{180A}\u{FE71}\u{FCF2}"
                .chars()
        {
            assert!(is_ignorable(char), "{char:?}");
        }
        for char in "a \n\u{1F}\u{85}\u{200C}\u{200D}\u{301}\u{FE70}".chars() {
            assert!(!is_ignorable(char), "{char:?}");
        }
    }
}
