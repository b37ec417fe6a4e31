//! White space, as Python's `str.split` defines it: runs become one space, the ends are stripped.

const SPACE: u32 = 0x20;

/// Collapse white space, all of which is spaces already.
pub fn collapse(points: &mut Vec<u32>) {
    let pairs = points.iter().zip(points.get(1..).unwrap_or_default());
    // Without branches this is compiled to vector instructions; most texts have no such pair.
    let has_runs =
        pairs.fold(false, |any, (&point, &after)| any | ((point == SPACE) & (after == SPACE)));
    if has_runs || points.first() == Some(&SPACE) {
        drop_runs(points);
    }
    if points.last() == Some(&SPACE) {
        points.pop();
    }
}

/// Drop spaces at the beginning, and behind another.
fn drop_runs(points: &mut Vec<u32>) {
    let mut kept = 0;
    let mut after_space = true;
    for at in 0..points.len() {
        let point = points[at];
        points[kept] = point;
        let is_space = point == SPACE;
        kept += usize::from(!(is_space && after_space));
        after_space = is_space;
    }
    points.truncate(kept);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_become_one_space_and_the_ends_are_stripped() {
        for text in ["", " ", "a", "  a  b c   ", "a  ", "   "] {
            let mut points: Vec<u32> = text.chars().map(u32::from).collect();
            collapse(&mut points);
            let expected = text.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(points.iter().copied().eq(expected.chars().map(u32::from)));
        }
    }
}
