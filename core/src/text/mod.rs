//! Normal forms of texts.
//!
//! The normal form, in this order, each step a switch:
//!
//! 0. if so wished, HTML becomes text, and web addresses become hosts (`markup`); then listed lines
//!    are left out (`listed_lines`);
//! 1. single characters: what nothing shows is dropped, and strokes over letters; if so wished,
//!    accents are dropped, and look-alikes and digits folded (`replacing`);
//! 2. compatibility: NFKC (Unicode Standard Annex 15) of the text with long runs of marks cut,
//!    which changes no text of any language (`marks`);
//! 3. case: full case folding, then the same again, because folding may decompose what NFKC had
//!    composed; if so wished, the two letters i of Turkish become one (`turkish`);
//! 4. white space, as Python's `str.split` defines it: runs become one space, and the ends are
//!    stripped;
//! 5. if so wished, what stands between letters is dropped (`running_together`).
//!
//! Unicode never changes the forms of assigned code points. Those that its version doesn't know yet
//! are left unchanged.

mod ascii;
mod composition;
mod folding;
mod joiners;
mod listed_lines;
mod mapping;
mod marks;
mod markup;
mod pass;
mod properties;
mod replacing;
mod running_together;
mod turkish;
mod unicode;
pub mod utf8;
mod white_space;

pub use unicode::UNICODE_VERSION;

use std::mem;

use folding::{Folded, ReplacedAndFolded, Replacement};
use listed_lines::{Listed, is_blank, lines};
use mapping::{EXPANDS, JOINS, Mapping};
use marks::Count;
use pass::{Buffers, Pass};
use unicode::size_in_utf8;

/// Increased whenever the same text, switches and Unicode version give another normal form.
pub const NORMALISER_VERSION: u32 = 3;

/// The steps of the normal form that are taken; `docs/configuration.md` describes each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Switches {
    pub nfkc: bool,
    pub casefold: bool,
    pub collapse_whitespace: bool,
    pub drop_invisible: bool,
    pub drop_overlays: bool,
    pub fold_confusables: bool,
    pub fold_digits: bool,
    pub fold_accents: bool,
    pub fold_turkish_i: bool,
    pub drop_symbols: bool,
    pub join_letters: bool,
    pub strip_html: bool,
    pub reduce_urls: bool,
}

/// The normal form of one text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Form<'a> {
    /// All code points are ASCII.
    Ascii(&'a [u8]),
    /// Code points, of which at least one isn't ASCII; lone surrogates are among them.
    Wide(&'a [u32]),
}

/// What `Normaliser::form` reuses from one text to the next.
#[derive(Default)]
pub struct Scratch {
    ascii: Vec<u8>,
    points: Vec<u32>,
    /// What `points` are replaced by, with all bounds applied.
    bounded: Vec<u32>,
    out: Vec<u32>,
    buffers: Buffers,
    /// A text without markup, and without listed lines.
    unwrapped: Vec<u8>,
    left: Vec<u8>,
    line: Vec<u8>,
    /// Whether the form is in `ascii`, and not in `out`.
    is_ascii: bool,
}

impl Scratch {
    fn form(&self) -> Form<'_> {
        if self.is_ascii { Form::Ascii(&self.ascii) } else { Form::Wide(&self.out) }
    }
}

/// Normalises texts. Immutable: any number of threads may share it.
pub struct Normaliser {
    switches: Switches,
    listed: Listed,
    /// What stands in place of a tag that begins a new line or cell.
    between: u8,
    forms: Mapping<ReplacedAndFolded>,
    replaced: Mapping<Replacement>,
    folded: Mapping<Folded>,
}

/// A text may expand by this part of its size in UTF-8,
const SHARE: usize = 4;
/// and by so many code points.
const FREE: usize = 32;

impl Normaliser {
    /// Make a normaliser that leaves out lines with the normal forms of `listed_lines`.
    ///
    /// The lines are in UTF-8, as texts are.
    pub fn new<Line: AsRef<[u8]>>(switches: Switches, listed_lines: &[Line]) -> Self {
        let mut made = Self {
            switches,
            listed: Listed::default(),
            between: if listed_lines.is_empty() { b' ' } else { b'\n' },
            forms: Mapping::new(ReplacedAndFolded(switches)),
            replaced: Mapping::new(Replacement(switches)),
            folded: Mapping::new(Folded(switches)),
        };
        let mut scratch = Scratch::default();
        let mut listed = Listed::default();
        for line in listed_lines {
            listed.add(made.form_of(line.as_ref(), &mut scratch), &switches);
        }
        made.listed = listed;
        made
    }

