//! Bounds on marks, so that NFKC costs no more than the length of a text.
//!
//! Two things would make it expensive in the hands of whoever writes a text:
//!
//! - Runs of non-starters must be sorted. A run is cut after 30, the limit of the Stream-Safe Text
//!   Format (Unicode Standard Annex 15, section 13). No text of any language has longer runs. The
//!   annex's own process would insert U+034F instead, which nothing shows; whoever stacks marks
//!   could then choose how many of them count.
//! - Marks are put in order and composed at a cost that follows their number, and a text can be
//!   made of letters that have three marks and more, some in one code point: U+1F82 has three,
//!   U+0344 is two. So a text may have one mark beyond the second of its letter for each 16 bytes
//!   of UTF-8, and 32 more. Otherwise all its marks are dropped, apart from those that are one code
//!   point with their letter; of these, the iota below goes too. No text of any language is near
//!   that bound: Vietnamese has at most two marks on a letter, and Hebrew with vowels and accents
//!   one beyond the second in about 60 bytes (Genesis 1:1).

use std::sync::LazyLock;

use super::mapping::{Mapping, Rule};
use super::properties::{Kind, Properties, is_joiner};
use super::unicode::{nfc, nfkd};

/// Non-starters in a row, counted in NFKD.
const MOST_MARKS: u32 = 30;
/// So many marks on a letter are no burden.
const LIGHT: u32 = 2;
/// One mark beyond the second is allowed for so many bytes of a text,
const BYTES_FOR_ONE: usize = 16;
/// and so many more.
const FREE: usize = 32;
const IOTA_BELOW: char = '\u{345}';

/// Counts marks from the beginning of a text, in NFKD.
///
/// U+200C and U+200D neither count nor end a run: they may be dropped.
#[derive(Default)]
pub struct Count {
    /// The non-starters of the current run.
    run: u32,
    /// The marks of the text beyond the second of their letters.
    beyond: usize,
    /// Whether a run is too long.
    long: bool,
}

impl Count {
    /// Count the marks of the next code point.
    #[inline(always)]
    pub fn add(&mut self, point: u32, properties: Properties) {
        if is_joiner(point) {
            return;
        }
        let alone = properties.marks_alone();
        let own = if alone > 0 {
            self.run = self.run.saturating_add(alone);
            self.long |= self.run > MOST_MARKS;
            alone
        } else {
            self.run = properties.marks_behind();
            self.run
        };
        self.beyond += self.run.saturating_sub(LIGHT).min(own) as usize;
    }

    /// Begin a run behind a letter with so many marks, at most `LIGHT`.
    #[inline(always)]
    pub fn begin(&mut self, marks_behind: u32) {
        self.run = marks_behind;
    }

    /// Return whether a run was too long, so far.
    pub fn is_long(&self) -> bool {
        self.long
    }

    /// Return whether a text of so many bytes has too many marks.
    pub fn is_heavy(&self, size: usize) -> bool {
        self.beyond > FREE && BYTES_FOR_ONE.saturating_mul(self.beyond - FREE) > size
    }
}

/// Apply both bounds to a text. `size`: the bytes that it had in UTF-8.
pub fn limit(points: &mut Vec<u32>, size: usize) {
    let count = counted(points);
    if count.is_heavy(size) {
        lighten(points);
    }
    if count.is_long() {
        bound(points);
    }
}

/// Count the marks of a text.
fn counted(points: &[u32]) -> Count {
    let mut count = Count::default();
    for &point in points {
        count.add(point, Properties::of(point));
    }
    count
}

/// Drop the marks of a text.
fn lighten(points: &mut Vec<u32>) {
    let mut left = Vec::with_capacity(points.len());
    for &point in points.iter() {
        let properties = Properties::of(point);
        match properties.kind() {
            Kind::WithIota => WITHOUT_IOTA.append(point, &mut left),
            Kind::Afresh => left.push(point),
            _ if properties.marks_alone() + properties.marks_behind() > 0 => {}
            _ => left.push(point),
        }
    }
    *points = left;
}

/// What letters with an iota below become without it.
struct WithoutIota;

impl Rule for WithoutIota {
    fn apply(&self, point: u32, form: &mut Vec<u32>) -> u32 {
        match char::from_u32(point) {
            Some(char) => {
                let left = nfkd(char.encode_utf8(&mut [0; 4])).replace(IOTA_BELOW, "");
                form.extend(nfc(&left).chars().map(u32::from));
            }
            None => form.push(point),
        }
        0
    }
}

static WITHOUT_IOTA: LazyLock<Mapping<WithoutIota>> = LazyLock::new(|| Mapping::new(WithoutIota));

/// Drop the marks behind the thirtieth of each run.
pub fn bound(points: &mut Vec<u32>) {
    let mut run = 0u32;
    points.retain(|&point| {
        if is_joiner(point) {
            return true;
        }
        let properties = Properties::of(point);
        let alone = properties.marks_alone();
        if alone == 0 {
            run = properties.marks_behind();
            return true;
        }
        run = run.saturating_add(alone);
        run <= MOST_MARKS
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(text: &str) -> Vec<u32> {
        text.chars().map(u32::from).collect()
    }

    #[test]
    fn runs_are_cut_after_thirty() {
        for (text, left) in [
            (format!("a{}b", "\u{301}".repeat(31)), 32),
            (format!("\u{E9}{}b", "\u{301}".repeat(31)), 31),
            (format!("a{}", "\u{344}".repeat(17)), 16),
            (format!("{}\u{200D}{}", "\u{301}".repeat(30), "\u{301}".repeat(9)), 31),
        ] {
            let mut text = points(&text);
            bound(&mut text);
            assert_eq!(text.len(), left);
        }
    }

    #[test]
    fn a_text_of_heaps_of_marks_loses_them() {
        let mut text = points(&"a\u{301}\u{301}\u{301}\u{301}".repeat(200));
        let size = 200 * 9;
        limit(&mut text, size);
        assert_eq!(text, points(&"a".repeat(200)));
        let mut light = points(&"a\u{301}\u{301}".repeat(200));
        limit(&mut light, 200 * 5);
        assert_eq!(light.len(), 600);
    }

    #[test]
    fn the_iota_below_goes_too() {
        let mut text = points(&"\u{1F82}".repeat(200));
        limit(&mut text, 600);
        assert_eq!(text, points(&"\u{1F02}".repeat(200)));
    }
}
