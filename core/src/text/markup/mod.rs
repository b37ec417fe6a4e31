//! What a text is wrapped in, taken off at a switch, before anything else.
//!
//! `strip_html`: comments, declarations and tags are dropped, and scripts and styles with what is in
//! them; then character references are resolved, once. Tags that begin a new line or cell become a
//! space, or a line break if lines are compared with a list. Others, such as `<b>`, vanish, so
//! `v<b>i</b>agra` is one word. See `tags`, `unshown` and `references`.
//!
//! `reduce_urls`: web addresses become their hosts. See `addresses`.
//!
//! The work is linear in the size of the text. No attempt to match a tag passes a `<` outside of
//! quotes. From different beginnings, attempts never agree on what is inside of single quotes,
//! double quotes or none, so at most three of them pass the same place. The end of a comment or an
//! element is looked for only if there is one.

mod addresses;
mod elements;
mod entities;
mod references;
mod tags;
mod unshown;

use memchr::{memchr, memmem};

use super::Switches;

const CDATA: &[u8] = b"<![CDATA[";
const CDATA_END: &[u8] = b"]]>";

/// Take off what a text is wrapped in, by the switches.
///
/// between: what stands in place of a tag that begins a new line or cell.
pub fn unwrap(text: &mut Vec<u8>, switches: &Switches, between: u8) {
    if switches.strip_html {
        strip_html(text, between);
    }
    if switches.reduce_urls {
        replace(text, addresses::with_hosts);
    }
}

fn strip_html(text: &mut Vec<u8>, between: u8) {
    if memchr(b'>', text).is_some() {
        replace(text, without_cdata);
        replace(text, unshown::without);
        replace(text, |text| tags::without(text, between));
    }
    replace(text, references::resolved);
}

/// Replace a text by what a step makes of it; None if that is the text itself.
fn replace(text: &mut Vec<u8>, step: impl Fn(&[u8]) -> Option<Vec<u8>>) {
    if let Some(replaced) = step(text) {
        *text = replaced;
    }
}

/// Return `text` with what is in CDATA sections without their marks; None if there are none.
fn without_cdata(text: &[u8]) -> Option<Vec<u8>> {
    let mut kept = None;
    let mut done = 0;
    while let Some(begin) = memmem::find(&text[done..], CDATA) {
        let begin = done + begin;
        let inside = begin + CDATA.len();
        let Some(length) = memmem::find(&text[inside..], CDATA_END) else {
            break;
        };
        let kept = kept.get_or_insert_with(Vec::new);
        kept.extend_from_slice(&text[done..begin]);
        kept.extend_from_slice(&text[inside..inside + length]);
        done = inside + length + CDATA_END.len();
    }
    finished(kept, &text[done..])
}

/// Return what was kept, if anything was dropped, and the rest.
fn finished(kept: Option<Vec<u8>>, rest: &[u8]) -> Option<Vec<u8>> {
    kept.map(|mut kept| {
        kept.extend_from_slice(rest);
        kept
    })
}

/// White space, as HTML has it.
#[inline(always)]
const fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | 0x09..=0x0D)
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
            ("a<![CDATA[<b>x</b>]]>c<![CDATA[", "axc<![CDATA["),
            ("<script>x > y</script>z<!-- c -->", " z"),
            ("i<n && m>0 &lt;b&gt;", "i<n && m>0 <b>"),
            ("see http://u@example.org/a?b <br/> now", "see example.org   now"),
        ] {
            assert_eq!(unwrapped(text), expected);
        }
    }
}
