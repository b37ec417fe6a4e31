//! Web addresses become their hosts.
//!
//! What follows the host, and a user's name before it, are dropped. An address ends at white space,
//! a quote or angle bracket, a closing bracket that it hasn't opened, and a letter of a script that
//! puts no spaces between words. A text without a letter or digit outside of addresses keeps them:
//! they are all that it says.

use crate::text::unicode::{is_alphanumeric, is_white_space};
use crate::text::utf8;

/// Return `text` with hosts for addresses; None if there are none, or if it says nothing else.
pub fn with_hosts(text: &[u8]) -> Option<Vec<u8>> {
    let mut reduced = Vec::new();
    let (mut done, mut at) = (0, 0);
    let mut says_more = false;
    while let Some(&byte) = text.get(at) {
        if matches!(byte, b'h' | b'H' | b'w' | b'W')
            && let Some(address) = address_at(text, at)
        {
            let before = &text[done..at];
            says_more = says_more || has_letter(before);
            reduced.extend_from_slice(before);
            reduced.extend_from_slice(&text[address.host..address.path]);
            (done, at) = (address.end, address.end);
        } else {
            at += 1;
        }
    }
    if done == 0 || !(says_more || has_letter(&text[done..])) {
        return None;
    }
    reduced.extend_from_slice(&text[done..]);
    Some(reduced)
}

/// Where the parts of an address begin, and where it ends.
struct Address {
    host: usize,
    path: usize,
    end: usize,
}

/// Return the address that begins at an h or w.
fn address_at(text: &[u8], at: usize) -> Option<Address> {
    let rest = &text[at..];
    let first = rest[0].to_ascii_lowercase();
    let scheme = if first == b'h' { length_of_scheme(rest)? } else { length_of_www(rest)? };
    if follows_a_word(text, at) {
        return None;
    }
    let mut host = at + scheme;
    if first == b'h' {
        let user = length_of(text, host, |point| {
            !is_white_space(point) && !is_any(point, "/?#<>\"@") && !is_unspaced(point)
        });
        if text.get(host + user) == Some(&b'@') {
            host += user + 1;
        }
    }
    let length =
        length_of(text, host, |point| !is_white_space(point) && !is_any(point, "/?#:<>\"@"));
    if length == 0 {
        return None;
    }
    let path = host + length;
    let end = end_of_path(text, path);
    Some(match first {
        b'h' => Address { host, path, end },
        _ => Address { host: at, path, end },
    })
}

/// Return the length of `http://` or `https://`, in any case.
fn length_of_scheme(rest: &[u8]) -> Option<usize> {
    let http = rest.get(..4)?;
    let secure = usize::from(matches!(rest.get(4)?, b's' | b'S'));
    (http.eq_ignore_ascii_case(b"http") && rest[4 + secure..].starts_with(b"://"))
        .then_some(7 + secure)
}

/// Return the length of the first letter of `www.`, behind which its host is taken to begin.
fn length_of_www(rest: &[u8]) -> Option<usize> {
    rest.get(..4)?.eq_ignore_ascii_case(b"www.").then_some(1)
}

/// Return whether there is a letter, digit or `_` before a place, of a script with spaces.
fn follows_a_word(text: &[u8], at: usize) -> bool {
    match text[..at].last() {
        Some(&byte) if byte < 0x80 => byte.is_ascii_alphanumeric() || byte == b'_',
        Some(_) => {
            let point = utf8::last(&text[..at]);
            is_alphanumeric(point) && !is_unspaced(point)
        }
        None => false,
    }
}

fn end_of_path(text: &[u8], mut at: usize) -> usize {
    loop {
        let length = length_of(text, at, is_of_path);
        at += length;
        if text.get(at) == Some(&b'(') {
            let inside = at + 1 + length_of(text, at + 1, is_of_path);
            if text.get(inside) == Some(&b')') {
                at = inside + 1;
                continue;
            }
        }
        return at;
    }
}

fn is_of_path(point: u32) -> bool {
    !is_white_space(point) && !is_any(point, "<>\"()") && !is_unspaced(point)
}

/// Return whether a code point is one of some ASCII characters.
#[inline(always)]
fn is_any(point: u32, those: &str) -> bool {
    point < 0x80 && those.as_bytes().contains(&(point as u8))
}

/// Thai, Lao, Burmese, Khmer, Chinese, Japanese and Korean: no part of what follows a host.
const fn is_unspaced(point: u32) -> bool {
    matches!(
        point,
        0x0E00..=0x0EFF
            | 0x1000..=0x109F
            | 0x1780..=0x17FF
            | 0x2E80..=0xA4CF
            | 0xAC00..=0xD7FF
            | 0xF900..=0xFAFF
            | 0xFE30..=0xFE4F
            | 0xFF00..=0xFFEF
            | 0x2_0000..=0x3_FFFF
    )
}

/// Return the bytes of the code points of a kind from a place on.
fn length_of(text: &[u8], begin: usize, is_of_kind: impl Fn(u32) -> bool) -> usize {
    let mut at = begin;
    while let Some((point, size)) = utf8::first(&text[at..]) {
        if !is_of_kind(point) {
            break;
        }
        at += size;
    }
    at - begin
}

fn has_letter(text: &[u8]) -> bool {
    let mut at = 0;
    while let Some((point, size)) = utf8::first(&text[at..]) {
        if is_alphanumeric(point) {
            return true;
        }
        at += size;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_become_hosts() {
        for (text, expected) in [
            ("see https://example.org/a(b)c).", "see example.org)."),
            ("see HTTP://me:x@Example.org:80/?q#f x", "see Example.org x"),
            ("www.example.org/x and", "www.example.org and"),
            ("\u{898B}http://a.b/c\u{898B}", "\u{898B}a.b\u{898B}"),
            ("xhttp://a.b/c http:///x", "xhttp://a.b/c http:///x"),
            ("http://a.b/c www.d.e/f", "http://a.b/c www.d.e/f"),
            ("(http://a.b/c) x", "(a.b) x"),
        ] {
            let found = with_hosts(text.as_bytes()).unwrap_or_else(|| text.as_bytes().to_vec());
            assert_eq!(String::from_utf8_lossy(&found), expected);
        }
    }
}
