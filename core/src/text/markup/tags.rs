//! Tags and declarations.
//!
//! Nothing else may be lost: a text with `i<n` and `m>0` has no tag. What is taken for a tag:
//!
//! - `<`, directly followed by the name of an element in any case, or by that of a custom element
//!   such as `my-tag` that the text closes somewhere, or that has attributes;
//! - then attributes as HTML writes them. A word without a value is one only if HTML has it so, or
//!   if it has a hyphen: `a <b and c> d` is text. A quoted value may have a `>`. If a tag begins
//!   with a quoted value and goes on with errors, it ends at the first `>`;
//! - then `>`. What isn't closed stays.
//!
//! `a<b>c` is a tag, as in a browser, and so is `<input>` for whoever means it as a placeholder.
//! The parameter of a type is none: directly behind another name, a name in capital and small
//! letters, or one of A, B, I, Q, S and U if the text doesn't end it: `Class<Object>`, `Set<A>`.

use std::collections::HashSet;

use memchr::{memchr, memchr2, memmem};

use super::elements::{Name, name_of, stands_without_value};
use super::{finished, is_space};
use crate::text::unicode::is_alphanumeric;
use crate::text::utf8;

const DECLARATIONS: [&[u8]; 5] = [b"doctype", b"element", b"entity", b"attlist", b"notation"];

/// What a tag is.
enum Tag {
    /// It stands inside a line.
    Inline,
    /// It begins a new line or cell.
    Block,
    /// It counts if the text has its end. The length of its name.
    Unknown(usize),
}

/// Return `text` without tags; None if there are none.
///
/// between: what stands in place of a tag that begins a new line or cell.
pub fn without(text: &[u8], between: u8) -> Option<Vec<u8>> {
    let mut ended = None;
    let mut name = Vec::new();
    let mut kept = None;
    let (mut done, mut at) = (0, 0);
    while let Some(begin) = memchr(b'<', &text[at..]) {
        let begin = at + begin;
        at = begin + 1;
        let Some((tag, end)) = tag_at(text, begin) else {
            continue;
        };
        at = end;
        let is_inline = match tag {
            Tag::Inline => true,
            Tag::Block => false,
            Tag::Unknown(length) => {
                write_lowercase(&text[begin + 1..begin + 1 + length], &mut name);
                if !ended.get_or_insert_with(|| names_ended(text)).contains(&name) {
                    continue;
                }
                length == 1
            }
        };
        let kept = kept.get_or_insert_with(Vec::new);
        kept.extend_from_slice(&text[done..begin]);
        if !is_inline {
            kept.push(between);
        }
        done = end;
    }
    finished(kept, &text[done..])
}

/// Return the names with hyphens, and of capital letters, of which the text has ends, in lower case.
fn names_ended(text: &[u8]) -> HashSet<Vec<u8>> {
    let mut names = HashSet::new();
    let mut name = Vec::new();
    for at in memmem::find_iter(text, b"</") {
        let rest = &text[at + 2..];
        let length = length_of(rest, is_of_custom_name);
        if name_of(&rest[..length]) == Some(Name::Custom) || is_type(rest) {
            write_lowercase(&rest[..length], &mut name);
            if !names.contains(&name) {
                names.insert(name.clone());
            }
        }
    }
    names
}

fn write_lowercase(name: &[u8], lowercase: &mut Vec<u8>) {
    lowercase.clear();
    lowercase.extend_from_slice(name);
    lowercase.make_ascii_lowercase();
}

/// Return the tag at a `<`, and where it ends.
fn tag_at(text: &[u8], begin: usize) -> Option<(Tag, usize)> {
    let at = begin + 1;
    match text.get(at)? {
        b'/' => end_tag(text, at + 1),
        b'!' => Some((Tag::Block, declaration(text, at + 1)?)),
        b'?' => Some((Tag::Block, instruction(text, at + 1)?)),
        b'A'..=b'Z' if is_parameter(text, begin) => None,
        b'a'..=b'z' | b'A'..=b'Z' => begin_tag(text, begin),
        _ => None,
    }
}

