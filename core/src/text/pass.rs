//! One pass over a text: code points that start afresh are looked up, sequences are composed.
//!
//! A sequence is a code point that starts afresh and what joins it. The first has been folded by
//! itself when the others are joined to it. That changes nothing: case folding leaves what joins
//! alone, except for U+0345, and respects canonical equivalence otherwise (The Unicode Standard,
//! D145).
//!
//! For most sequences it is enough to see, mark by mark, that they are in canonical order, and
//! whether the next one composes with the letter. The others are normalised as a whole.

use super::Switches;
use super::composition::{Part, Parts, Steps, compose};
use super::expansion::Expansion;
use super::folding::fold_bounded;
use super::mapping::{EXPANDS, Entry, JOINS, Mapping, Rule, WITH_IOTA};
use super::marks::Count;
use super::properties::{Properties, SECOND, STABLE, STARTER, is_joiner};

/// Code points that are looked up before any is appended.
const BLOCK: usize = 64;
/// So many are appended faster one by one.
const FEW: usize = 6;

/// A pass over a text.
pub struct Pass<'a, Forms, Replaced> {
    pub switches: &'a Switches,
    /// What code points become by themselves, with flags.
    pub forms: &'a Mapping<Forms>,
    /// What code points are replaced by before they are folded; None: by nothing else.
    pub replaced: Option<&'a Mapping<Replaced>>,
    pub points: &'a [u32],
    /// The bytes of the text in UTF-8.
    pub size: usize,
    pub out: &'a mut Vec<u32>,
    pub buffers: &'a mut Buffers,
    /// Whether the bounds on marks were applied, and misplaced joiners dropped.
    pub bounded: bool,
    pub count: Count,
    pub expansion: Expansion,
    /// Whether characters may expand that join others. They aren't counted.
    pub joined_expand: bool,
}

/// What a pass reuses.
#[derive(Default)]
pub struct Buffers {
    sequence: Vec<u32>,
    marks: Parts,
    steps: Steps,
}

/// Why a text can't be folded in one pass.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// It has joiners or too many marks, which must be looked at before it is folded.
    Unbounded,
    /// It expands too far.
    TooFar,
}

/// A letter, and how marks were put to it so far.
struct Letter {
    /// The letter without what is joined to it.
    alone: u32,
    /// Whether all marks so far were in canonical order.
    ordered: bool,
    /// Where the last starter is in the output.
    starter: usize,
    /// The combining class of the last mark, 0 if there is none.
    highest: u8,
    /// The combining class of the last mark that didn't compose, 0 if there is none.
    last: u8,
}

