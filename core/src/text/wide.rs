//! Normal forms of texts with characters beyond ASCII, up to white space.
//!
//! Most texts take one pass. Those with joiners, or with more marks or longer forms than language
//! has, take the steps one by one.

use super::expansion::{Alone, Cut, Expansion};
use super::folding::{Folded, ReplacedAndFolded, Replacement};
use super::mapping::{EXPANDS, Mapping, Rule};
use super::marks::{self, Count};
use super::pass::{Buffers, Pass, Refused};
use super::{Switches, joiners, turkish, utf8, white_space};

/// Folds texts by tables, which are filled on first use. Any number of threads may share it.
pub struct Wide {
    switches: Switches,
    forms: Mapping<ReplacedAndFolded>,
    replaced: Mapping<Replacement>,
    alone: Mapping<Alone>,
    cut: Mapping<Cut>,
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
            alone: Mapping::new(Alone(switches)),
            cut: Mapping::new(Cut(switches)),
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
            size: text.len(),
            out: &mut scratch.out,
            buffers: &mut scratch.buffers,
            bounded: false,
            count: Count::default(),
            expansion: Expansion::default(),
            joined_expand: false,
        };
        let refused = pass.run().err();
        let expands = refused == Some(Refused::TooFar)
            || (pass.joined_expand || refused.is_some())
                && self.expands_too_far(&scratch.points, text.len());
        if expands {
            self.fold_bounded(&self.cut, text.len(), scratch);
        } else if refused.is_some() {
            self.fold_bounded(&self.replaced, text.len(), scratch);
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
    /// replaced: what characters are replaced by first. size: the bytes of the text in UTF-8.
    fn fold_bounded<R: Rule>(&self, replaced: &Mapping<R>, size: usize, scratch: &mut Scratch) {
        let points = &mut scratch.bounded;
        points.clear();
        for &point in &scratch.points {
            replaced.append(point, points);
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
            size,
            out: &mut scratch.out,
            buffers: &mut scratch.buffers,
            bounded: true,
            count: Count::default(),
            expansion: Expansion::default(),
            joined_expand: false,
        };
        // What is bounded isn't refused.
        let _ = pass.run();
        if self.switches.drop_invisible && !self.switches.nfkc {
            joiners::drop_misplaced(&mut scratch.out);
        }
    }

    /// Return whether a text of so many bytes in UTF-8 expands too far.
    fn expands_too_far(&self, points: &[u32], size: usize) -> bool {
        let mut expansion = Expansion::default();
        for &point in points {
            if self.forms.page(point).entry(point).has(EXPANDS) {
                expansion.add(point, self.alone.page(point).entry(point).len());
            }
        }
        expansion.is_too_far(size)
    }
}
