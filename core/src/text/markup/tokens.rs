//! Tokens of HTML, as section 13.2.5 of the HTML standard defines them.
//!
//! Comments, declarations, instructions and tags that the end of the text cuts off are passed over,
//! as in a browser. Each byte is looked at a bounded number of times.

use memchr::{memchr, memchr2, memmem};

use super::style::shows;

/// A piece of a page.
#[derive(Debug, PartialEq, Eq)]
pub enum Token<'a> {
    /// Text, with references that aren't resolved.
    Text(&'a [u8]),
    /// Text as it is.
    Verbatim(&'a [u8]),
    Start(Start<'a>),
    /// The name of an end tag.
    End(&'a [u8]),
}

/// A start tag.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Start<'a> {
    pub name: &'a [u8],
    pub closes_itself: bool,
    pub hidden: bool,
    pub open: bool,
    pub style: Option<&'a [u8]>,
}

impl<'a> Start<'a> {
    #[inline(always)]
    fn note(&mut self, attribute: &[u8], value: &'a [u8]) {
        match attribute.len() {
            6 if attribute.eq_ignore_ascii_case(b"hidden") => self.hidden = true,
            4 if attribute.eq_ignore_ascii_case(b"open") => self.open = true,
            5 if attribute.eq_ignore_ascii_case(b"style") => {
                self.style.get_or_insert(value);
            }
            _ => {}
        }
    }

    /// Return whether its attributes hide the element. A style counts for more than `hidden`.
    pub fn is_hidden(&self) -> bool {
        self.style.and_then(shows).map_or(self.hidden, |shows| !shows)
    }
}

/// Reads tokens, one after the other.
pub struct Tokens<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Tokens<'a> {
    pub fn new(text: &'a [u8]) -> Self {
        Self { text, at: 0 }
    }

    /// Return the next token. in_svg: whether there may be a CDATA section.
    pub fn next(&mut self, in_svg: bool) -> Option<Token<'a>> {
        loop {
            let rest = &self.text[self.at..];
            let is_text = match rest {
                [] => return None,
                [b'<', b'!', ..] => {
                    let cdata = rest.strip_prefix(b"<![CDATA[").filter(|_| in_svg);
                    if let Some(inside) = cdata {
                        let length = memmem::find(inside, b"]]>").unwrap_or(inside.len());
                        self.at = self.text.len().min(self.at + 9 + length + 3);
                        return Some(Token::Verbatim(&inside[..length]));
                    }
                    self.at += length_of_declaration(rest);
                    false
                }
                [b'<', b'/', first, ..] if first.is_ascii_alphabetic() => {
                    if let Some(tag) = self.tag(self.at + 2) {
                        return Some(Token::End(tag.name));
                    }
                    false
                }
                [b'<', b'?', ..] | [b'<', b'/', _, ..] => {
                    self.at += memchr(b'>', rest).map_or(rest.len(), |end| end + 1);
                    false
                }
                [b'<', first, ..] if first.is_ascii_alphabetic() => {
                    if let Some(tag) = self.tag(self.at + 1) {
                        return Some(Token::Start(tag));
                    }
                    false
                }
                _ => true,
            };
            if is_text {
                let length = memchr(b'<', &rest[1..]).map_or(rest.len(), |next| next + 1);
                self.at += length;
                return Some(Token::Text(&rest[..length]));
            }
        }
    }

    /// Return the content of an element that has no markup in it, and go on at its end tag.
    pub fn content(&mut self, name: &[u8], is_script: bool) -> &'a [u8] {
        let rest = self.rest();
        let length = if is_script { length_of_script(rest) } else { length_until(rest, name) };
        self.at -= rest.len() - length;
        &rest[..length]
    }

    /// Return all that is left.
    pub fn rest(&mut self) -> &'a [u8] {
        let rest = &self.text[self.at..];
        self.at = self.text.len();
        rest
    }

    /// Return the tag whose name begins at a place; None if the text ends before it does.
    fn tag(&mut self, begin: usize) -> Option<Start<'a>> {
        let text = self.text;
        self.at = text.len();
        let mut at = begin;
        while !ends_name(*text.get(at)?) {
            at += 1;
        }
        let mut tag = Start { name: &text[begin..at], ..Start::default() };
        loop {
            match *text.get(at)? {
                b'>' => break,
                byte if is_space(byte) => at += 1,
                b'/' => {
                    at += 1;
                    tag.closes_itself = text.get(at) == Some(&b'>');
                }
                _ => {
                    let begin = at;
                    // The first character may be `=`.
                    at += 1;
                    while !(ends_name(*text.get(at)?) || text[at] == b'=') {
                        at += 1;
                    }
                    let attribute = &text[begin..at];
                    let mut value = &text[at..at];
                    at += spaces(&text[at..]);
                    if text.get(at) == Some(&b'=') {
                        at += 1;
                        at += spaces(&text[at..]);
                        (value, at) = value_at(text, at)?;
                    }
                    tag.note(attribute, value);
                }
            }
        }
        self.at = at + 1;
        Some(tag)
    }
}

