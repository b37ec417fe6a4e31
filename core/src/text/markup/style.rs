//! Whether a style attribute hides an element: `display: none`, and nothing else.

use super::references;
use super::tokens::is_space;

/// How the values begin that browsers know for `display`, other than `none`.
const DISPLAYS: [&[u8]; 15] = [
    b"block",
    b"contents",
    b"flex",
    b"flow",
    b"grid",
    b"inherit",
    b"initial",
    b"inline",
    b"list-item",
    b"math",
    b"revert",
    b"ruby",
    b"run-in",
    b"table",
    b"unset",
];

/// Return whether a style has its element displayed; None if it says nothing of it.
pub fn shows(style: &[u8]) -> Option<bool> {
    let style = plain(style);
    let mut last = None;
    let mut is_important = false;
    for declaration in style.split(|&byte| byte == b';') {
        let Some(colon) = declaration.iter().position(|&byte| byte == b':') else { continue };
        if trimmed(&declaration[..colon]) != b"display" {
            continue;
        }
        let value = trimmed(&declaration[colon + 1..]);
        let important = value.strip_suffix(b"important").map(trimmed);
        let important = important.and_then(|value| value.strip_suffix(b"!"));
        let (value, important) = important.map_or((value, false), |value| (trimmed(value), true));
        let shows = value != b"none";
        let is_known = !shows || DISPLAYS.iter().any(|known| value.starts_with(known));
        if is_known && (important || !is_important) {
            (last, is_important) = (Some(shows), important);
        }
    }
    last
}

/// Return a style in lower case, without comments, and with references and escapes resolved.
fn plain(style: &[u8]) -> Vec<u8> {
    let mut resolved = Vec::with_capacity(style.len());
    references::append(style, true, &mut resolved);
    let mut plain = Vec::with_capacity(resolved.len());
    let mut at = 0;
    while let Some(&byte) = resolved.get(at) {
        let rest = &resolved[at..];
        at += 1;
        if rest.starts_with(b"/*") {
            let end = memchr::memmem::find(&rest[2..], b"*/");
            at += end.map_or(rest.len(), |end| end + 3);
        } else if byte == b'\\' {
            let digits = rest[1..].iter().take(6).take_while(|digit| digit.is_ascii_hexdigit());
            let digits = digits.count();
            let number = rest[1..1 + digits].iter().fold(0, |number, &digit| {
                number * 16 + char::from(digit).to_digit(16).unwrap_or(0)
            });
            if digits > 0 {
                at += digits;
                at += usize::from(resolved.get(at).is_some_and(|&byte| is_space(byte)));
                // What isn't ASCII is part of no name that counts.
                plain.push(u8::try_from(number).unwrap_or(0xFF).to_ascii_lowercase());
            }
        } else {
            plain.push(byte.to_ascii_lowercase());
        }
    }
    plain
}

fn trimmed(text: &[u8]) -> &[u8] {
    let begin = text.iter().position(|&byte| !is_space(byte)).unwrap_or(text.len());
    let end = text.iter().rposition(|&byte| !is_space(byte)).map_or(begin, |last| last + 1);
    &text[begin..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_hides() {
        for (style, expected) in [
            ("display:none", Some(false)),
            ("color: red; DISPLAY : None ! important ; x", Some(false)),
            ("display:block", Some(true)),
            ("display:none;display:inline-block", Some(true)),
            ("display:none!important;display:block", Some(false)),
            ("display:none;display:nothing", Some(false)),
            ("dis/**/play:none", Some(false)),
            ("d\\69 splay&colon;no&#110e", Some(false)),
            ("dis\\play:none", Some(false)),
            ("-display:none;background:red", None),
            ("/*", None),
        ] {
            assert_eq!(shows(style.as_bytes()), expected, "{style}");
        }
    }
}
