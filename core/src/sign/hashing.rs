//! Hashes of all windows of a sequence: packed bytes of ASCII, polynomials of everything else.
//!
//! In a window of up to 6 code points, those of ASCII are packed into one word, a byte each, which
//! is multiplied by a constant of its own; the polynomial of the others is added. With 7 or 8
//! bytes, the last ones would move too few bits of the product. Units are never 0, which is what
//! fills up a sequence that is shorter than a window.
//!
//! A polynomial alone is at best pairwise independent (Lemire and Kaser, "Recursive n-gram hashing
//! is pairwise independent, at best", 2010); `mixed` does the rest.

use super::scheme::Scheme;
use crate::vectors::vectorised;

/// Code points of the longest windows that are packed.
pub const PACKED: usize = 6;
const WORD: usize = 8;
const ONES: u64 = 0x0101_0101_0101_0101;
/// Finish a sum of products: the middle steps of fmix64, with a factor of the scheme's own.
#[inline(always)]
fn mixed(sum: u64, factor: u64) -> u64 {
    (sum ^ (sum >> 32)).wrapping_mul(factor)
}

/// The bytes of a packed window.
fn mask(size: usize) -> u64 {
    (1 << (8 * size)) - 1
}

/// Return how many windows a sequence has: one if it is shorter, none if it is empty.
pub fn windows(units: usize, size: usize) -> usize {
    if units == 0 { 0 } else { units.saturating_sub(size - 1).max(1) }
}

/// Hash the windows of an ASCII text, `size` of at most `PACKED`.
pub fn hash_ascii(scheme: &Scheme, text: &[u8], out: &mut [u64]) {
    let size = scheme.size;
    // The last windows are read from a copy, behind which there are zeros.
    let read = text.len().saturating_sub(WORD - 1).min(out.len());
    let mut tail = [0; 2 * WORD];
    let left = &text[read..];
    tail[..left.len()].copy_from_slice(left);
    let (most, last) = out.split_at_mut(read);
    let (packing, factor) = (scheme.packing, scheme.factor);
    hash_packed(text, mask(size), packing, factor, most);
    // Each byte stands for its code point plus one; what fills up stays zero.
    let filled = mask(size.min(text.len()));
    for (at, hash) in last.iter_mut().enumerate() {
        let word = (word_at(&tail, at) & mask(size)).wrapping_add(ONES & filled);
        *hash = mixed(word.wrapping_mul(packing), factor);
    }
}

#[inline(always)]
fn word_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + WORD].try_into().expect("a word's bytes"))
}

vectorised! {
    /// Hash as many windows as `out` has room for; 8 bytes are read from the start of each.
    fn hash_packed(text: &[u8], mask: u64, packing: u64, factor: u64, out: &mut [u64]) {
        let ones = ONES & mask;
        for (hash, window) in out.iter_mut().zip(text.windows(WORD)) {
            let word = (word_at(window, 0) & mask).wrapping_add(ones);
            *hash = mixed(word.wrapping_mul(packing), factor);
        }
    }
}

/// Hash the windows of code points, `size` of at most `PACKED`.
pub fn hash_wide(scheme: &Scheme, codes: &[u32], out: &mut [u64]) {
    // Places behind a window, or behind the end of a text that is shorter, count for nothing.
    let filled = scheme.size.min(codes.len());
    let powers =
        std::array::from_fn(
            |place| {
                if place < filled { scheme.powers[scheme.size - place] } else { 0 }
            },
        );
    let mask = mask(filled);
    // The last windows are read from a copy, behind which there is room.
    let read = codes.len().saturating_sub(PACKED - 1).min(out.len());
    let mut tail = [0; 2 * PACKED];
    let left = &codes[read..];
    tail[..left.len()].copy_from_slice(left);
    let (most, last) = out.split_at_mut(read);
    hash_mixed(codes, &powers, mask, scheme, most);
    hash_mixed(&tail, &powers, mask, scheme, last);
}

