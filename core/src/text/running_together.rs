//! Letters run together: what stands between two letters is dropped, at a switch.
//!
//! - `join_letters`: white space is dropped. So letters spaced out are joined, and words too. It
//!   stays before a mark, which would join what is before it.
//! - `drop_symbols`: then stretches of punctuation and symbols, of which emoji are a part, are
//!   dropped if there is a letter, mark or number on either side. What begins or ends a text stays,
//!   so a text of nothing but emoji has a fingerprint.

use super::properties::{Properties, Sort};

/// Drop white space, unless a mark follows.
pub fn drop_white_space<Code: Copy + Into<u32>>(codes: &mut Vec<Code>) {
    let sort = |code: Code| Properties::of(code.into()).sort();
    let mut kept = 0;
    for at in 0..codes.len() {
        let code = codes[at];
        let dropped = sort(code) == Sort::Space
            && codes.get(at + 1).is_none_or(|&after| sort(after) != Sort::Mark);
        codes[kept] = code;
        kept += usize::from(!dropped);
    }
    codes.truncate(kept);
}

/// Drop symbols between letters. A mark can end what is before them, but not begin what is behind:
/// nothing may come to stand behind a letter that joins it.
pub fn drop_symbols<Code: Copy + Into<u32>>(codes: &mut Vec<Code>) {
    let mut kept = 0;
    let mut before = Sort::Other;
    // How many symbols were kept, for now, behind a letter or mark.
    let mut symbols = 0;
    for at in 0..codes.len() {
        let code = codes[at];
        let sort = Properties::of(code.into()).sort();
        if sort == Sort::Symbol {
            symbols += usize::from(symbols > 0 || matches!(before, Sort::Letter | Sort::Mark));
        } else {
            if sort == Sort::Letter {
                kept -= symbols;
            }
            symbols = 0;
        }
        before = sort;
        codes[kept] = code;
        kept += 1;
    }
    codes.truncate(kept);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left(text: &str, drop: fn(&mut Vec<u32>)) -> String {
        let mut points: Vec<u32> = text.chars().map(u32::from).collect();
        drop(&mut points);
        points.into_iter().filter_map(char::from_u32).collect()
    }

    #[test]
    fn white_space_stays_before_a_mark() {
        assert_eq!(left("v i a g r a", drop_white_space), "viagra");
        assert_eq!(left(" a \u{301}b ", drop_white_space), "a \u{301}b");
    }

    #[test]
    fn symbols_between_letters_are_dropped() {
        for (text, expected) in [
            ("v.i-a*gra", "viagra"),
            ("...a..b...", "...ab..."),
            ("\u{1F600}\u{1F600}", "\u{1F600}\u{1F600}"),
            ("a. b", "a. b"),
            ("a\u{301}!1", "a\u{301}1"),
            ("a!\u{301}b", "a!\u{301}b"),
            ("a!\u{301}!b", "a!\u{301}b"),
        ] {
            assert_eq!(left(text, drop_symbols), expected);
        }
    }
}
