//! UTF-8 in which lone surrogates may be encoded, as Python's `surrogatepass` writes it.

use super::unicode::size_in_utf8;
use crate::vectors::vectorised;

const LAST: u32 = 0x10_FFFF;
/// Bytes, or code points, that are looked at together,
const BLOCK: usize = 64;
/// and the bytes that code points may have which begin in a block.
const REACH: usize = BLOCK + 3;
/// Code points that are decoded together.
const LANES: usize = 16;
/// A byte that goes on with a code point.
const FOLLOWING: u8 = 0x80;
/// The highest bit of each byte of a word.
const HIGHEST: u64 = 0x8080_8080_8080_8080;

vectorised! {
    /// Replace `points` by the code points of `text`.
    ///
    /// What isn't UTF-8 gives code points of some kind, or none.
    pub fn decode(text: &[u8], points: &mut Vec<u32>) {
        points.clear();
        points.reserve(text.len());
        let mut rest = text;
        while !rest.is_empty() {
            match rest.first_chunk() {
                Some(bytes) => decode_block(bytes, points),
                None => {
                    let mut bytes = [FOLLOWING; REACH];
                    bytes[..rest.len()].copy_from_slice(rest);
                    decode_block(&bytes, points);
                }
            }
            rest = rest.get(BLOCK..).unwrap_or_default();
        }
    }
}

/// Append the code points that begin in a block.
///
/// First they are found, then all are decoded: no step waits for the size of the one before.
#[inline(always)]
fn decode_block(bytes: &[u8; REACH], points: &mut Vec<u32>) {
    let block = &bytes[..BLOCK];
    if block.is_ascii() {
        points.extend(block.iter().map(|&byte| u32::from(byte)));
        return;
    }
    let mut leads = leads(block);
    let count = leads.count_ones() as usize;
    let mut found = [[0; 4]; BLOCK];
    for four in &mut found[..count] {
        let place = leads.trailing_zeros() as usize % BLOCK;
        four.copy_from_slice(&bytes[place..place + 4]);
        leads &= leads.wrapping_sub(1);
    }
    let mut decoded = [0; BLOCK];
    let whole = count.next_multiple_of(LANES);
    for (point, four) in decoded[..whole].iter_mut().zip(&found) {
        *point = point_of(*four);
    }
    points.extend_from_slice(&decoded[..count]);
}

/// Return a bit for each byte that doesn't go on with a code point. Those have the form 10xxxxxx.
#[inline(always)]
fn leads(block: &[u8]) -> u64 {
    let mut leads = 0;
    for (number, word) in block.chunks_exact(8).enumerate() {
        let bits = u64::from_le_bytes(word.try_into().expect("a word's bytes"));
        let highest = !(bits & !(bits << 1)) & HIGHEST;
        // The product gathers the highest bit of each byte in the last byte.
        let gathered = (highest >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56;
        leads |= gathered << (8 * number);
    }
    leads
}

/// Return the first code point of four bytes. No branch depends on the text.
#[inline(always)]
fn point_of(bytes: [u8; 4]) -> u32 {
    let [first, second, third, fourth] = bytes.map(u32::from);
    let (second, third, fourth) = (second & 63, third & 63, fourth & 63);
    let point = match first {
        0..0xC0 => first & 0x7F,
        0xC0..0xE0 => (first & 0x1F) << 6 | second,
        0xE0..0xF0 => (first & 0x0F) << 12 | second << 6 | third,
        _ => (first & 0x07) << 18 | second << 12 | third << 6 | fourth,
    };
    point.min(LAST)
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
    let size = match byte {
        0..0xC0 => 1,
        0xC0..0xE0 => 2,
        0xE0..0xF0 => 3,
        _ => 4,
    };
    Some((point_of(bytes), left.min(size)))
}

/// Return the last code point of a text that isn't empty.
pub fn last(text: &[u8]) -> u32 {
    let begin = text.len().saturating_sub(4);
    let is_lead = |byte: &u8| byte & 0xC0 != 0x80;
    let lead = text[begin..].iter().rposition(is_lead).unwrap_or(0);
    first(&text[begin + lead..]).map_or(0, |(point, _)| point)
}

vectorised! {
    /// Append code points, which may be lone surrogates, in UTF-8.
    pub fn encode(points: &[u32], text: &mut Vec<u8>) {
        let (mut encoded, mut sizes) = ([[0; 4]; BLOCK], [0; BLOCK]);
        for block in points.chunks(BLOCK) {
            for ((bytes, size), &point) in encoded.iter_mut().zip(&mut sizes).zip(block) {
                *bytes = bytes_of(point);
                *size = size_in_utf8(point) as u8;
            }
            let mut end = text.len();
            // Four bytes are written for each, whatever its size.
            text.resize(end + 4 * block.len(), 0);
            for (bytes, &size) in encoded.iter().zip(&sizes).take(block.len()) {
                text[end..end + 4].copy_from_slice(bytes);
                end += usize::from(size);
            }
            text.truncate(end);
        }
    }
}

/// Return the bytes of a code point, and what follows to make four. No branch depends on it.
#[inline(always)]
fn bytes_of(point: u32) -> [u8; 4] {
    let last_bits = |point: u32| 0x80 | point & 63;
    let (last, second, third) = (last_bits(point), last_bits(point >> 6), last_bits(point >> 12));
    let bytes = match point {
        0..0x80 => point,
        0x80..0x800 => 0xC0 | point >> 6 | last << 8,
        0x800..0x1_0000 => 0xE0 | point >> 12 | second << 8 | last << 16,
        _ => 0xF0 | point >> 18 | third << 8 | second << 16 | last << 24,
    };
    bytes.to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vectors::tests::with_each_vectors;

    fn encoded(points: &[u32]) -> Vec<u8> {
        let mut text = Vec::new();
        encode(points, &mut text);
        text
    }

    fn decoded(text: &[u8]) -> Vec<u32> {
        let mut points = vec![7];
        decode(text, &mut points);
        points
    }

    #[test]
    fn every_code_point_comes_back() {
        let points: Vec<u32> = (0..=LAST).collect();
        let valid: String = points.iter().copied().filter_map(char::from_u32).collect();
        let chars: Vec<u32> = valid.chars().map(u32::from).collect();
        with_each_vectors(|| {
            assert!(decoded(&encoded(&points)) == points);
            assert!(encoded(&chars) == valid.as_bytes());
        });
    }

    #[test]
    fn a_text_may_end_anywhere() {
        let all: Vec<u32> = [0x41, 0xE9, 0x4E2D, 0xD800, 0x1F600].repeat(60);
        with_each_vectors(|| {
            for begin in 0..5 {
                for end in begin..all.len() {
                    let points = &all[begin..end];
                    assert_eq!(decoded(&encoded(points)), points);
                }
            }
        });
    }

    #[test]
    fn other_bytes_give_code_points() {
        for bytes in [&[0xFF; 80][..], &[0x80, 0xC3], &[0xF7, 0xBF, 0xBF, 0xBF], &[0xE4, 0xB8]] {
            assert!(decoded(bytes).iter().all(|&point| point <= LAST));
        }
    }
}
