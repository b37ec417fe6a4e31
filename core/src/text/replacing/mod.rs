//! What single characters are replaced by before a text is normalised, each kind a switch.
//!
//! - `drop_invisible`: characters that nothing shows are dropped; see `invisible`.
//! - `drop_overlays`: so are strokes and enclosures; see `overlays`.
//! - `fold_accents`: so are accents, and the like of other scripts; see `accents`.
//! - `fold_confusables`: letters that look like ASCII become ASCII; see `look_alikes`.
//! - `fold_digits`: every decimal digit of any script becomes 0.

mod accents;
mod confusables;
mod invisible;
mod look_alikes;
mod overlays;

use super::Switches;
use super::unicode::{is_decimal, nfkc};

/// Return what a character is replaced by; nothing if it is dropped.
pub fn replaced(char: char, switches: &Switches) -> String {
    if switches.drop_invisible && invisible::is_ignorable(char) {
        return String::new();
    }
    let mut text = String::from(char);
    if switches.drop_overlays {
        text = overlays::without_overlays(&text);
    }
    if switches.fold_accents {
        text = text.chars().map(|char| accents::without_accents(char, switches.nfkc)).collect();
    }
    if switches.fold_confusables {
        text = look_alikes::looks_like(text, switches);
    }
    if switches.fold_digits {
        text = with_zeros(text, switches.nfkc);
    }
    text
}

/// Return `text` with 0 for every digit. `compatible`: also for those in compatibility forms.
fn with_zeros(text: String, compatible: bool) -> String {
    let whole = if compatible { nfkc(&text) } else { text.clone() };
    let is_digit = |char: char| is_decimal(char.into());
    if !whole.contains(is_digit) {
        return text;
    }
    whole.replace(is_digit, "0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_of_any_script_become_zero() {
        let digits = Switches { nfkc: true, fold_digits: true, ..Switches::default() };
        for (char, expected) in [('7', "0"), ('\u{663}', "0"), ('\u{2460}', "0"), ('x', "x")] {
            assert_eq!(replaced(char, &digits), expected);
        }
        let exact = Switches { nfkc: false, ..digits };
        assert_eq!(replaced('\u{2460}', &exact), "\u{2460}");
    }
}