vectorised! {
    /// Hash as many windows as `out` has room for; `PACKED` code points are read from the start of
    /// each.
    fn hash_mixed(
        codes: &[u32],
        powers: &[u64; PACKED],
        mask: u64,
        scheme: &Scheme,
        out: &mut [u64],
    ) {
        for (hash, window) in out.iter_mut().zip(codes.windows(PACKED)) {
            let (mut word, mut sum) = (0, 0u64);
            for place in 0..PACKED {
                let unit = u64::from(window[place]) + 1;
                let (near, far) = if unit <= 128 { (unit, 0) } else { (0, unit) };
                word |= near << (8 * place);
                sum = sum.wrapping_add(far.wrapping_mul(powers[place]));
            }
            let packed = (word & mask).wrapping_mul(scheme.packing);
            *hash = mixed(packed.wrapping_add(sum), scheme.factor);
        }
    }
}

/// Hash the windows of `count` units, of any size, by a polynomial that rolls on.
#[inline(always)]
pub fn hash_rolling(scheme: &Scheme, count: usize, unit: impl Fn(usize) -> u64, out: &mut [u64]) {
    let Some((first, others)) = out.split_first_mut() else { return };
    let (size, base, top) = (scheme.size, scheme.powers[1], scheme.powers[scheme.size]);
    let mut sum = 0u64;
    for at in 0..size.min(count) {
        sum = sum.wrapping_add(unit(at).wrapping_mul(scheme.powers[size - at]));
    }
    *first = mixed(sum, scheme.factor);
    for (at, hash) in others.iter_mut().enumerate() {
        let left = unit(at).wrapping_mul(top);
        sum = sum.wrapping_sub(left).wrapping_add(unit(at + size)).wrapping_mul(base);
        *hash = mixed(sum, scheme.factor);
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::scheme::{Secrets, Unit};
    use super::*;
    use crate::vectors::tests::with_each_vectors;

    pub(in super::super) fn scheme(unit: Unit, size: usize, slots: usize) -> Scheme {
        let secrets = Secrets { shingle_state: 7, word_key: [1; 32], text_key: [2; 32] };
        Scheme::new(unit, size, slots, false, secrets)
    }

    /// Return the hashes by their definition.
    fn defined(scheme: &Scheme, codes: &[u32]) -> Vec<u64> {
        (0..windows(codes.len(), scheme.size))
            .map(|begin| {
                let mut sum = 0u64;
                for (place, &code) in codes[begin..].iter().take(scheme.size).enumerate() {
                    let packed = scheme.size <= PACKED && code < 128;
                    let weight = if packed {
                        scheme.packing.wrapping_shl(8 * place as u32)
                    } else {
                        scheme.powers[scheme.size - place]
                    };
                    sum = sum.wrapping_add((u64::from(code) + 1).wrapping_mul(weight));
                }
                mixed(sum, scheme.factor)
            })
            .collect()
    }

    fn codes(count: usize, wide: bool) -> Vec<u32> {
        let drawn = super::super::mixing::splitmix64(count as u64, count);
        let most = [128, 0x11_0000][usize::from(wide)];
        drawn.iter().map(|&word| (word as u32 % most) >> (word >> 59 & 15)).collect()
    }

    #[test]
    fn every_way_hashes_by_the_definition() {
        for size in (1..=9).chain([63, 64]) {
            let scheme = scheme(Unit::CodePoint, size, 1);
            // Miri takes a thousand times as long.
            let longer = if cfg!(miri) { &[65][..] } else { &[63, 64, 65, 511, 512, 513, 1_500] };
            for length in (0..20).chain(longer.iter().copied()) {
                let (ascii, wide) = (codes(length, false), codes(length, true));
                let bytes: Vec<u8> = ascii.iter().map(|&code| code as u8).collect();
                let room = || vec![0; windows(length, size)];
                let roll = |codes: &[u32]| {
                    let mut out = room();
                    let unit = |at| u64::from(codes[at]) + 1;
                    hash_rolling(&scheme, codes.len(), unit, &mut out);
                    out
                };
                if size > PACKED {
                    assert_eq!(roll(&ascii), defined(&scheme, &ascii));
                    assert_eq!(roll(&wide), defined(&scheme, &wide));
                    continue;
                }
                let found = with_each_vectors(|| {
                    let (mut packed, mut mixed) = (room(), room());
                    hash_ascii(&scheme, &bytes, &mut packed);
                    hash_wide(&scheme, &wide, &mut mixed);
                    (packed, mixed)
                });
                for (packed, mixed) in found {
                    assert_eq!(packed, defined(&scheme, &ascii), "{size} of {length}");
                    assert_eq!(mixed, defined(&scheme, &wide), "{size} of {length}");
                }
            }
        }
    }
}