impl<Forms: Rule, Replaced: Rule> Pass<'_, Forms, Replaced> {
    /// Append the folded text to `out`, unless that is refused.
    pub fn run(&mut self) -> Result<(), Refused> {
        self.out.reserve(self.points.len());
        let mut block = [0; BLOCK];
        let mut at = 0;
        while at < self.points.len() {
            let rest = &self.points[at..];
            let mut count = 0;
            for (&point, form) in rest.iter().zip(&mut block) {
                let entry = self.forms.page(point).entry(point);
                if !entry.is_plain() {
                    break;
                }
                *form = entry.plain(point);
                count += 1;
            }
            at += count;
            if count > FEW {
                self.out.extend_from_slice(&block[..count]);
            } else {
                block[..count].iter().for_each(|&form| self.out.push(form));
            }
            if count < BLOCK && at < self.points.len() {
                at = self.special(at)?;
            }
        }
        if !self.bounded && self.count.is_heavy(self.size) {
            return Err(Refused::Unbounded);
        }
        Ok(())
    }

    /// Append what isn't plain at a place, and what joins it; return where the next one begins.
    fn special(&mut self, at: usize) -> Result<usize, Refused> {
        let point = self.points[at];
        let page = self.forms.page(point);
        let entry = page.entry(point);
        if entry.has(JOINS) {
            if self.switches.nfkc {
                return self.join(at);
            }
            if !self.bounded {
                return Err(Refused::Unbounded);
            }
        }
        if entry.has(EXPANDS) {
            self.expansion.add(point, entry.len());
            if self.expansion.is_too_far(self.size) {
                return Err(Refused::TooFar);
            }
        }
        if entry.has(WITH_IOTA) {
            self.count_replaced(point);
        }
        page.append(entry, point, self.out);
        Ok(at + 1)
    }

    #[inline(always)]
    fn entry(&self, point: u32) -> Entry {
        self.forms.page(point).entry(point)
    }

    /// Join code points to the last one that starts afresh; return where the next one does.
    ///
    /// first: the position of one that joins, with nothing but what is dropped before it.
    fn join(&mut self, first: usize) -> Result<usize, Refused> {
        let base = (0..first).rfind(|&at| !self.entry(self.points[at]).is_dropped());
        let folded = self.out.len();
        let mut letter = self.letter(base);
        let mut at = first;
        while let Some(&point) = self.points.get(at) {
            let entry = self.entry(point);
            if !entry.has(JOINS) {
                if !entry.is_dropped() {
                    break;
                }
                at += 1;
                continue;
            }
            self.joined_expand |= entry.has(EXPANDS);
            match entry.single(point) {
                Some(point) => {
                    let properties = Properties::of(point);
                    if !self.bounded {
                        if self.switches.drop_invisible && is_joiner(point) {
                            return Err(Refused::Unbounded);
                        }
                        self.count.add(point, properties);
                    }
                    match &mut letter {
                        Some(letter) if properties.has(STABLE) => {
                            letter.join(point, properties, self.out);
                        }
                        _ => letter = None,
                    }
                }
                None => {
                    self.count_replaced(point);
                    letter = None;
                }
            }
            at += 1;
        }
        if !self.bounded && self.count.is_long() {
            return Err(Refused::Unbounded);
        }
        match letter {
            Some(letter) if letter.ordered => {}
            Some(letter) if Properties::of(letter.alone).marks_behind() == 0 => {
                self.join_in_order(letter.alone, first..at, folded);
            }
            _ => self.fold_as_a_whole(base, first..at, folded),
        }
        Ok(at)
    }

    /// Return the letter at the end of the output; None if the sequence must be seen as a whole.
    fn letter(&mut self, base: Option<usize>) -> Option<Letter> {
        let Some(base) = base else {
            self.count.begin(0);
            return None;
        };
        let point = self.points[base];
        if self.entry(point).has(WITH_IOTA) {
            return None; // Its marks have been counted.
        }
        let alone = *self.out.last()?;
        let last = Properties::of(alone);
        if !last.has(STARTER) {
            self.count_replaced(point);
            return None;
        }
        self.count.begin(last.marks_behind());
        Some(Letter {
            alone,
            ordered: true,
            starter: self.out.len() - 1,
            highest: last.last_class(),
            last: 0,
        })
    }

    /// Count the marks of what a code point is replaced by.
    #[cold]
    fn count_replaced(&mut self, point: u32) {
        let parts = &mut self.buffers.sequence;
        parts.clear();
        match self.replaced {
            Some(replaced) => replaced.append(point, parts),
            None => parts.push(point),
        }
        for &part in parts.iter() {
            self.count.add(part, Properties::of(part));
        }
    }

    /// Join code points, of which none decomposes, in canonical order to a letter without marks.
    ///
    /// folded: how long the output was behind the letter.
    fn join_in_order(&mut self, alone: u32, joining: std::ops::Range<usize>, folded: usize) {
        let marks = &mut self.buffers.marks;
        marks.clear();
        for &point in &self.points[joining] {
            self.forms.form(point).for_each(|mark| marks.push(mark));
        }
        self.out.truncate(folded);
        self.out[folded - 1] = alone;
        let mut letter = Letter { alone, ordered: true, starter: folded - 1, highest: 0, last: 0 };
        for Part { point, properties } in marks.iter() {
            letter.join(point, properties, self.out);
        }
    }

    /// Fold a sequence of which the first code point is at `base`, and others at `joining`.
    ///
    /// folded: how long the output was behind the first.
    fn fold_as_a_whole(
        &mut self,
        base: Option<usize>,
        joining: std::ops::Range<usize>,
        folded: usize,
    ) {
        let begin = base.map_or(folded, |base| folded - self.entry(self.points[base]).len());
        self.out.truncate(begin);
        let sequence = &mut self.buffers.sequence;
        sequence.clear();
        for &point in base.map(|base| &self.points[base]).into_iter().chain(&self.points[joining]) {
            match self.replaced {
                Some(replaced) => replaced.append(point, sequence),
                None => sequence.push(point),
            }
        }
        fold_bounded(sequence, self.switches, &mut self.buffers.steps);
        self.out.extend_from_slice(sequence);
    }
}

impl Letter {
    /// Join a mark, or whatever else joins, to the letter at the end of `out`.
    ///
    /// Do nothing if there was one that comes before others in canonical order.
    #[inline(always)]
    fn join(&mut self, point: u32, properties: Properties, out: &mut Vec<u32>) {
        let class = properties.last_class();
        self.ordered &= class == 0 || class >= self.highest;
        if !self.ordered {
            return;
        }
        self.highest = class;
        let is_adjacent = self.starter + 1 == out.len();
        if properties.has(SECOND)
            && (is_adjacent || self.last != 0 && self.last < class)
            && let Some(whole) = compose(out[self.starter], point)
        {
            out[self.starter] = whole;
            return;
        }
        if class == 0 {
            self.starter = out.len();
        }
        self.last = class;
        out.push(point);
    }
}
