//! The id and the text of a payload that is a plain JSON object.
//!
//! Python's reader says what is wrong with a payload, and knows all of its forms. This one reads what
//! most payloads are, faster, and leaves every other to that: it may refuse what that reads, and
//! never reads what that refuses, or reads otherwise.

use std::borrow::Cow;

use memchr::memchr2;

/// What is nested more deeply is left to Python, whose limit depends on its stack.
const DEEPEST: usize = 64;
/// A number of more digits may be out of a range.
const MOST_DIGITS: usize = 18;

/// What was found.
#[derive(Debug, PartialEq)]
pub struct Plain<'a> {
    pub id: Option<Cow<'a, str>>,
    pub text: Cow<'a, str>,
}

/// Read an object whose members `id` and `text` are strings; it may lack the first.
pub fn read<'a>(payload: &'a [u8], id: &str, text: &str) -> Option<Plain<'a>> {
    let mut scanner = Scanner { data: str::from_utf8(payload).ok()?, at: 0 };
    let (mut found_id, mut found_text) = (None, None);
    scanner.object(|name, scanner| {
        // Of members that share a name, who counts is Python's to say.
        let into = match name {
            _ if name == text && found_text.is_none() => &mut found_text,
            _ if name == id && found_id.is_none() => &mut found_id,
            _ if name == text || name == id => return None,
            _ => return scanner.skip(1),
        };
        *into = Some(unescaped(scanner.string()?)?);
        Some(())
    })?;
    scanner.space();
    (scanner.at == payload.len()).then_some(())?;
    Some(Plain { id: found_id, text: found_text? })
}

struct Scanner<'a> {
    data: &'a str,
    at: usize,
}

impl<'a> Scanner<'a> {
    fn peek(&self) -> Option<u8> {
        self.data.as_bytes().get(self.at).copied()
    }

    fn next(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at += 1;
        Some(byte)
    }

    fn expect(&mut self, byte: u8) -> Option<()> {
        (self.next()? == byte).then_some(())
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    /// Pass an object; `each` passes the value of a member. Names with escapes are left to Python.
    fn object(&mut self, mut each: impl FnMut(&str, &mut Self) -> Option<()>) -> Option<()> {
        self.space();
        self.expect(b'{')?;
        self.space();
        if self.peek()? == b'}' {
            self.at += 1;
            return Some(());
        }
        loop {
            self.space();
            let name = self.string()?;
            (!name.contains('\\')).then_some(())?;
            self.space();
            self.expect(b':')?;
            self.space();
            each(name, self)?;
            self.space();
            match self.next()? {
                b',' => {}
                b'}' => return Some(()),
                _ => return None,
            }
        }
    }

    fn array(&mut self, depth: usize) -> Option<()> {
        self.expect(b'[')?;
        self.space();
        if self.peek()? == b']' {
            self.at += 1;
            return Some(());
        }
        loop {
            self.space();
            self.skip(depth)?;
            self.space();
            match self.next()? {
                b',' => {}
                b']' => return Some(()),
                _ => return None,
            }
        }
    }

    /// Pass a string; return what is between its quotes, with escapes as they are.
    fn string(&mut self) -> Option<&'a str> {
        self.expect(b'"')?;
        let from = self.at;
        loop {
            let rest = &self.data.as_bytes()[self.at..];
            let length = memchr2(b'"', b'\\', rest)?;
            if rest[..length].iter().fold(false, |any, &byte| any | (byte < b' ')) {
                return None;
            }
            self.at += length + 1;
            if rest[length] == b'"' {
                return Some(&self.data[from..self.at - 1]);
            }
            match self.next()? {
                b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => {}
                b'u' => {
                    for _ in 0..4 {
                        self.next()?.is_ascii_hexdigit().then_some(())?;
                    }
                }
                _ => return None,
            }
        }
    }

    /// Pass any value.
    fn skip(&mut self, depth: usize) -> Option<()> {
        (depth < DEEPEST).then_some(())?;
        match self.peek()? {
            b'"' => self.string().map(drop),
            b'{' => self.object(|_, scanner| scanner.skip(depth + 1)),
            b'[' => self.array(depth + 1),
            b't' => self.word("true"),
            b'f' => self.word("false"),
            b'n' => self.word("null"),
            _ => self.number(),
        }
    }

    fn word(&mut self, word: &str) -> Option<()> {
        self.data.as_bytes()[self.at..].starts_with(word.as_bytes()).then_some(())?;
        self.at += word.len();
        Some(())
    }

    fn digits(&mut self) -> usize {
        let from = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        self.at - from
    }

    /// Pass a number without an exponent.
    fn number(&mut self) -> Option<()> {
        if self.peek()? == b'-' {
            self.at += 1;
        }
        let first = self.peek()?;
        let whole = self.digits();
        (1..=MOST_DIGITS).contains(&whole).then_some(())?;
        (whole == 1 || first != b'0').then_some(())?;
        if self.peek() == Some(b'.') {
            self.at += 1;
            (1..=MOST_DIGITS).contains(&self.digits()).then_some(())?;
        }
        (!matches!(self.peek(), Some(b'e' | b'E'))).then_some(())
    }
}

