//! Joiners that change how letters are written, and stay; others are dropped.
//!
//! U+200C (zero width non-joiner) and U+200D (zero width joiner) stay where they change what is
//! seen:
//!
//! - both, behind a virama (combining class 9): a choice between forms of consonants in the scripts
//!   of India and its neighbours;
//! - the non-joiner, between two letters that would join: Arabic script, and others written like
//!   it. Persian separates prefixes and suffixes in this way.
//!
//! These are the rules of RFC 5892, appendix A (used by UTS 46), with marks between as in Unicode
//! Standard Annex 31, section 2.3. Of several joiners with nothing but marks between them, only the
//! first can stay.

use super::properties::{
    ENDS_IN_VIRAMA, IOTA, JOINER, MARK, Properties, STARTER, TO_LAST, TO_NEXT, is_joiner,
};

const NON_JOINER: u32 = 0x200C;

/// Drop the joiners that are out of place. Nothing else in `points` is ignorable.
pub fn drop_misplaced(points: &mut Vec<u32>) {
    if !points.iter().any(|&point| is_joiner(point)) {
        return;
    }
    let mut joins_before = joins_before(points).into_iter();
    // The last letter: whether it would join the next one, and whether a joiner was behind it.
    let (mut to_next, mut taken) = (false, false);
    // What has come last: a virama behind a starter, with no iota below since that.
    let (mut virama, mut iota) = (false, false);
    points.retain(|&point| {
        let properties = Properties::of(point);
        if properties.has(JOINER) {
            let joined = joins_before.next() == Some(true);
            let between = to_next && joined && point == NON_JOINER;
            let stays = (between || virama && !iota) && !taken;
            taken = true;
            return stays;
        }
        if properties.has(STARTER) {
            (virama, iota) = (false, false);
        }
        virama |= properties.has(ENDS_IN_VIRAMA);
        iota |= properties.has(IOTA);
        if !properties.has(MARK) {
            to_next = properties.has(TO_NEXT);
            taken = false;
        }
        true
    });
}

/// Return for each joiner whether the next letter would join what is before it.
fn joins_before(points: &[u32]) -> Vec<bool> {
    let mut found = Vec::new();
    let mut to_last = false;
    for &point in points.iter().rev() {
        let properties = Properties::of(point);
        if properties.has(JOINER) {
            found.push(to_last);
        } else if !properties.has(MARK) {
            to_last = properties.has(TO_LAST);
        }
    }
    found.reverse();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left(text: &str) -> String {
        let mut points: Vec<u32> = text.chars().map(u32::from).collect();
        drop_misplaced(&mut points);
        points.into_iter().filter_map(char::from_u32).collect()
    }

    #[test]
    fn joiners_stay_where_they_are_seen() {
        for text in [
            "\u{645}\u{6CC}\u{200C}\u{62E}",
            "\u{645}\u{6CC}\u{64E}\u{200C}\u{64E}\u{62E}",
            "\u{915}\u{94D}\u{200D}\u{937}",
            "\u{915}\u{94D}\u{200C}x",
        ] {
            assert_eq!(left(text), text);
        }
    }

    #[test]
    fn others_are_dropped() {
        for (text, expected) in [
            ("a\u{200C}b", "ab"),
            ("\u{645}\u{200D}\u{62E}", "\u{645}\u{62E}"),
            ("\u{631}\u{200C}\u{62E}", "\u{631}\u{62E}"),
            ("\u{645}\u{200C}", "\u{645}"),
            ("\u{200D}\u{94D}\u{200C}", "\u{94D}"),
            ("\u{915}\u{94D}\u{200D}\u{200C}\u{937}", "\u{915}\u{94D}\u{200D}\u{937}"),
            ("\u{915}\u{94D}\u{345}\u{200D}", "\u{915}\u{94D}\u{345}"),
        ] {
            assert_eq!(left(text), expected, "{text:?}");
        }
    }
}