/// Return the value of an attribute, and where it ends.
fn value_at(text: &[u8], at: usize) -> Option<(&[u8], usize)> {
    match *text.get(at)? {
        quote @ (b'"' | b'\'') => {
            let length = memchr(quote, &text[at + 1..])?;
            Some((&text[at + 1..at + 1 + length], at + length + 2))
        }
        _ => {
            let length = text[at..].iter().position(|&byte| is_space(byte) || byte == b'>')?;
            Some((&text[at..at + length], at + length))
        }
    }
}

/// Return the length of a comment, or of whatever else begins with `<!`.
fn length_of_declaration(rest: &[u8]) -> usize {
    let Some(inside) = rest.strip_prefix(b"<!--") else {
        return memchr(b'>', rest).map_or(rest.len(), |end| end + 1);
    };
    if inside.starts_with(b">") {
        return 5;
    }
    if inside.starts_with(b"->") {
        return 6;
    }
    for close in memchr::memchr_iter(b'>', inside) {
        let inside = &inside[..close];
        if inside.strip_suffix(b"!").unwrap_or(inside).ends_with(b"--") {
            return 4 + close + 1;
        }
    }
    rest.len()
}

/// Return how far it is to the end tag of this name.
fn length_until(text: &[u8], name: &[u8]) -> usize {
    memchr::memchr_iter(b'<', text)
        .find(|&at| text[at + 1..].first() == Some(&b'/') && is_named(&text[at + 2..], name))
        .unwrap_or(text.len())
}

/// Return how far it is to the end tag of a script, in which `<!--` and `<script` protect one.
fn length_of_script(text: &[u8]) -> usize {
    let (mut in_comment, mut in_script) = (false, false);
    let mut at = 0;
    while let Some(next) = memchr2(b'<', b'-', &text[at..]) {
        at += next;
        let rest = &text[at..];
        let mut passed = 1;
        if rest.starts_with(b"-->") {
            (in_comment, in_script) = (false, false);
        } else if rest.starts_with(b"<!--") && !in_comment {
            // The dashes may be those of the end: `<!-->`.
            (in_comment, passed) = (true, 2);
        } else if rest.starts_with(b"</") && is_named(&rest[2..], b"script") {
            if !in_script {
                return at;
            }
            in_script = false;
        } else if in_comment && rest[0] == b'<' && is_named(&rest[1..], b"script") {
            in_script = true;
        }
        at += passed;
    }
    text.len()
}

/// Return whether a name stands here, and ends.
fn is_named(text: &[u8], name: &[u8]) -> bool {
    text.len() > name.len()
        && text[..name.len()].eq_ignore_ascii_case(name)
        && ends_name(text[name.len()])
}

/// Return how much white space there is.
#[inline(always)]
pub fn spaces(text: &[u8]) -> usize {
    text.iter().position(|&byte| !is_space(byte)).unwrap_or(text.len())
}

/// White space, as HTML has it.
#[inline(always)]
pub const fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0C)
}

#[inline(always)]
const fn ends_name(byte: u8) -> bool {
    is_space(byte) || matches!(byte, b'/' | b'>')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(text: &str) -> String {
        let mut found = String::new();
        let mut tokens = Tokens::new(text.as_bytes());
        while let Some(token) = tokens.next(false) {
            let (kind, text) = match token {
                Token::Text(text) | Token::Verbatim(text) => ("", text),
                Token::Start(tag) => ("+", tag.name),
                Token::End(name) => ("-", name),
            };
            found += &format!("{kind}{}|", String::from_utf8_lossy(text));
        }
        found
    }

    #[test]
    fn tokens_are_those_of_the_standard() {
        for (text, expected) in [
            ("a<b>c</b >d", "a|+b|c|-b|d|"),
            ("a < b <3 <> <", "a |< b |<3 |<> |<|"),
            ("a</>b</ x>c<!x>d<?x>e<!doctype \">f", "a|b|c|d|e|f|"),
            ("a<!-->b<!--->c<!---->d<!-- > -->e<!-- --!>f", "a|b|c|d|e|f|"),
            ("a<!--!>b--!>c<!--", "a|c|"),
            ("<a b='>' c=\">\" d=>e", "+a|e|"),
            ("<a =b=c'>d<p/x/>e", "+a|d|+p|e|"),
            ("<me@x.y>a<b", "+me@x.y|a|"),
            ("a</", "a|</|"),
            ("a<b c='", "a|"),
        ] {
            assert_eq!(tokens(text), expected, "{text}");
        }
    }

    #[test]
    fn scripts_end_where_they_do_in_browsers() {
        for (text, length) in [
            ("a</script>", 1),
            ("</scripts></SCRIPT >", 10),
            ("<!--</script>", 4),
            ("<!--<script></script>--></script>", 24),
            ("<!--<script></script></script>", 21),
            ("<!-->\u{20}<script></script>", 14),
            ("<script></script", 16),
        ] {
            assert_eq!(length_of_script(text.as_bytes()), length, "{text}");
        }
    }
}