/// Return what a string of JSON says; None if that has a lone surrogate.
fn unescaped(raw: &str) -> Option<Cow<'_, str>> {
    let mut parts = raw.split('\\');
    let first = parts.next()?;
    if first.len() == raw.len() {
        return Some(Cow::Borrowed(raw));
    }
    let mut said = String::with_capacity(raw.len());
    said.push_str(first);
    let mut high = None;
    while let Some(part) = parts.next() {
        let Some(kind) = part.chars().next() else {
            // A backslash that is escaped; what comes until the next one is plain.
            (high.is_none()).then_some(())?;
            said.push('\\');
            said.push_str(parts.next()?);
            continue;
        };
        let (escaped, rest) = match kind {
            'u' => (u32::from_str_radix(&part[1..5], 16).ok()?, &part[5..]),
            'b' => (8, &part[1..]),
            'f' => (12, &part[1..]),
            'n' => (10, &part[1..]),
            'r' => (13, &part[1..]),
            't' => (9, &part[1..]),
            other => (u32::from(other), &part[1..]),
        };
        let escaped = match (high.take(), escaped) {
            (None, 0xD800..0xDC00) if rest.is_empty() => {
                high = Some(escaped);
                continue;
            }
            (Some(high), 0xDC00..0xE000) => 0x10000 + ((high - 0xD800) << 10) + (escaped - 0xDC00),
            (Some(_), _) => return None,
            (None, other) => other,
        };
        said.push(char::from_u32(escaped)?);
        said.push_str(rest);
    }
    high.is_none().then_some(Cow::Owned(said))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(payload: &str) -> Option<(Option<String>, String)> {
        read(payload.as_bytes(), "id", "text")
            .map(|found| (found.id.map(Cow::into_owned), found.text.into_owned()))
    }

    #[test]
    fn an_object_is_read() {
        let found = Some((Some("a".into()), "b".into()));
        assert_eq!(plain(r#"{"id":"a","text":"b"}"#), found);
        let others = r#" { "n" : -1.50 , "o" : {"text":[1, {}, [ ]], "x":""}, "text" : "b",
            "id" : "a", "t" : [true,false,null] } "#;
        assert_eq!(plain(others), found);
        assert_eq!(plain(r#"{"text":"b"}"#), Some((None, "b".into())));
    }

    #[test]
    fn escapes_are_undone() {
        let said = |raw: &str| plain(&format!(r#"{{"text":"{raw}"}}"#)).map(|(_, text)| text);
        assert_eq!(said(r#"a\"b\\c\/\b\f\n\r\td"#).unwrap(), "a\"b\\c/\u{8}\u{c}\n\r\td");
        assert_eq!(said(r"\\\\n\\").unwrap(), r"\\n\");
        assert_eq!(said(r"\u00e4\u20AC\ud83d\ude00!").unwrap(), "\u{e4}\u{20ac}\u{1f600}!");
        for lone in [r"\ud83d", r"\ud83dx", r"\ude00", r"\ud83d\u0041", r"\ud83d\\", r"\ud83d\n"] {
            assert_eq!(said(lone), None, "{lone}");
        }
    }

    #[test]
    fn everything_else_is_left() {
        for payload in [
            "",
            "{",
            "}",
            "[]",
            "null",
            "{}",
            r#"{"id":"a"}"#,
            r#"{"text":"b"} x"#,
            r#"{"text":1}"#,
            r#"{"text":null}"#,
            r#"{"id":1,"text":"b"}"#,
            r#"{"text":"b","text":"c"}"#,
            r#"{"id":"a","id":"a","text":"b"}"#,
            r#"{"te\u0078t":"b"}"#,
            r#"{"text":"b",}"#,
            r#"{"text" "b"}"#,
            r#"{"text":"b" "id":"a"}"#,
            "{\"text\":\"a\nb\"}",
            r#"{"text":"\x"}"#,
            r#"{"text":"\u12g4"}"#,
            r#"{"text":"b","n":01}"#,
            r#"{"text":"b","n":1e5}"#,
            r#"{"text":"b","n":1.}"#,
            r#"{"text":"b","n":-}"#,
            r#"{"text":"b","n":.5}"#,
            r#"{"text":"b","n":1234567890123456789}"#,
            r#"{"text":"b","n":nul}"#,
            r#"{"text":"b","n":[1,]}"#,
            r#"{"text":"b","n":NaN}"#,
            "\u{feff}{\"text\":\"b\"}",
        ] {
            assert_eq!(plain(payload), None, "{payload}");
        }
        assert_eq!(read(b"{\"text\":\"\xff\"}", "id", "text"), None);
    }

    #[test]
    fn what_is_nested_too_deeply_is_left() {
        let nested = |depth: usize| {
            plain(&format!(r#"{{"n":{}{},"text":"b"}}"#, "[".repeat(depth), "]".repeat(depth)))
        };
        assert!(nested(DEEPEST - 2).is_some());
        assert!(nested(DEEPEST).is_none());
        assert!(nested(1_000_000).is_none());
    }
}
