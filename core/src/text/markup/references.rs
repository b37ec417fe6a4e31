//! Character references of HTML (HTML standard, section 13.2.5.72).

use std::sync::LazyLock;

use memchr::memchr;
use rustc_hash::FxHashMap;

use super::entities::{ENTITIES, WITHOUT_SEMICOLON};
use crate::text::utf8;

static BY_NAME: LazyLock<FxHashMap<&[u8], &str>> =
    LazyLock::new(|| ENTITIES.iter().map(|&(name, shown)| (name.as_bytes(), shown)).collect());
static ENDS_ANYWHERE: LazyLock<FxHashMap<&[u8], &str>> = LazyLock::new(|| {
    WITHOUT_SEMICOLON.iter().map(|&name| (name.as_bytes(), BY_NAME[name.as_bytes()])).collect()
});

/// The letters of the longest name, and of the longest and shortest that need no semicolon.
const LONGEST: usize = 31;
const LONGEST_WITHOUT: usize = 6;
const SHORTEST_WITHOUT: usize = 2;

const REPLACEMENT: u32 = 0xFFFD;
const NO_CHARACTER: u32 = 0x11_0000;
/// What browsers take the numbers from 0x80 to 0x9F for: windows-1252.
const WINDOWS: [u32; 32] = [
    0x20AC, 0x81, 0x201A, 0x192, 0x201E, 0x2026, 0x2020, 0x2021, 0x2C6, 0x2030, 0x160, 0x2039,
    0x152, 0x8D, 0x17D, 0x8F, 0x90, 0x2018, 0x2019, 0x201C, 0x201D, 0x2022, 0x2013, 0x2014, 0x2DC,
    0x2122, 0x161, 0x203A, 0x153, 0x9D, 0x17E, 0x178,
];

/// Append `text` with references resolved, once.
pub fn append(text: &[u8], in_attribute: bool, out: &mut Vec<u8>) {
    let mut rest = text;
    while let Some(length) = memchr(b'&', rest) {
        out.extend_from_slice(&rest[..length]);
        rest = &rest[length + 1..];
        let size = match rest {
            [b'#', digits @ ..] => numbered(digits, out).map(|size| 1 + size),
            [first, ..] if first.is_ascii_alphabetic() => named(rest, in_attribute, out),
            _ => None,
        };
        match size {
            Some(size) => rest = &rest[size..],
            None => out.push(b'&'),
        }
    }
    out.extend_from_slice(rest);
}

/// Append the character of a number, if there is one; return the size of digits and semicolon.
fn numbered(rest: &[u8], out: &mut Vec<u8>) -> Option<usize> {
    let (prefix, base) = if matches!(rest, [b'x' | b'X', ..]) { (1, 16) } else { (0, 10) };
    let mut number = 0u32;
    let mut at = prefix;
    while let Some(digit) = rest.get(at).and_then(|&byte| char::from(byte).to_digit(base)) {
        number = (number * base + digit).min(NO_CHARACTER);
        at += 1;
    }
    if at == prefix {
        return None;
    }
    let point = match number {
        0 | 0xD800..=0xDFFF | NO_CHARACTER.. => REPLACEMENT,
        0x80..=0x9F => WINDOWS[number as usize - 0x80],
        _ => number,
    };
    utf8::encode(&[point], out);
    Some(at + usize::from(rest.get(at) == Some(&b';')))
}

/// Append what a name stands for, if it is one; return its size.
fn named(rest: &[u8], in_attribute: bool, out: &mut Vec<u8>) -> Option<usize> {
    let letters = rest.iter().take(LONGEST + 1).take_while(|byte| byte.is_ascii_alphanumeric());
    let letters = letters.count();
    if rest.get(letters) == Some(&b';')
        && let Some(shown) = BY_NAME.get(&rest[..letters])
    {
        out.extend_from_slice(shown.as_bytes());
        return Some(letters + 1);
    }
    let mut lengths = (SHORTEST_WITHOUT..=letters.min(LONGEST_WITHOUT)).rev();
    let (size, shown) = lengths.find_map(|size| Some((size, ENDS_ANYWHERE.get(&rest[..size])?)))?;
    if in_attribute
        && rest.get(size).is_some_and(|&byte| byte == b'=' || byte.is_ascii_alphanumeric())
    {
        return None;
    }
    out.extend_from_slice(shown.as_bytes());
    Some(size)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolved(text: &str, in_attribute: bool) -> String {
        let mut out = Vec::new();
        append(text.as_bytes(), in_attribute, &mut out);
        String::from_utf8_lossy(&out).into_owned()
    }

    #[test]
    fn references_are_resolved_once() {
        for (text, expected) in [
            ("&lt;&amp;lt;&eacute;", "<&lt;\u{E9}"),
            ("&#65;&#x42;&#X43;&#128;&#0;", "ABC\u{20AC}\u{FFFD}"),
            ("&#84he, &#108ess &#0000000084;", "The, less T"),
            ("&#1;x&#xFFFE;&#xD800", "\u{1}x\u{FFFE}\u{FFFD}"),
            ("&#99999999999999999999;x", "\u{FFFD}x"),
            ("&lt &notit; &notni; &ampx &AMP", "< \u{AC}it; \u{220C} &x &"),
            ("&nosuch; &; &#; &#x; &#xg &a; & &hearts", "&nosuch; &; &#; &#x; &#xg &a; & &hearts"),
            ("&NotEqualTilde;", "\u{2242}\u{338}"),
        ] {
            assert_eq!(resolved(text, false), expected);
        }
    }

    #[test]
    fn in_attributes_names_may_be_parameters() {
        for (text, expected) in
            [("a&lt=b&ltx", "a&lt=b&ltx"), ("&lt;&lt &#84x", "<< Tx"), ("&lt", "<")]
        {
            assert_eq!(resolved(text, true), expected);
        }
    }

    #[test]
    fn the_lengths_are_those_of_the_tables() {
        assert_eq!(ENTITIES.iter().map(|(name, _)| name.len()).max(), Some(LONGEST));
        let lengths = || WITHOUT_SEMICOLON.iter().map(|name| name.len());
        assert_eq!(lengths().max(), Some(LONGEST_WITHOUT));
        assert_eq!(lengths().min(), Some(SHORTEST_WITHOUT));
    }
}
