//! UTF-8 in which lone surrogates may be encoded, as Python's `surrogatepass` writes it.

/// What a first byte says of a code point.
#[derive(Clone, Copy)]
struct Lead {
    /// The bytes of the code point.
    size: u8,
    /// How far the bits of four bytes are shifted.
    shift: u8,
    /// The bits of the first byte that count.
    mask: u8,
}

/// By the highest five bits of the first byte.
const LEADS: [Lead; 32] = {
    let mut leads = [lead(1, 18, 0x7F); 32];
    leads[0b11000] = lead(2, 12, 0x1F);
    leads[0b11001] = leads[0b11000];
    leads[0b11010] = leads[0b11000];
    leads[0b11011] = leads[0b11000];
    leads[0b11100] = lead(3, 6, 0x0F);
    leads[0b11101] = leads[0b11100];
    leads[0b11110] = lead(4, 0, 0x07);
    leads[0b11111] = leads[0b11110];
    leads
};

const fn lead(size: u8, shift: u8, mask: u8) -> Lead {
    Lead { size, shift, mask }
}

const LAST: u32 = 0x10_FFFF;
/// Bytes that are looked at together,
const WORD: usize = 8;
/// and those that a code point may have which begins among them.
const REACH: usize = WORD + 4;
/// The highest bit of each of these bytes.
const HIGHEST: u64 = 0x8080_8080_8080_8080;

/// Replace `points` by the code points of `text`.
///
/// What isn't UTF-8 gives code points of some kind, or none.
pub fn decode(text: &[u8], points: &mut Vec<u32>) {
    points.clear();
    points.resize(text.len(), 0);
    let (mut at, mut count) = (0, 0);
    while let Some(bytes) = text[at..].first_chunk::<REACH>() {
        let [word @ .., _, _, _, _] = *bytes;
        let bits = u64::from_le_bytes(word);
        if bits & HIGHEST == 0 {
            let ascii = points[count..count + WORD].iter_mut().zip(word);
            ascii.for_each(|(point, byte)| *point = byte.into());
            count += WORD;
        } else {
            // Bytes 10xxxxxx go on with a code point. No step waits for the size of the one before.
            let mut leads = !(bits & !(bits << 1)) & HIGHEST;
            while leads != 0 {
                let place = (leads.trailing_zeros() / 8) as usize;
                if let Some(four) = bytes[place..].first_chunk() {
                    points[count] = point_of(*four).0;
                    count += 1;
                }
                leads &= leads - 1;
            }
        }
        at += WORD;
    }
    while at < text.len() {
        if let Some((point, _)) = first(&text[at..])
            && text[at] & 0xC0 != 0x80
        {
            points[count] = point;
            count += 1;
        }
        at += 1;
    }
    points.truncate(count);
}

/// Return the first code point of four bytes, and its size. No branch depends on the text.
#[inline(always)]
fn point_of(bytes: [u8; 4]) -> (u32, usize) {
    let four = u32::from_be_bytes(bytes);
    let lead = LEADS[(four >> 27) as usize];
    let first = (four >> 24 & u32::from(lead.mask)) << 18;
    let others = (four >> 16 & 63) << 12 | (four >> 8 & 63) << 6 | four & 63;
    let point = (first | others) >> lead.shift;
    (point.min(LAST), lead.size.into())
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
    let mut end = text.len();
    // Four bytes are written for each, whatever its size.
    text.resize(end + 4 * points.len(), 0);
    for &point in points {
        let (bytes, size) = match point {
            0..0x80 => ([point as u8, 0, 0, 0], 1),
            0x80..0x800 => ([0xC0 | (point >> 6) as u8, last_bits(point), 0, 0], 2),
            0x800..0x1_0000 => {
                let first = 0xE0 | (point >> 12) as u8;
                ([first, last_bits(point >> 6), last_bits(point), 0], 3)
            }
            _ => {
                let first = 0xF0 | (point >> 18) as u8;
                let middle = [last_bits(point >> 12), last_bits(point >> 6)];
                ([first, middle[0], middle[1], last_bits(point)], 4)
            }
        };
        text[end..end + 4].copy_from_slice(&bytes);
        end += size;
    }
    text.truncate(end);
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
            assert!(points.iter().all(|&point| point <= LAST));
        }
    }
}
