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
mod expansion;
mod folding;
mod joiners;
mod listed_lines;
mod mapping;
mod marks;
pub mod markup;
mod pass;
mod properties;
mod replacing;
mod running_together;
mod turkish;
mod unicode;
pub mod utf8;
mod white_space;
mod wide;

pub use unicode::UNICODE_VERSION;

use std::mem;

use listed_lines::{Listed, is_blank, lines};
use wide::Wide;

/// Increased whenever the same text, switches and Unicode version give another normal form.
pub const NORMALISER_VERSION: u32 = 4;

/// The steps of the normal form that are taken; `docs/reference/configuration.md` describes each.
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
    wide: wide::Scratch,
    /// A text without markup, and without listed lines.
    unwrapped: Vec<u8>,
    left: Vec<u8>,
    line: Vec<u8>,
    /// Whether the form is in `ascii`, and not in `wide`.
    is_ascii: bool,
}

impl Scratch {
    /// Return about how many bytes are held.
    pub fn held(&self) -> usize {
        let bytes = [&self.ascii, &self.unwrapped, &self.left, &self.line];
        self.wide.held() + bytes.iter().map(|bytes| bytes.capacity()).sum::<usize>()
    }

    fn form(&self) -> Form<'_> {
        if self.is_ascii { Form::Ascii(&self.ascii) } else { Form::Wide(&self.wide.out) }
    }
}

/// Normalises texts. Immutable: any number of threads may share it.
pub struct Normaliser {
    switches: Switches,
    listed: Listed,
    /// What stands in place of a tag that begins a new line or cell.
    between: u8,
    wide: Wide,
}

impl Normaliser {
    /// Make a normaliser that leaves out lines with the normal forms of `listed_lines`.
    ///
    /// The lines are in UTF-8, as texts are.
    pub fn new<Line: AsRef<[u8]>>(switches: Switches, listed_lines: &[Line]) -> Self {
        let mut made = Self {
            switches,
            listed: Listed::default(),
            between: if listed_lines.is_empty() { b' ' } else { b'\n' },
            wide: Wide::new(switches),
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
        // A text of one line has been normalised to look it up.
        let is_line = !is_less && !self.listed.is_empty() && lines(text).nth(1).is_none();
        if !(is_left || is_line) {
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
        scratch.is_ascii = true;
        if text.is_ascii() {
            ascii::fold(text, &self.switches, &mut scratch.ascii);
            self.run_together(&mut scratch.ascii);
        } else {
            self.wide.fold(text, &mut scratch.wide);
            let out = &mut scratch.wide.out;
            self.run_together(out);
            scratch.is_ascii = out.iter().fold(0, |any, &point| any | point) < 0x80;
            if scratch.is_ascii {
                scratch.ascii.clear();
                scratch.ascii.extend(out.iter().map(|&point| point as u8));
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
                    assert!(points.len() <= text.len() + text.len() / 4 + 32);
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
