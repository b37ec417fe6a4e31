//! The two letters i of Turkish and Azeri, with a dot and without, read as one.
//!
//! Each has a capital: I has no dot, and İ has one. Case folding knows no language. It makes an i of
//! I, and an i with one more dot of İ, so a text in capitals differs from the same in small letters.
//! What language a text is in isn't known, and to take the dot off every I would do to all other
//! languages what is mended for two. So all four letters become i, and so does an i with one more
//! dot, which is what software that knows no Turkish makes of İ. A letter that carries another mark
//! is left as it is.

use super::properties::{Kind, Properties};

const DOT: u32 = 0x307;
const CAPITAL_WITH_DOT: u32 = 0x130;
const SMALL_WITHOUT_DOT: u32 = 0x131;
const CAPITAL: u32 = 'I' as u32;
const SMALL: u32 = 'i' as u32;

/// Make each of these letters i, or I for a capital.
pub fn read_as_one(points: &mut Vec<u32>) {
    let is_one = |point| matches!(point, DOT | CAPITAL_WITH_DOT | SMALL_WITHOUT_DOT);
    let Some(first) = points.iter().position(|&point| is_one(point)) else {
        return;
    };
    let mut kept = first;
    for at in first..points.len() {
        let point = points[at];
        let carries_a_mark =
            points.get(at + 1).is_some_and(|&after| Properties::of(after).kind() != Kind::Afresh);
        let read = match point {
            _ if carries_a_mark => point,
            DOT if kept > 0 && matches!(points[kept - 1], CAPITAL | SMALL) => continue,
            CAPITAL_WITH_DOT => CAPITAL,
            SMALL_WITHOUT_DOT => SMALL,
            _ => point,
        };
        points[kept] = read;
        kept += 1;
    }
    points.truncate(kept);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_four_letters_become_i() {
        for (text, expected) in [
            ("\u{130}\u{131}iI", "IiiI"),
            ("i\u{307}stanbul", "istanbul"),
            ("i\u{307}\u{301}", "i\u{307}\u{301}"),
            ("\u{307}", "\u{307}"),
            ("i\u{307}\u{307}", "i\u{307}\u{307}"),
            ("e\u{307}", "e\u{307}"),
        ] {
            let mut points: Vec<u32> = text.chars().map(u32::from).collect();
            read_as_one(&mut points);
            assert!(points.iter().copied().eq(expected.chars().map(u32::from)), "{text:?}");
        }
    }
}
