//! Comments, and elements that show nothing: scripts, styles and the like.

use memchr::memchr;

use super::elements::RAW;
use super::{finished, is_space};

const COMMENT: usize = RAW.len();

/// Return `text` without comments, and with a space for each element that shows nothing.
///
/// None if there are none.
pub fn without(text: &[u8]) -> Option<Vec<u8>> {
    // Those that may still have an end from here on; the last one stands for comments.
    let mut ends = [true; COMMENT + 1];
    let mut kept = None;
    let (mut done, mut at) = (0, 0);
    while let Some(begin) = memchr(b'<', &text[at..]) {
        let begin = at + begin;
        let Some((kind, inside)) = beginning(text, begin).filter(|&(kind, _)| ends[kind]) else {
            at = begin + 1;
            continue;
        };
        at = inside;
        let end = if kind == COMMENT {
            // The beginning of a comment can hold its end: `<!-->`.
            end_of_comment(text, inside - 2)
        } else {
            end_of_element(text, inside, RAW[kind].as_bytes())
        };
        let Some(end) = end else {
            ends[kind] = false;
            continue;
        };
        let kept = kept.get_or_insert_with(Vec::new);
        kept.extend_from_slice(&text[done..begin]);
        if kind != COMMENT {
            kept.push(b' ');
        }
        (done, at) = (end, end);
    }
    finished(kept, &text[done..])
}

/// Return what begins at a `<`, and where its inside begins.
fn beginning(text: &[u8], at: usize) -> Option<(usize, usize)> {
    let rest = &text[at + 1..];
    if rest.starts_with(b"!--") {
        return Some((COMMENT, at + 4));
    }
    let kind = RAW.iter().position(|name| is_named(rest, name.as_bytes()))?;
    let close = close_of(text, at + 1)?;
    // What closes itself has no inside.
    (text[close - 1] != b'/').then_some((kind, close + 1))
}

/// Return whether a tag has this name.
fn is_named(rest: &[u8], name: &[u8]) -> bool {
    rest.len() > name.len()
        && rest[..name.len()].eq_ignore_ascii_case(name)
        && (is_space(rest[name.len()]) || matches!(rest[name.len()], b'/' | b'>'))
}

/// Return where the next `>` is, if there is no `<` before it.
fn close_of(text: &[u8], at: usize) -> Option<usize> {
    let found = at + memchr::memchr2(b'<', b'>', &text[at..])?;
    (text[found] == b'>').then_some(found)
}

/// Return where `-->` or `--!>` ends, from a place on.
fn end_of_comment(text: &[u8], begin: usize) -> Option<usize> {
    let mut at = begin;
    loop {
        let close = at + memchr(b'>', &text[at..])?;
        let inside = &text[begin..close];
        let bare = inside.strip_suffix(b"!").unwrap_or(inside);
        if bare.ends_with(b"--") {
            return Some(close + 1);
        }
        at = close + 1;
    }
}

/// Return where the end tag of an element ends.
fn end_of_element(text: &[u8], mut at: usize, name: &[u8]) -> Option<usize> {
    loop {
        at += memchr(b'<', &text[at..])? + 1;
        let rest = &text[at..];
        if rest.first() == Some(&b'/')
            && is_named(&rest[1..], name)
            && let Some(close) = close_of(text, at)
        {
            return Some(close + 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left(text: &str) -> String {
        let left = without(text.as_bytes()).unwrap_or_else(|| text.as_bytes().to_vec());
        String::from_utf8_lossy(&left).into_owned()
    }

    #[test]
    fn comments_and_what_shows_nothing_are_dropped() {
        for (text, expected) in [
            ("a<!-- x -->b<!-->c<!--->d", "abcd"),
            ("a<!-- x --!>b", "ab"),
            ("a<!-- x ->b", "a<!-- x ->b"),
            ("a<SCRIPT src=x>1<2</script >b", "a b"),
            ("a<svg/>b</svg>", "a<svg/>b</svg>"),
            ("<style>x", "<style>x"),
            ("<style>x<script>y</script>z", "<style>x z"),
            ("<scripts>y</scripts>", "<scripts>y</scripts>"),
            ("<svg <b>x</svg>", "<svg <b>x</svg>"),
        ] {
            assert_eq!(left(text), expected);
        }
    }
}
