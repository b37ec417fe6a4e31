//! Character references of HTML.

use std::collections::HashMap;
use std::sync::LazyLock;

use memchr::memchr;

use super::entities::ENTITIES;
use super::finished;
use crate::text::utf8;

static BY_NAME: LazyLock<HashMap<&[u8], &str>> =
    LazyLock::new(|| ENTITIES.iter().map(|&(name, shown)| (name.as_bytes(), shown)).collect());

/// The digits of a reference by number, decimal and hexadecimal, and the letters of a name.
const DECIMAL_DIGITS: usize = 7;
const HEXADECIMAL_DIGITS: usize = 6;
const LETTERS: usize = 32;

const REPLACEMENT: u32 = 0xFFFD;
/// What browsers take the numbers from 0x80 to 0x9F for: windows-1252.
const WINDOWS: [u32; 32] = [
    0x20AC, 0x81, 0x201A, 0x192, 0x201E, 0x2026, 0x2020, 0x2021, 0x2C6, 0x2030, 0x160, 0x2039,
    0x152, 0x8D, 0x17D, 0x8F, 0x90, 0x2018, 0x2019, 0x201C, 0x201D, 0x2022, 0x2013, 0x2014, 0x2DC,
    0x2122, 0x161, 0x203A, 0x153, 0x9D, 0x17E, 0x178,
];

/// Return `text` with references resolved, once; None if there are none.
pub fn resolved(text: &[u8]) -> Option<Vec<u8>> {
    let mut kept: Option<Vec<u8>> = None;
    let (mut done, mut at) = (0, 0);
    while let Some(begin) = memchr(b'&', &text[at..]) {
        let begin = at + begin;
        at = begin + 1;
        let Some(length) = length_of(&text[at..]) else {
            continue;
        };
        let name = &text[at..at + length];
        let before = &text[done..begin];
        if name[0] == b'#' {
            let kept = kept.get_or_insert_with(Vec::new);
            kept.extend_from_slice(before);
            if let Some(point) = by_number(&name[1..]) {
                utf8::encode(&[point], kept);
            }
        } else if let Some(shown) = BY_NAME.get(name) {
            let kept = kept.get_or_insert_with(Vec::new);
            kept.extend_from_slice(before);
            kept.extend_from_slice(shown.as_bytes());
        } else {
            continue;
        }
        at += length + 1;
        done = at;
    }
    finished(kept, &text[done..])
}

/// Return the length of a reference behind `&`, without the semicolon at its end.
fn length_of(rest: &[u8]) -> Option<usize> {
    let digits = |from: usize, most: usize, is_digit: fn(&u8) -> bool| {
        let rest = &rest[from..];
        let count = rest.iter().take(most).take_while(|&byte| is_digit(byte)).count();
        (count > 0).then_some(from + count)
    };
    let length = match rest {
        [b'#', b'x' | b'X', ..] => digits(2, HEXADECIMAL_DIGITS, u8::is_ascii_hexdigit)?,
        [b'#', ..] => digits(1, DECIMAL_DIGITS, u8::is_ascii_digit)?,
        [first, second, ..] if first.is_ascii_alphabetic() && second.is_ascii_alphanumeric() => {
            digits(0, LETTERS, u8::is_ascii_alphanumeric)?
        }
        _ => return None,
    };
    (rest.get(length) == Some(&b';')).then_some(length)
}

/// Return what a number stands for, decimal or hexadecimal; None for nothing.
fn by_number(digits: &[u8]) -> Option<u32> {
    let (digits, base) = match digits {
        [b'x' | b'X', digits @ ..] => (digits, 16),
        _ => (digits, 10),
    };
    let number = digits
        .iter()
        .fold(0u32, |number, &digit| number * base + char::from(digit).to_digit(base).unwrap_or(0));
    match number {
        0 | 0xD800..=0xDFFF | 0x11_0000.. => Some(REPLACEMENT),
        0x80..=0x9F => Some(WINDOWS[number as usize - 0x80]),
        // Controls, and what is no character.
        0x01..=0x08 | 0x0B | 0x0E..=0x1F | 0x7F | 0xFDD0..=0xFDEF => None,
        _ if number & 0xFFFE == 0xFFFE => None,
        _ => Some(number),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_resolved_once() {
        for (text, expected) in [
            ("&lt;&amp;lt;&eacute;", "<&lt;\u{E9}"),
            ("&#65;&#x42;&#X43;&#128;&#0;", "ABC\u{20AC}\u{FFFD}"),
            ("&#1;x&#xFFFE;", "x"),
            ("&nosuch; &lt &; &#; &#x; &a; &", "&nosuch; &lt &; &#; &#x; &a; &"),
            ("&#9999999;&#12345678;", "\u{FFFD}&#12345678;"),
            ("&NotEqualTilde;", "\u{2242}\u{338}"),
        ] {
            let found = resolved(text.as_bytes()).unwrap_or_else(|| text.as_bytes().to_vec());
            assert_eq!(String::from_utf8_lossy(&found), expected);
        }
    }
}