/// Return whether what follows a `<` is the parameter of a type, in capital and small letters.
fn is_parameter(text: &[u8], begin: usize) -> bool {
    let rest = &text[begin + 2..];
    let small = length_of(rest.get(1..).unwrap_or_default(), |byte| byte.is_ascii_lowercase());
    small > 0
        && is_of_name(rest[0])
        && rest.get(1 + small) == Some(&b'>')
        && follows_a_word(text, begin)
}

/// Return whether there is a letter, digit or `_` before a place.
fn follows_a_word(text: &[u8], at: usize) -> bool {
    match text[..at].last() {
        Some(&byte) if byte < 0x80 => byte.is_ascii_alphanumeric() || byte == b'_',
        Some(_) => is_alphanumeric(utf8::last(&text[..at])),
        None => false,
    }
}

/// Return whether a name of one capital letter may be that of a type or an element.
fn is_type(rest: &[u8]) -> bool {
    matches!(rest, [b'A' | b'B' | b'I' | b'Q' | b'S' | b'U', b'>', ..])
}

fn begin_tag(text: &[u8], begin: usize) -> Option<(Tag, usize)> {
    let rest = &text[begin + 1..];
    let length = length_of(rest, is_of_name);
    let after = *rest.get(length)?;
    if !(is_space(after) || matches!(after, b'/' | b'>')) {
        return None;
    }
    let tag = if is_type(rest) && follows_a_word(text, begin) {
        Tag::Unknown(1)
    } else {
        match name_of(&rest[..length])? {
            Name::Inline => Tag::Inline,
            Name::Block => Tag::Block,
            Name::Custom if after == b'>' => Tag::Unknown(length),
            Name::Custom => Tag::Block,
        }
    };
    let at = begin + 1 + length;
    let close = attributes(text, at).or_else(|| broken_attributes(text, at))?;
    Some((tag, close + 1))
}

/// Return where the `>` is behind attributes.
fn attributes(text: &[u8], mut at: usize) -> Option<usize> {
    loop {
        at += length_of(&text[at..], |byte| is_space(byte) || byte == b'/');
        if *text.get(at)? == b'>' {
            return Some(at);
        }
        let word = length_of(&text[at..], is_of_word);
        if word == 0 {
            return None;
        }
        if let Some(value) = value_at(text, at + word)
            && let Some(end) = value_end(text, value)
        {
            at = end;
        } else if stands_without_value(&text[at..at + word]) {
            at += word;
        } else {
            return None;
        }
    }
}

/// Return where the `>` is behind attributes of which the first has a quote, and is broken.
fn broken_attributes(text: &[u8], at: usize) -> Option<usize> {
    let spaces = length_of(&text[at..], is_space);
    let word = length_of(&text[at + spaces..], is_of_word);
    if spaces == 0 || word == 0 {
        return None;
    }
    let value = value_at(text, at + spaces + word)?;
    matches!(text.get(value)?, b'"' | b'\'').then(|| close_of(text, value))?
}

/// Return where the value begins of an attribute whose name ends here; None if it has none.
fn value_at(text: &[u8], at: usize) -> Option<usize> {
    let equals = at + length_of(&text[at..], is_space);
    if *text.get(equals)? != b'=' {
        return None;
    }
    Some(equals + 1 + length_of(&text[equals + 1..], is_space))
}

/// Return where a value ends, if it does.
fn value_end(text: &[u8], at: usize) -> Option<usize> {
    match *text.get(at)? {
        quote @ (b'"' | b'\'') => Some(at + 1 + memchr(quote, &text[at + 1..])? + 1),
        _ => {
            let length = length_of(&text[at..], |byte| {
                !is_space(byte) && !matches!(byte, b'"' | b'\'' | b'<' | b'>')
            });
            (length > 0).then_some(at + length)
        }
    }
}

