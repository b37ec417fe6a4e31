//! Lines that are left out of texts because they are on a list: footers, menus, cookie banners.
//!
//! A line ends where Python's `str.splitlines` ends it, and each break is one character. A line is
//! left out if its normal form, as if it were a text, is that of a line of the list. Where nothing is
//! left of a text, all of it stays: so pages of nothing but listed lines are compared with each
//! other.

use std::collections::HashSet;

use super::unicode::{is_alphanumeric, is_punctuation_or_symbol, is_white_space, nfkd};
use super::{Form, Switches, utf8};

/// The normal forms of the lines that are listed, in UTF-8.
#[derive(Default)]
pub struct Listed {
    forms: HashSet<Vec<u8>>,
    /// By the bytes of a form: whether there is one. The last place is for all that are longer.
    lengths: Vec<bool>,
}

const LONGEST: usize = 1024;

impl Listed {
    /// List a normal form, unless it is nothing but white space, marks and what is dropped.
    pub fn add(&mut self, form: Form<'_>, switches: &Switches) {
        if !says_something(form, switches) {
            return;
        }
        let mut text = Vec::new();
        append(form, &mut text);
        self.lengths.resize(LONGEST + 1, false);
        self.lengths[text.len().min(LONGEST)] = true;
        self.forms.insert(text);
    }

    pub fn is_empty(&self) -> bool {
        self.forms.is_empty()
    }

    /// Return the forms, ascending.
    pub fn forms(&self) -> Vec<&[u8]> {
        let mut forms: Vec<&[u8]> = self.forms.iter().map(Vec::as_slice).collect();
        forms.sort_unstable();
        forms
    }

    /// Return whether a normal form is listed. `buffer`: overwritten.
    pub fn has(&self, form: Form<'_>, buffer: &mut Vec<u8>) -> bool {
        let text = match form {
            Form::Ascii(text) => text,
            Form::Wide(_) => {
                buffer.clear();
                append(form, buffer);
                buffer
            }
        };
        self.lengths.get(text.len().min(LONGEST)) == Some(&true) && self.forms.contains(text)
    }
}

/// Append a form in UTF-8.
pub fn append(form: Form<'_>, text: &mut Vec<u8>) {
    match form {
        Form::Ascii(ascii) => text.extend_from_slice(ascii),
        Form::Wide(points) => utf8::encode(points, text),
    }
}

/// Return whether a form is nothing but white space.
pub fn is_blank(form: Form<'_>) -> bool {
    match form {
        Form::Ascii(text) => text.iter().all(|&byte| is_white_space(byte.into())),
        Form::Wide(points) => points.iter().all(|&point| is_white_space(point)),
    }
}

/// Return each line of a text, and where the next one begins.
pub fn lines(text: &[u8]) -> impl Iterator<Item = (&[u8], usize)> {
    let mut next = Some(0);
    std::iter::from_fn(move || {
        let begin = next?;
        let mut at = begin;
        while at < text.len() {
            let size = size_of_break(&text[at..]);
            if size > 0 {
                next = Some(at + size);
                return Some((&text[begin..at], at + size));
            }
            at += 1;
        }
        next = None;
        Some((&text[begin..], text.len()))
    })
}

/// Return the bytes of a line break; 0 if there is none.
#[inline(always)]
fn size_of_break(rest: &[u8]) -> usize {
    match rest {
        [b'\n'..=b'\r' | 0x1C..=0x1E, ..] => 1,
        // U+0085, U+2028 and U+2029
        [0xC2, 0x85, ..] => 2,
        [0xE2, 0x80, 0xA8 | 0xA9, ..] => 3,
        _ => 0,
    }
}

/// Return whether there is anything in a form but white space, marks and what may be dropped.
fn says_something(form: Form<'_>, switches: &Switches) -> bool {
    let says = |point: u32| {
        if switches.drop_symbols && is_punctuation_or_symbol(point) {
            return false;
        }
        let Some(char) = char::from_u32(point) else {
            return false;
        };
        nfkd(char.encode_utf8(&mut [0; 4])).chars().any(|part| {
            let point = u32::from(part);
            // The iota below becomes one, and may be dropped as a mark before.
            part != '\u{3B9}' && (is_alphanumeric(point) || is_punctuation_or_symbol(point))
        })
    };
    match form {
        Form::Ascii(text) => text.iter().any(|&byte| says(byte.into())),
        Form::Wide(points) => points.iter().any(|&point| says(point)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_where_python_ends_them() {
        let text = "a\r\nb\u{85}c\u{2028}\u{2029}\u{1C}d";
        let found: Vec<&[u8]> = lines(text.as_bytes()).map(|(line, _)| line).collect();
        assert_eq!(found, [&b"a"[..], b"", b"b", b"c", b"", b"", b"d"]);
        assert_eq!(lines(b"").count(), 1);
        assert_eq!(lines(b"a\n").count(), 2);
    }

    #[test]
    fn what_says_nothing_is_not_listed() {
        let mut listed = Listed::default();
        let switches = Switches { drop_symbols: true, ..Switches::default() };
        listed.add(Form::Ascii(b" - "), &switches);
        listed.add(Form::Wide(&[0x301, 0x3B9]), &switches);
        assert!(listed.is_empty());
        listed.add(Form::Ascii(b"- a"), &switches);
        assert!(listed.has(Form::Ascii(b"- a"), &mut Vec::new()));
    }
}
