//! One pass over a text: code points that start afresh are looked up, sequences are composed.
//!
//! A sequence is a code point that starts afresh and what joins it. The first has been folded by
//! itself when the others are joined to it. That changes nothing: case folding leaves what joins
//! alone, except for U+0345, and respects canonical equivalence otherwise (The Unicode Standard,
//! D145).
//!
//! For most sequences it is enough to see, mark by mark, that they are in canonical order, and
//! whether the next one composes with the letter; or to put all marks to the letter in order. An iota
//! below becomes a letter behind them, unless it may compose first. The others are normalised as a
//! whole.

use super::Switches;
use super::composition::{Part, Parts, Steps, apart, compose};
use super::expansion::Expansion;
use super::folding::fold_bounded;
use super::mapping::{EXPANDS, Entry, JOINS, Mapping, Rule, WITH_IOTA};
use super::marks::Count;
use super::properties::{Properties, SECOND, STABLE, STARTER, is_joiner};

/// Code points that are looked up before any is appended.
const BLOCK: usize = 64;
/// So many are appended faster one by one.
const FEW: usize = 6;
const IOTA_BELOW: u32 = 0x345;
const IOTA: u32 = 0x3B9;
/// The letters with which an iota below may compose, in small.
const OF_IOTA: [u32; 3] = [0x3B1, 0x3B7, 0x3C9];

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
    /// The letter without what is joined to it, and where it is in the output.
    alone: u32,
    begin: usize,
    /// Whether all marks so far were in canonical order.
    ordered: bool,
    /// Where the last starter is in the output.
    starter: usize,
    /// The combining class of the last mark, 0 if there is none.
    highest: u8,
    /// The combining class of the last mark that didn't compose, 0 if there is none.
    last: u8,
    /// How many iotas below there are,
    iotas: usize,
    /// and whether anything else was joined.
    joined: bool,
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
        Ok(())
    }

    /// Refuse a text as soon as it has too many marks: what was done until then is done again.
    #[inline(always)]
    fn check_marks(&self) -> Result<(), Refused> {
        if !self.bounded && (self.count.is_long() || self.count.is_heavy(self.size)) {
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
            self.check_marks()?;
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
                    if let Some(joined) = &mut letter
                        && !joined.join_parts(point, properties, self.out)
                    {
                        letter = None;
                    }
                }
                None => {
                    self.count_replaced(point);
                    letter = None;
                }
            }
            at += 1;
        }
        self.check_marks()?;
        match letter {
            Some(letter)
                if letter.takes_iotas(self.switches)
                    && (letter.ordered || self.join_in_order(&letter, first..at, folded)) =>
            {
                self.out.extend((0..letter.iotas).map(|_| IOTA));
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
        let last = Properties::of(*self.out.last()?);
        let mut begin = self.out.len() - 1;
        let is_apart = !last.has(STARTER);
        if is_apart {
            // Its own marks don't compose with it.
            self.count_replaced(point);
            let form = self.out.len() - self.entry(point).len();
            let starter = |&point: &u32| Properties::of(point).has(STARTER);
            begin = form + self.out[form..].iter().rposition(starter)?;
        } else {
            self.count.begin(last.marks_behind());
        }
        Some(Letter {
            alone: self.out[begin],
            begin,
            ordered: true,
            starter: begin,
            highest: last.last_class(),
            last: if is_apart { last.last_class() } else { 0 },
            iotas: 0,
            joined: false,
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

    /// Join code points in canonical order to a letter and its own marks; return false if it has more
    /// than one starter. Iotas below are left out.
    ///
    /// folded: how long the output was behind the letter and its marks.
    fn join_in_order(
        &mut self,
        letter: &Letter,
        joining: std::ops::Range<usize>,
        folded: usize,
    ) -> bool {
        let marks = &mut self.buffers.marks;
        marks.clear();
        let mut own = apart(letter.alone);
        let Some(alone) = own.next() else { return false };
        own.for_each(|mark| marks.push(mark));
        if marks.iter().any(|mark| mark.properties.last_class() == 0) {
            return false;
        }
        self.out[letter.begin + 1..folded].iter().for_each(|&mark| marks.push(mark));
        for point in self.points[joining].iter().flat_map(|&point| self.forms.form(point)) {
            apart(point).filter(|&mark| mark != IOTA_BELOW).for_each(|mark| marks.push(mark));
        }
        self.out.truncate(letter.begin + 1);
        self.out[letter.begin] = alone;
        let mut letter = Letter { alone, starter: letter.begin, highest: 0, last: 0, ..*letter };
        letter.ordered = true;
        for Part { point, properties } in marks.iter() {
            letter.join(point, properties, self.out);
        }
        true
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
    /// Join a code point, or its parts; return false if they must be seen as a whole.
    #[inline(always)]
    fn join_parts(&mut self, point: u32, properties: Properties, out: &mut Vec<u32>) -> bool {
        if properties.has(STABLE) {
            self.join(point, properties, out);
            return self.iotas == 0 || properties.last_class() != 0;
        }
        apart(point).all(|part| {
            if part == IOTA_BELOW {
                self.iotas += 1;
                return true;
            }
            let properties = Properties::of(part);
            self.join(part, properties, out);
            properties.has(STABLE) && (self.iotas == 0 || properties.last_class() != 0)
        })
    }

    /// Return whether all iotas below become letters behind all else.
    ///
    /// One that composes before case is folded would stand before marks that don't.
    fn takes_iotas(&self, switches: &Switches) -> bool {
        let may_compose = || apart(self.alone).next().is_some_and(|one| OF_IOTA.contains(&one));
        self.iotas == 0 || switches.casefold && !(self.joined && may_compose())
    }

    /// Join a mark, or whatever else joins, to the letter at the end of `out`.
    ///
    /// Do nothing if there was one that comes before others in canonical order.
    #[inline(always)]
    fn join(&mut self, point: u32, properties: Properties, out: &mut Vec<u32>) {
        let class = properties.last_class();
        self.joined = true;
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
