//! What single code points become by the steps that look characters up.

use super::Switches;
use super::composition::{Steps, compose_all, fold_case};
use super::joiners::drop_misplaced;
use super::mapping::{EXPANDS, JOINS, Rule, WITH_IOTA};
use super::marks::bound;
use super::properties::{EXPANDING, Kind, Properties, is_joiner};
use super::replacing::replaced;
use super::unicode::is_white_space;

const SPACE: u32 = 0x20;

/// Fold `points`, in which characters are replaced, after joiners and long runs of marks are dropped.
pub fn fold(points: &mut Vec<u32>, switches: &Switches, steps: &mut Steps) {
    if switches.nfkc {
        bound(points);
    } else if switches.casefold {
        // Case folding makes a letter of the iota below, which NFKC puts behind other marks.
        fold_case(points, steps);
    }
    if switches.drop_invisible {
        drop_misplaced(points);
    }
    fold_bounded(points, switches, steps);
}

/// Fold `points`, in which nothing is to be dropped: compatibility, then case.
///
/// Case folding may decompose what NFKC had composed, so NFKC is applied again. White space
/// becomes spaces if it is to be collapsed.
pub fn fold_bounded(points: &mut Vec<u32>, switches: &Switches, steps: &mut Steps) {
    if switches.nfkc {
        compose_all(points, steps);
    }
    if switches.casefold && fold_case(points, steps) && switches.nfkc {
        compose_all(points, steps);
    }
    if switches.collapse_whitespace {
        for point in points.iter_mut().filter(|point| is_white_space(**point)) {
            *point = SPACE;
        }
    }
}

/// What characters are replaced by before a text is normalised.
pub struct Replacement(pub Switches);

impl Rule for Replacement {
    fn apply(&self, point: u32, form: &mut Vec<u32>) -> u32 {
        match char::from_u32(point) {
            Some(char) => form.extend(replaced(char, &self.0).chars().map(u32::from)),
            None => form.push(point),
        }
        0
    }
}

/// What characters become, replaced and folded.
pub struct ReplacedAndFolded(pub Switches);

impl Rule for ReplacedAndFolded {
    fn apply(&self, point: u32, form: &mut Vec<u32>) -> u32 {
        Replacement(self.0).apply(point, form);
        let expands = Properties::of(point).has(EXPANDING);
        fold_by_itself(form, &self.0) | if expands { EXPANDS } else { 0 }
    }
}

/// What characters become that are replaced already.
pub struct Folded(pub Switches);

impl Rule for Folded {
    fn apply(&self, point: u32, form: &mut Vec<u32>) -> u32 {
        form.push(point);
        fold_by_itself(form, &self.0)
    }
}

/// Fold what a code point is replaced by, unless it joins what is before it; return the flags.
fn fold_by_itself(form: &mut Vec<u32>, switches: &Switches) -> u32 {
    let Some(&first) = form.first() else {
        return 0;
    };
    if switches.drop_invisible && is_joiner(first) {
        return JOINS;
    }
    let kind = Properties::of(first).kind();
    if switches.nfkc && matches!(kind, Kind::Joins | Kind::Iota) {
        return JOINS;
    }
    fold(form, switches, &mut Steps::default());
    if switches.nfkc && kind == Kind::WithIota { WITH_IOTA } else { 0 }
}
