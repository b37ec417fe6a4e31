//! Letters that look like ASCII become ASCII (Unicode Technical Standard 39): Cyrillic and Greek
//! letters, for instance, and those with a stroke. Both cases look alike, except for a few Greek
//! letters: Nu and Upsilon, small, are v and u.

use super::confusables::CONFUSABLES;
use crate::text::Switches;
use crate::text::unicode::{casefold, combining_class, nfc, nfd, nfkc, uppercase};

/// Return what a text of a character or two looks like; itself if that isn't ASCII.
pub fn looks_like(text: String, switches: &Switches) -> String {
    let whole = if switches.nfkc { nfkc(&text) } else { text.clone() };
    let mut shown = String::new();
    let mut changed = false;
    for part in nfd(&whole).chars() {
        let small = nfd(&casefold(part.encode_utf8(&mut [0; 4])));
        let seen = match ascii(part) {
            Some(seen) => seen.to_owned(),
            None => all_seen(&small),
        };
        changed |= seen != small;
        if switches.casefold || small.chars().eq([part]) {
            shown.push_str(&seen);
        } else {
            shown.push_str(&uppercase(&seen));
        }
    }
    if !changed {
        return text;
    }
    // Marks that don't compose, such as the breathings of Greek, are dropped.
    nfc(&shown).chars().filter(|&char| combining_class(char.into()) == 0).collect()
}

fn all_seen(text: &str) -> String {
    let mut seen = String::new();
    for char in text.chars() {
        match ascii(char) {
            Some(ascii) => seen.push_str(ascii),
            None => seen.push(char),
        }
    }
    seen
}

/// Return the ASCII that a character looks like.
fn ascii(char: char) -> Option<&'static str> {
    let point = u32::from(char);
    let after = CONFUSABLES.partition_point(|&(first, _, _)| first <= point);
    let &(_, last, shown) = CONFUSABLES.get(after.checked_sub(1)?)?;
    (point <= last).then_some(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SWITCHES: Switches = Switches {
        nfkc: true,
        casefold: false,
        fold_confusables: true,
        collapse_whitespace: false,
        drop_invisible: false,
        drop_overlays: false,
        fold_digits: false,
        fold_accents: false,
        fold_turkish_i: false,
        drop_symbols: false,
        join_letters: false,
        strip_html: false,
        reduce_urls: false,
    };

    #[test]
    fn letters_become_what_they_look_like() {
        for (text, expected) in [
            ("\u{430}", "a"),
            ("\u{391}", "A"),
            ("\u{3BD}", "v"),
            ("\u{39D}", "N"),
            ("\u{451}", "\u{EB}"),
            ("\u{4E2D}", "\u{4E2D}"),
            ("\u{2019}", "'"),
        ] {
            assert_eq!(looks_like(text.to_owned(), &SWITCHES), expected, "{text}");
        }
    }

    #[test]
    fn the_table_ascends() {
        assert!(CONFUSABLES.iter().all(|&(first, last, shown)| first <= last && shown.is_ascii()));
        assert!(CONFUSABLES.windows(2).all(|pair| pair[0].1 < pair[1].0));
    }
}