    /// Return the normal form of a text in UTF-8, in which lone surrogates may be encoded.
    pub fn form<'a>(&self, text: &[u8], scratch: &'a mut Scratch) -> Form<'a> {
        let mut unwrapped = mem::take(&mut scratch.unwrapped);
        let text = self.unwrapped(text, &mut unwrapped);
        let mut left = mem::take(&mut scratch.left);
        let is_less = self.leave_out(text, &mut left, scratch, |_| ());
        let is_left = is_less && !is_blank(self.form_of(&left, scratch));
        if !is_left {
            self.form_of(text, scratch);
        }
        scratch.unwrapped = unwrapped;
        scratch.left = left;
        scratch.form()
    }

    /// Return the lines that the normal form of a text leaves out because they are listed, in their
    /// order and without the breaks.
    ///
    /// A line that stands there several times is there as often.
    pub fn left_out(&self, text: &[u8], scratch: &mut Scratch) -> Vec<Vec<u8>> {
        let mut unwrapped = Vec::new();
        let text = self.unwrapped(text, &mut unwrapped);
        let (mut left, mut lines) = (Vec::new(), Vec::new());
        let is_less = self.leave_out(text, &mut left, scratch, |line| lines.push(line.to_vec()));
        if is_less && is_blank(self.form_of(&left, scratch)) {
            lines.clear();
        }
        lines
    }

    /// Return the lines of a text without markup, without the breaks.
    ///
    /// Tags that begin a new line or cell break lines, even if none are listed.
    pub fn lines(&self, text: &[u8]) -> Vec<Vec<u8>> {
        let mut unwrapped = text.to_vec();
        markup::unwrap(&mut unwrapped, &self.switches, b'\n');
        lines(&unwrapped).map(|(line, _)| line.to_vec()).collect()
    }

    /// Return the normal forms of the lines that are listed, in UTF-8, ascending.
    ///
    /// Lines with nothing but white space, marks and what is dropped are not among them.
    pub fn listed_forms(&self) -> Vec<&[u8]> {
        self.listed.forms()
    }

    /// Return a text without markup.
    fn unwrapped<'t>(&self, text: &'t [u8], unwrapped: &'t mut Vec<u8>) -> &'t [u8] {
        if !(self.switches.strip_html || self.switches.reduce_urls) {
            return text;
        }
        unwrapped.clear();
        unwrapped.extend_from_slice(text);
        markup::unwrap(unwrapped, &self.switches, self.between);
        unwrapped
    }

    /// Write a text to `left` without the lines that are listed; return whether there are any.
    fn leave_out(
        &self,
        text: &[u8],
        left: &mut Vec<u8>,
        scratch: &mut Scratch,
        mut see: impl FnMut(&[u8]),
    ) -> bool {
        if self.listed.is_empty() {
            return false;
        }
        left.clear();
        let mut buffer = mem::take(&mut scratch.line);
        let (mut begin, mut is_less) = (0, false);
        for (line, end) in lines(text) {
            if self.listed.has(self.form_of(line, scratch), &mut buffer) {
                is_less = true;
                see(line);
            } else {
                left.extend_from_slice(&text[begin..end]);
            }
            begin = end;
        }
        scratch.line = buffer;
        is_less
    }

    /// Return the normal form of a text from step 1 on, as if it had neither markup nor listed lines.
    pub fn form_of<'a>(&self, text: &[u8], scratch: &'a mut Scratch) -> Form<'a> {
        scratch.ascii.clear();
        scratch.is_ascii = true;
        if text.is_ascii() {
            ascii::fold(text, &self.switches, &mut scratch.ascii);
            self.run_together(&mut scratch.ascii);
        } else {
            self.fold_wide(text, scratch);
            self.run_together(&mut scratch.out);
            scratch.is_ascii = scratch.out.iter().fold(0, |any, &point| any | point) < 0x80;
            if scratch.is_ascii {
                scratch.ascii.extend(scratch.out.iter().map(|&point| point as u8));
            }
        }
        scratch.form()
    }

    fn run_together<Code: Copy + Into<u32>>(&self, codes: &mut Vec<Code>) {
        if self.switches.join_letters {
            running_together::drop_white_space(codes);
        }
        if self.switches.drop_symbols {
            running_together::drop_symbols(codes);
        }
    }

    /// Write the normal form of a text, from step 1 to step 4, to `scratch.out`.
    fn fold_wide(&self, text: &[u8], scratch: &mut Scratch) {
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
    #[cold]
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

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: Switches = Switches {
        nfkc: true,
        casefold: true,
        collapse_whitespace: true,
        drop_invisible: true,
        drop_overlays: true,
        fold_confusables: true,
        fold_digits: true,
        fold_accents: true,
        fold_turkish_i: true,
        drop_symbols: true,
        join_letters: true,
        strip_html: true,
        reduce_urls: true,
    };

    fn some() -> [Switches; 5] {
        let exact = Switches { nfkc: false, casefold: false, ..ALL };
        let html = Switches { strip_html: true, ..Switches::default() };
        let plain = Switches {
            fold_accents: false,
            fold_confusables: false,
            drop_symbols: false,
            join_letters: false,
            ..ALL
        };
        [Switches::default(), ALL, exact, html, plain]
    }

    fn encoded(form: Form<'_>) -> Vec<u8> {
        let mut text = Vec::new();
        listed_lines::append(form, &mut text);
        text
    }

    /// Bytes of any kind, UTF-8 or not, with much of what is hard among them.
    #[test]
    fn no_bytes_are_too_much() {
        const PIECES: [&[u8]; 16] = [
            "\u{301}".as_bytes(),
            "\u{323}\u{345}".as_bytes(),
            "\u{1F82}\u{FDFA}".as_bytes(),
            "\u{3316}".as_bytes(),
            "\u{94D}\u{200D}".as_bytes(),
            "\u{1100}\u{1161}".as_bytes(),
            "I\u{307}\u{130}".as_bytes(),
            b"<a b='",
            b"<!--",
            b"<script>",
            b"</b-c>",
            b"http://w",
            b"&#x",
            b"\xED\xA0\x80",
            b"\xC2\x85",
            b" \n",
        ];
        // A generator of Lehmer.
        let mut state = 1u64;
        let mut next = |below: u64| {
            state = state.wrapping_mul(48_271) % 0x7FFF_FFFF;
            (state >> 7) % below
        };
        let mut scratch = Scratch::default();
        for switches in some() {
            let normaliser = Normaliser::new(switches, &["a", "\u{3316}\u{301}"]);
            for _ in 0..400 {
                let mut text = Vec::new();
                for _ in 0..next(30) {
                    match next(3) {
                        0 => text.push(next(256) as u8),
                        1 => text.extend_from_slice(PIECES[next(16) as usize]),
                        _ => text.extend(PIECES[next(16) as usize].repeat(next(40) as usize)),
                    }
                }
                if let Form::Wide(points) = normaliser.form(&text, &mut scratch) {
                    assert!(points.iter().any(|&point| point > 0x7F));
                    assert!(points.iter().all(|&point| point < unicode::CODE_POINTS));
                    assert!(points.len() <= text.len() + text.len() / SHARE + FREE);
                }
                normaliser.left_out(&text, &mut scratch);
            }
        }
    }

    #[test]
    fn steps_are_taken_in_order() {
        let mut scratch = Scratch::default();
        let [_, all, _, _, plain] = some();
        let normaliser = Normaliser::new(all, &["Share this"]);
        let text = "<p>\u{412}\u{456}\u{430}g r\u{E0} 7</p>share  this";
        assert_eq!(normaliser.form(text.as_bytes(), &mut scratch), Form::Ascii(b"biagra0"));
        assert_eq!(normaliser.left_out(text.as_bytes(), &mut scratch), [b"share  this"]);
        assert_eq!(normaliser.listed_forms(), [b"sharethis"]);
        let normaliser = Normaliser::new::<&str>(plain, &[]);
        let form = normaliser.form("\u{C9}\u{A0}\u{200B} \u{D55C}".as_bytes(), &mut scratch);
        assert_eq!(encoded(form), "\u{E9} \u{D55C}".as_bytes());
    }

    /// Nothing is left but listed lines, so they stay.
    #[test]
    fn a_text_of_listed_lines_stays() {
        let mut scratch = Scratch::default();
        let normaliser = Normaliser::new(ALL, &["a", "b"]);
        assert_eq!(normaliser.form(b"A\nb", &mut scratch), Form::Ascii(b"ab"));
        assert_eq!(normaliser.form(b"A\nb\nc", &mut scratch), Form::Ascii(b"c"));
        assert!(normaliser.left_out(b"A\nb", &mut scratch).is_empty());
    }
}
