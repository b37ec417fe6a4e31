//! Normal forms of texts with characters beyond ASCII, up to white space.
//!
//! Most texts take one pass. Those with joiners, or with more marks or longer forms than language
//! has, take the steps one by one.

use super::folding::{self, Folded, ReplacedAndFolded, Replacement};
use super::mapping::{EXPANDS, JOINS, Mapping};
use super::marks::{self, Count};
use super::pass::{Buffers, Pass};
use super::unicode::size_in_utf8;
use super::{Switches, joiners, turkish, utf8, white_space};

/// A text may expand by this part of its size in UTF-8,
const SHARE: usize = 4;
/// and by so many code points.
const FREE: usize = 32;

/// Folds texts by tables, which are filled on first use. Any number of threads may share it.
pub struct Wide {
    switches: Switches,
    forms: Mapping<ReplacedAndFolded>,
    replaced: Mapping<Replacement>,
    folded: Mapping<Folded>,
}

/// What is reused from one text to the next.
#[derive(Default)]
pub struct Scratch {
    points: Vec<u32>,
    /// What `points` are replaced by, with all bounds applied.
    bounded: Vec<u32>,
    /// The normal form.
    pub out: Vec<u32>,
    buffers: Buffers,
}

impl Scratch {
    /// Return about how many bytes are held. What stretches of a text go through is no larger.
    pub fn held(&self) -> usize {
        4 * (self.points.capacity() + self.bounded.capacity() + self.out.capacity())
    }
}

impl Wide {
    pub fn new(switches: Switches) -> Self {
        Self {
            switches,
            forms: Mapping::new(ReplacedAndFolded(switches)),
            replaced: Mapping::new(Replacement(switches)),
            folded: Mapping::new(Folded(switches)),
        }
    }

    /// Write the normal form of a text, from step 1 to step 4, to `scratch.out`.
    pub fn fold(&self, text: &[u8], scratch: &mut Scratch) {
        utf8::decode(text, &mut scratch.points);
        scratch.out.clear();
        let mut pass = Pass {
            switches: &self.switches,
            forms: &self.forms,
            replaced: Some(&self.replaced),
            points: &scratch.points,
            out: &mut scratch.out,
            buffers: &mut scratch.buffers,
            bounded: false,
            count: Count::default(),
            expands: false,
        };
        let is_bounded = pass.run(text.len()).is_ok();
        let may_expand = pass.expands || !is_bounded;
        let expands =
            may_expand && self.expands_too_far(&scratch.points, text.len(), &mut scratch.buffers);
        if expands || !is_bounded {
            self.fold_bounded(text.len(), expands, scratch);
        }
        if self.switches.fold_turkish_i {
            turkish::read_as_one(&mut scratch.out);
        }
        if self.switches.collapse_whitespace {
            white_space::collapse(&mut scratch.out);
        }
    }

    /// Write the folded text of `scratch.points` to `scratch.out`, step by step.
    ///
    /// size: the bytes of the text in UTF-8. cut: whether what expands is cut to its size.
    fn fold_bounded(&self, size: usize, cut: bool, scratch: &mut Scratch) {
        let points = &mut scratch.bounded;
        points.clear();
        let mut form = Vec::new();
        for &point in &scratch.points {
            if cut && self.forms.page(point).entry(point).has(EXPANDS) {
                self.append_form(point, &mut form, &mut scratch.buffers);
                form.truncate(size_in_utf8(point));
                for part in form.drain(..) {
                    self.replaced.append(part, points);
                }
            } else {
                self.replaced.append(point, points);
            }
        }
        if self.switches.nfkc {
            marks::limit(points, size);
            if self.switches.drop_invisible {
                joiners::drop_misplaced(points);
            }
        }
        scratch.out.clear();
        let mut pass = Pass::<_, Replacement> {
            switches: &self.switches,
            forms: &self.folded,
            replaced: None,
            points,
            out: &mut scratch.out,
            buffers: &mut scratch.buffers,
            bounded: true,
            count: Count::default(),
            expands: false,
        };
        // What is bounded isn't refused.
        let _ = pass.run(size);
        if self.switches.drop_invisible && !self.switches.nfkc {
            joiners::drop_misplaced(&mut scratch.out);
        }
    }

    /// Append what a code point becomes by itself, even if it joins what is before it.
    fn append_form(&self, point: u32, form: &mut Vec<u32>, buffers: &mut Buffers) {
        let page = self.forms.page(point);
        let entry = page.entry(point);
        let begin = form.len();
        page.append(entry, point, form);
        if entry.has(JOINS) {
            let mut alone = form.split_off(begin);
            folding::fold(&mut alone, &self.switches, buffers.steps());
            form.append(&mut alone);
        }
    }

    /// Return whether a text of so many bytes in UTF-8 expands too far.
    ///
    /// A text can be made of nothing but characters that expand, such as U+3316: to two code points
    /// for each byte. Whether it goes too far is decided for the text as a whole: its characters may
    /// expand beyond their own sizes by a quarter of the text's size, and 32 more. Otherwise each
    /// is cut to its size. Such a text is a list of characters, not language; any other one is
    /// unchanged. So a normal form has at most 1.25 code points for each byte of the text, and 32
    /// more.
    fn expands_too_far(&self, points: &[u32], size: usize, buffers: &mut Buffers) -> bool {
        let mut excess = 0;
        let mut form = Vec::new();
        for &point in points {
            let entry = self.forms.page(point).entry(point);
            if !entry.has(EXPANDS) {
                continue;
            }
            let mut length = entry.len();
            if entry.has(JOINS) {
                form.clear();
                self.append_form(point, &mut form, buffers);
                length = form.len();
            }
            excess += length.saturating_sub(size_in_utf8(point));
        }
        excess > FREE && SHARE.saturating_mul(excess - FREE) > size
    }
}
