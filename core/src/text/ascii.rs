//! Normal forms of ASCII, which NFKC doesn't change.

use super::Switches;
use crate::vectors::vectorised;

/// Bytes at a time.
const BLOCK: usize = 64;
const DELETE: u8 = 0x7F;

vectorised! {
    /// Replace `out` by the normal form of ASCII, apart from what stands between letters.
    pub fn fold(text: &[u8], switches: &Switches, out: &mut Vec<u8>) {
        out.clear();
        out.reserve(text.len());
        let mut rest = text;
        // Each byte is compared with the next one, so a block has one byte more.
        while let Some(bytes) = rest.first_chunk() {
            fold_block(bytes, BLOCK, switches, out);
            rest = &rest[BLOCK..];
        }
        if !rest.is_empty() {
            let mut last = [b'.'; BLOCK + 1];
            last[..rest.len()].copy_from_slice(rest);
            fold_block(&last, rest.len(), switches, out);
        }
        if switches.collapse_whitespace && out.last() == Some(&b' ') {
            out.pop();
        }
    }
}

/// Append the form of the first `count` bytes of a block, which has one byte more.
///
/// Loops without branches are compiled to vector instructions.
#[inline(always)]
fn fold_block(bytes: &[u8; BLOCK + 1], count: usize, switches: &Switches, out: &mut Vec<u8>) {
    let [block @ .., _] = bytes;
    let [_, next @ ..] = bytes;
    let controls = block.iter().fold(0, |any, &byte| any | u8::from(is_control(byte)));
    if controls != 0 && switches.drop_invisible {
        return fold_bytes(&block[..count], switches, out);
    }
    let case = if switches.casefold { 0x20 } else { 0 };
    let digits = if switches.fold_digits { !0x0F } else { !0 };
    let mut folded = [0; BLOCK];
    for (folded, &byte) in folded.iter_mut().zip(block) {
        *folded = match byte {
            b'A'..=b'Z' => byte | case,
            b'0'..=b'9' => byte & digits,
            _ if switches.collapse_whitespace & is_space(byte) => b' ',
            _ => byte,
        };
    }
    if switches.collapse_whitespace {
        let mut runs = u8::from(is_space(block[0]) & is_after_space(out));
        for (&byte, &after) in block.iter().zip(next) {
            runs |= u8::from(is_space(byte) & is_space(after));
        }
        if runs != 0 {
            return append_without_runs(&mut folded[..count], out);
        }
    }
    out.extend_from_slice(&folded[..count]);
}

/// Append bytes without spaces behind spaces. No branch depends on them.
#[inline(always)]
fn append_without_runs(bytes: &mut [u8], out: &mut Vec<u8>) {
    let mut after_space = is_after_space(out);
    let mut kept = 0;
    for at in 0..bytes.len() {
        let byte = bytes[at];
        bytes[kept] = byte;
        kept += usize::from(!(after_space & (byte == b' ')));
        after_space = byte == b' ';
    }
    out.extend_from_slice(&bytes[..kept]);
}

/// Fold bytes one by one: the plain version of `fold_block`, which also drops control characters.
fn fold_bytes(text: &[u8], switches: &Switches, out: &mut Vec<u8>) {
    for &byte in text {
        if is_control(byte) && switches.drop_invisible {
            continue;
        }
        if is_space(byte) && switches.collapse_whitespace {
            if !is_after_space(out) {
                out.push(b' ');
            }
            continue;
        }
        out.push(match byte {
            b'A'..=b'Z' if switches.casefold => byte | 0x20,
            b'0'..=b'9' if switches.fold_digits => b'0',
            _ => byte,
        });
    }
}

/// Return whether a space would be dropped behind what there is.
fn is_after_space(out: &[u8]) -> bool {
    matches!(out.last(), None | Some(b' '))
}

#[inline(always)]
fn is_space(byte: u8) -> bool {
    byte.wrapping_sub(0x09) < 5 || byte.wrapping_sub(0x1C) < 5
}

/// Return whether a byte is a control character, and no white space.
#[inline(always)]
fn is_control(byte: u8) -> bool {
    !is_space(byte) && (byte < b' ' || byte == DELETE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vectors::tests::with_each_vectors;

    /// Return the normal form, and assert that each kind of vectors gives the same.
    fn folded(text: &[u8], switches: &Switches) -> Vec<u8> {
        let mut bytes = Vec::new();
        fold_bytes(text, switches, &mut bytes);
        if switches.collapse_whitespace && bytes.last() == Some(&b' ') {
            bytes.pop();
        }
        with_each_vectors(|| {
            let mut blocks = vec![b'x'];
            fold(text, switches, &mut blocks);
            assert_eq!(blocks, bytes, "{text:?}");
        });
        bytes
    }

    #[test]
    fn blocks_are_folded_as_bytes_are() {
        // A generator of Lehmer gives texts of letters, digits, white space and controls.
        let mut state = 1u64;
        for round in 0..4_000 {
            let text: Vec<u8> = (0..round % 150)
                .map(|_| {
                    state = state.wrapping_mul(48_271) % 0x7FFF_FFFF;
                    match state % 37 {
                        0 if round % 3 == 0 => (state >> 8) as u8 & 0x7F,
                        1..=6 => b' ',
                        _ => b'0' + (state >> 8) as u8 % 75,
                    }
                })
                .collect();
            let switches = Switches {
                casefold: round & 1 != 0,
                collapse_whitespace: round & 2 != 0,
                drop_invisible: round & 4 != 0,
                fold_digits: round & 8 != 0,
                ..Switches::default()
            };
            folded(&text, &switches);
        }
    }

    #[test]
    fn white_space_collapses_and_controls_go() {
        let switches = Switches {
            casefold: true,
            collapse_whitespace: true,
            drop_invisible: true,
            ..Switches::default()
        };
        for (text, expected) in [
            (&b"  A\0b\t\n c  "[..], &b"ab c"[..]),
            (b"", b""),
            (b" \x1f ", b""),
            (b"x\0 \0 y", b"x y"),
        ] {
            assert_eq!(folded(text, &switches), expected);
        }
    }
}
