//! UTF-8 in which lone surrogates may be encoded, as Python's `surrogatepass` writes it.

/// By the highest five bits of its first byte: the bytes of a code point.
const SIZES: [u8; 32] = {
    let mut sizes = [1; 32];
    sizes[0b11000] = 2;
    sizes[0b11001] = 2;
    sizes[0b11010] = 2;
    sizes[0b11011] = 2;
    sizes[0b11100] = 3;
    sizes[0b11101] = 3;
    sizes[0b11110] = 4;
    sizes[0b11111] = 4;
    sizes
};
/// By the number of bytes: the bits of the first that count, and how far all are shifted.
const MASKS: [u32; 5] = [0, 0x7F, 0x1F, 0x0F, 0x07];
const SHIFTS: [u32; 5] = [0, 18, 12, 6, 0];
const LAST: u32 = 0x10_FFFF;
const STEP: usize = 16;

/// Replace `points` by the code points of `text`.
///
/// What isn't UTF-8 gives code points of some kind.
pub fn decode(text: &[u8], points: &mut Vec<u32>) {
    points.clear();
    points.reserve(text.len() + STEP);
    let mut at = 0;
    while let Some(bytes) = text[at..].first_chunk::<STEP>() {
        if bytes.is_ascii() {
            points.extend(bytes.iter().map(|&byte| u32::from(byte)));
            at += STEP;
            continue;
        }
        // Four code points have at most as many bytes as there are.
        let mut place = 0;
        let four = std::array::from_fn::<u32, 4, _>(|_| {
            let (point, size) =
                point_of([bytes[place], bytes[place + 1], bytes[place + 2], bytes[place + 3]]);
            place += size;
            point
        });
        points.extend(four);
        at += place;
    }
    while at < text.len() {
        let mut bytes = [0; 4];
        let left = text.len().min(at + 4) - at;
        bytes[..left].copy_from_slice(&text[at..at + left]);
        let (point, size) = point_of(bytes);
        points.push(point);
        at += size;
    }
}

/// Return the first code point of four bytes, and its size. No branch depends on the text.
#[inline(always)]
fn point_of(bytes: [u8; 4]) -> (u32, usize) {
    let [first, second, third, fourth] = bytes.map(u32::from);
    let size = SIZES[(first >> 3) as usize] as usize;
    let whole = (first & MASKS[size]) << 18 | (second & 63) << 12 | (third & 63) << 6 | fourth & 63;
    ((whole >> SHIFTS[size]).min(LAST), size)
}

/// Return the first code point of a text, and its size; None if the text is empty.
#[inline(always)]
pub fn first(text: &[u8]) -> Option<(u32, usize)> {
    let &byte = text.first()?;
    if byte < 0x80 {
        return Some((byte.into(), 1));
    }
    let mut bytes = [0; 4];
    let left = text.len().min(4);
    bytes[..left].copy_from_slice(&text[..left]);
    let (point, size) = point_of(bytes);
    Some((point, size.min(text.len())))
}

/// Return the last code point of a text that isn't empty.
pub fn last(text: &[u8]) -> u32 {
    let begin = text.len().saturating_sub(4);
    let is_lead = |byte: &u8| byte & 0xC0 != 0x80;
    let lead = text[begin..].iter().rposition(is_lead).unwrap_or(0);
    first(&text[begin + lead..]).map_or(0, |(point, _)| point)
}

/// Append code points, which may be lone surrogates, in UTF-8.
pub fn encode(points: &[u32], text: &mut Vec<u8>) {
    for &point in points {
        match point {
            0..0x80 => text.push(point as u8),
            0x80..0x800 => text.extend([0xC0 | (point >> 6) as u8, last_bits(point)]),
            0x800..0x1_0000 => {
                text.extend([0xE0 | (point >> 12) as u8, last_bits(point >> 6), last_bits(point)])
            }
            _ => text.extend([
                0xF0 | (point >> 18) as u8,
                last_bits(point >> 12),
                last_bits(point >> 6),
                last_bits(point),
            ]),
        }
    }
}

fn last_bits(point: u32) -> u8 {
    0x80 | (point & 63) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_point_comes_back() {
        let points: Vec<u32> = (0..=LAST).collect();
        let (mut text, mut decoded) = (Vec::new(), Vec::new());
        encode(&points, &mut text);
        decode(&text, &mut decoded);
        assert!(decoded == points);
        for point in [0x41, 0xE9, 0x4E2D, 0xD800, 0x1F600] {
            text.clear();
            encode(&[point], &mut text);
            decode(&text, &mut decoded);
            assert_eq!(decoded, [point]);
        }
    }

    #[test]
    fn other_bytes_give_code_points() {
        let mut points = Vec::new();
        for bytes in [&[0xFF; 40][..], &[0x80, 0xC3], &[0xF7, 0xBF, 0xBF, 0xBF], &[0xE4, 0xB8]] {
            decode(bytes, &mut points);
            assert!(!points.is_empty() && points.iter().all(|&point| point <= LAST));
        }
    }
}
