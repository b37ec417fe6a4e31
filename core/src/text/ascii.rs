//! Normal forms of ASCII, which NFKC doesn't change.

use super::Switches;

/// Bytes at a time.
const BLOCK: usize = 64;
const DELETE: u8 = 0x7F;

/// Append the normal form of ASCII, apart from what stands between letters.
pub fn fold(text: &[u8], switches: &Switches, out: &mut Vec<u8>) {
    out.reserve(text.len());
    let begin = out.len();
    let mut rest = text;
    // Each byte is compared with the next one, so a block has one byte more.
    while let Some(block) = rest.first_chunk::<{ BLOCK + 1 }>() {
        if !fold_block(block, switches, begin, out) {
            fold_bytes(&block[..BLOCK], switches, begin, out);
        }
        rest = &rest[BLOCK..];
    }
    fold_bytes(rest, switches, begin, out);
    if switches.collapse_whitespace && out.len() > begin && out.last() == Some(&b' ') {
        out.pop();
    }
}

/// Fold a block in which nothing is dropped, and the byte behind it is no space behind a space.
///
/// Return false if that isn't so. There are no branches inside, so it is compiled to vector
/// instructions.
#[inline(always)]
fn fold_block(
    bytes: &[u8; BLOCK + 1],
    switches: &Switches,
    begin: usize,
    out: &mut Vec<u8>,
) -> bool {
    let [block @ .., _] = bytes;
    let [_, next @ ..] = bytes;
    let mut found = 0;
    for byte in block {
        found |= u8::from(*byte < b' ') | u8::from(*byte == DELETE);
    }
    if switches.collapse_whitespace {
        for (byte, after) in block.iter().zip(next) {
            found |= u8::from(*byte == b' ') & u8::from(*after == b' ');
        }
        let after_space = out.len() == begin || out.last() == Some(&b' ');
        found |= u8::from(after_space & (block[0] == b' '));
    }
    if found != 0 {
        return false;
    }
    let mut folded = *block;
    if switches.casefold {
        for byte in &mut folded {
            *byte |= u8::from(byte.wrapping_sub(b'A') < 26) << 5;
        }
    }
    if switches.fold_digits {
        for byte in &mut folded {
            *byte = if byte.wrapping_sub(b'0') < 10 { b'0' } else { *byte };
        }
    }
    out.extend_from_slice(&folded);
    true
}

/// Fold bytes one by one: the plain version of `fold_block`, which also drops.
fn fold_bytes(text: &[u8], switches: &Switches, begin: usize, out: &mut Vec<u8>) {
    for &byte in text {
        let is_space = matches!(byte, 0x09..=0x0D | 0x1C..=0x20);
        let is_control = !is_space && (byte < b' ' || byte == DELETE);
        if is_control && switches.drop_invisible {
            continue;
        }
        if is_space && switches.collapse_whitespace {
            if out.len() > begin && out.last() != Some(&b' ') {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn both(text: &[u8], switches: &Switches) -> (Vec<u8>, Vec<u8>) {
        let (mut blocks, mut bytes) = (Vec::new(), Vec::new());
        fold(text, switches, &mut blocks);
        fold_bytes(text, switches, 0, &mut bytes);
        if switches.collapse_whitespace && bytes.last() == Some(&b' ') {
            bytes.pop();
        }
        (blocks, bytes)
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
            let (blocks, bytes) = both(&text, &switches);
            assert_eq!(blocks, bytes, "{text:?}");
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
            assert_eq!(both(text, &switches).0, expected);
        }
    }
}