fn end_tag(text: &[u8], at: usize) -> Option<(Tag, usize)> {
    let rest = &text[at..];
    let length = length_of(rest, is_of_name);
    let tag = match name_of(&rest[..length])? {
        Name::Inline => Tag::Inline,
        Name::Block | Name::Custom => Tag::Block,
    };
    let after = *rest.get(length)?;
    if !(is_space(after) || matches!(after, b'/' | b'>')) {
        return None;
    }
    Some((tag, close_of(text, at + length)? + 1))
}

/// Return the end of a declaration, or of a conditional comment of Office.
fn declaration(text: &[u8], at: usize) -> Option<usize> {
    let rest = &text[at..];
    let is_one = if let Some(condition) = rest.strip_prefix(b"[") {
        let word = condition.get(..3).filter(|word| word.eq_ignore_ascii_case(b"end"));
        let condition = word.map_or(condition, |_| &condition[3..]);
        condition.len() >= 2
            && condition[..2].eq_ignore_ascii_case(b"if")
            && !condition
                .get(2)
                .is_some_and(|&byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
    } else {
        let length = length_of(rest, |byte| byte.is_ascii_alphabetic());
        DECLARATIONS.iter().any(|name| name.eq_ignore_ascii_case(&rest[..length]))
            && rest.get(length).is_some_and(|&byte| is_space(byte) || byte == b'>')
    };
    is_one.then(|| close_of(text, at))?.map(|close| close + 1)
}

/// Return the end of a processing instruction. Only XML's own needs no `?` at the end.
fn instruction(text: &[u8], at: usize) -> Option<usize> {
    let rest = &text[at..];
    let close = close_of(text, at)?;
    let is_xml = rest.len() >= 3 && rest[..3].eq_ignore_ascii_case(b"xml");
    let is_other =
        || rest[0].is_ascii_alphabetic() && memchr(b'?', &text[at..close]) == Some(close - 1 - at);
    (is_xml || is_other()).then_some(close + 1)
}

/// Return where the next `>` is, if there is no `<` before it.
fn close_of(text: &[u8], at: usize) -> Option<usize> {
    let found = at + memchr2(b'<', b'>', &text[at..])?;
    (text[found] == b'>').then_some(found)
}

/// Return how many bytes there are of a kind.
#[inline(always)]
fn length_of(text: &[u8], is_of_kind: impl Fn(u8) -> bool) -> usize {
    text.iter().position(|&byte| !is_of_kind(byte)).unwrap_or(text.len())
}

#[inline(always)]
fn is_of_custom_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-')
}

#[inline(always)]
fn is_of_name(byte: u8) -> bool {
    is_of_custom_name(byte) || byte == b':'
}

/// Return whether a byte is part of the name of an attribute.
#[inline(always)]
fn is_of_word(byte: u8) -> bool {
    !is_space(byte) && !matches!(byte, b'"' | b'\'' | b'<' | b'>' | b'/' | b'=')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left(text: &str) -> String {
        let left = without(text.as_bytes(), b'|').unwrap_or_else(|| text.as_bytes().to_vec());
        String::from_utf8_lossy(&left).into_owned()
    }

    #[test]
    fn what_is_a_tag() {
        for (text, expected) in [
            ("<p class=x>a <B>b</b >c</P\n>", "|a bc|"),
            ("<a href='>'>x</a>", "x"),
            ("<a href=\"x\" and more>y", "y"),
            ("<input checked data-x>", "|"),
            ("<o:p></o:p>", "||"),
            ("<my-tag>x</my-tag>", "|x|"),
            ("<my-tag a=b>", "|"),
            ("<!doctype html><![if !x]><?xml version=1?><?php x ?>", "||||"),
            ("x<A>y</A>", "xy"),
        ] {
            assert_eq!(left(text), expected);
        }
    }

    #[test]
    fn what_is_none() {
        for text in [
            "i<n and m>0",
            "a <b and c> d",
            "<my-tag>x",
            "Class<Object>",
            "Set<A>",
            "<p",
            "<?x>",
            "<!x>",
            "<a <b",
            "</x y>",
            "<",
            "</",
            "<!",
            "<?",
            "<a b=",
            "<a b='",
            "<A",
        ] {
            assert_eq!(left(text), text);
        }
    }
}
