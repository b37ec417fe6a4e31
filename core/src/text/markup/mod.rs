//! What a text is wrapped in, taken off at a switch, before anything else.
//!
//! `strip_html`: a text that has markup is read as a browser reads a page: what it shows is the text.
//! Elements that begin a line or cell become a space, or a line break if lines are compared with a
//! list. Others vanish, so `v<b>i</b>agra` is one word. In other texts, such as one with `i<n` and
//! `m>0`, angle brackets stay, and only character references are resolved. See `tokens`, `shown`
//! and `references`.
//!
//! `reduce_urls`: web addresses become their hosts. See `addresses`.
//!
//! The work is linear in the size of the text.

mod addresses;
mod elements;
mod entities;
pub mod references;
pub mod shown;
mod style;
pub mod tokens;

use memchr::{memchr, memchr_iter, memchr2};

use super::Switches;
use tokens::{is_space, spaces};

const CDATA: &[u8] = b"<![CDATA[";
const CDATA_END: &[u8] = b"]]>";

/// Take off what a text is wrapped in, by the switches.
///
/// between: what stands where a line or cell begins or ends.
pub fn unwrap(text: &mut Vec<u8>, switches: &Switches, between: u8) {
    if switches.strip_html {
        strip_html(text, between);
    }
    if switches.reduce_urls
        && let Some(reduced) = addresses::with_hosts(text)
    {
        *text = reduced;
    }
}

fn strip_html(text: &mut Vec<u8>, between: u8) {
    let inside = in_cdata(text);
    if has_markup(inside) {
        *text = shown::text_of(inside, between);
    } else if memchr(b'&', text).is_some() || inside.len() < text.len() {
        let mut resolved = Vec::with_capacity(inside.len());
        references::append(inside, false, &mut resolved);
        *text = resolved;
    }
}

/// Return what is in the CDATA section that the whole text is, as feeds have it; else the text.
fn in_cdata(text: &[u8]) -> &[u8] {
    let inside = text[spaces(text)..].strip_prefix(CDATA);
    let end = text.iter().rposition(|&byte| !is_space(byte)).map_or(0, |last| last + 1);
    let inside = inside.and_then(|inside| {
        let behind = text.len() - end;
        inside.get(..inside.len().checked_sub(behind)?)?.strip_suffix(CDATA_END)
    });
    inside.unwrap_or(text)
}

/// Return whether a text has anything that only markup has.
///
/// That is a comment, an end tag, declaration or instruction that is closed before the next `<`, or
/// a start tag of which every attribute has a value. `a<b and c>d` has none, nor has
/// `<me@example.org>`. No attempt to match a tag passes a `<` outside of quotes. From different
/// beginnings, attempts never agree on what is inside of single quotes, double quotes or none, so at
/// most three of them pass the same place.
fn has_markup(text: &[u8]) -> bool {
    memchr_iter(b'<', text).any(|at| match &text[at + 1..] {
        [b'!', b'-', b'-', ..] => true,
        rest @ [b'!' | b'/' | b'?', ..] => {
            memchr2(b'<', b'>', rest).is_some_and(|end| rest[end] == b'>')
        }
        rest @ [b'a'..=b'z' | b'A'..=b'Z', ..] => is_start_tag(rest),
        _ => false,
    })
}

/// Return whether there are a name and attributes with values, up to `>`.
fn is_start_tag(mut rest: &[u8]) -> bool {
    let is_of_name = |&byte: &u8| byte.is_ascii_alphanumeric() || b"_.:-".contains(&byte);
    rest = after(rest, |byte| is_of_name(&byte));
    loop {
        let inside = after(rest, |byte| is_space(byte) || byte == b'/');
        if inside.first() == Some(&b'>') {
            return true;
        }
        let value = after(inside, |byte| !is_space(byte) && !b"\"'<>/=".contains(&byte));
        if inside.len() == rest.len() || value.len() == inside.len() {
            return false;
        }
        let Some(value) = after(value, is_space).strip_prefix(b"=") else { return false };
        let value = after(value, is_space);
        rest = match value {
            [quote @ (b'"' | b'\''), inside @ ..] => match memchr(*quote, inside) {
                Some(end) => &inside[end + 1..],
                None => return false,
            },
            _ => after(value, |byte| !is_space(byte) && !b"\"'<>".contains(&byte)),
        };
        if rest.len() == value.len() {
            return false;
        }
    }
}

/// Return what is behind the bytes of a kind.
fn after(text: &[u8], is_of_kind: impl Fn(u8) -> bool) -> &[u8] {
    &text[text.iter().position(|&byte| !is_of_kind(byte)).unwrap_or(text.len())..]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unwrapped(text: &str) -> String {
        let switches = Switches { strip_html: true, reduce_urls: true, ..Switches::default() };
        let mut text = text.as_bytes().to_vec();
        unwrap(&mut text, &switches, b' ');
        String::from_utf8_lossy(&text).into_owned()
    }

    #[test]
    fn html_becomes_text() {
        for (text, expected) in [
            ("<p>v<b>i</b>agra</p>", " viagra "),
            ("\n<![CDATA[<b>x</b> & y]]> ", "x & y"),
            ("<![CDATA[x&lt]]>", "x<"),
            ("a<![CDATA[x]]>c", "ac"),
            ("<![CDATA[ <b>x", "x"),
            ("<script>x > y</script>z<!-- c -->", "z"),
            ("see http://u@example.org/a?b <br/> now", "see example.org   now"),
        ] {
            assert_eq!(unwrapped(text), expected, "{text}");
        }
    }

    #[test]
    fn texts_without_markup_stay() {
        for text in [
            "i<n && m>0",
            "a<b and c>d",
            "<me@example.org> <https://example.org/> <3 </3",
            "a <b c= > <b c='d> </b <",
            "<b c='d'e=f>",
            "< b> <> <1>",
        ] {
            assert!(!has_markup(text.as_bytes()), "{text}");
        }
        assert_eq!(unwrapped("i<n &lt;b&gt;"), "i<n <b>");
        for text in ["<b>", "<x y=1 z = '>'/>", "</b c>", "<!x>", "<?x>", "</>", "<!--", "<a-b>"] {
            assert!(has_markup(text.as_bytes()), "{text}");
        }
    }
}
