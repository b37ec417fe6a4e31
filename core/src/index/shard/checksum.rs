//! A checksum over each stored value and its key.
//!
//! RocksDB checks its blocks. This check covers the rest of the way: a value that was changed in
//! memory, or that is under another key than its own, is found out before anything follows from it.
//! A flipped bit in a filter or in a document's number would have no other sign.

use crate::index::reader::Damaged;

/// The bytes of a checksum. A value that is made with room for them isn't copied to be with its checksum.
pub const BYTES: usize = 4;
const LANES: usize = 4;
const BLOCK: usize = 8 * LANES;
const FACTOR: u64 = 0x9FB2_1C65_1E98_DF25;
const STARTS: [u64; LANES] =
    [0x243F_6A88_85A3_08D3, 0x1319_8A2E_0370_7344, 0xA409_3822_299F_31D0, 0x082E_FA98_EC4E_6C89];

/// Return a value with the checksum that it is stored with.
pub fn add_checksum(key: &[u8], mut value: Vec<u8>) -> Vec<u8> {
    let sum = checksum(key, &value);
    value.extend_from_slice(&sum.to_le_bytes());
    value
}

/// Return the value that `add_checksum` with its checksum.
///
/// An error says that it is another one, or was stored under another key.
pub fn verify_checksum<'a>(key: &[u8], stored: &'a [u8]) -> Result<&'a [u8], Damaged> {
    let (value, sum) = stored
        .split_last_chunk::<BYTES>()
        .ok_or_else(|| Damaged(format!("the value of key {} is cut off", hex(key))))?;
    if u32::from_le_bytes(*sum) != checksum(key, value) {
        return Err(Damaged(format!(
            "the {} bytes of key {} differ from what was written",
            value.len(),
            hex(key)
        )));
    }
    Ok(value)
}

/// A key as a person reads it in a message.
pub fn hex(key: &[u8]) -> String {
    key.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Each step is a bijection of a lane, so a change within one word changes the 64 bits in the end.
fn checksum(key: &[u8], value: &[u8]) -> u32 {
    let mut lanes = STARTS;
    absorb(&mut lanes, key);
    absorb(&mut lanes, value);
    let mut sum = (value.len() as u64).wrapping_mul(FACTOR);
    for lane in lanes {
        sum = (sum ^ lane).rotate_left(29).wrapping_mul(FACTOR);
    }
    (sum ^ (sum >> 32)) as u32
}

fn absorb(lanes: &mut [u64; LANES], bytes: &[u8]) {
    let mut blocks = bytes.chunks_exact(BLOCK);
    for block in &mut blocks {
        step(lanes, block);
    }
    let rest = blocks.remainder();
    if !rest.is_empty() {
        let mut last = [0; BLOCK];
        last[..rest.len()].copy_from_slice(rest);
        step(lanes, &last);
    }
}

fn step(lanes: &mut [u64; LANES], block: &[u8]) {
    for (lane, word) in lanes.iter_mut().zip(block.as_chunks::<8>().0) {
        *lane = (*lane ^ u64::from_le_bytes(*word)).wrapping_mul(FACTOR).rotate_left(31);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flipped_bit_and_another_key_are_found_out() {
        for length in [0, 1, 31, 32, 33, 100] {
            let value: Vec<u8> = (0..length).map(|at| at as u8).collect();
            let stored = add_checksum(b"key", value.clone());
            assert_eq!(verify_checksum(b"key", &stored), Ok(&value[..]));
            assert!(verify_checksum(b"kez", &stored).is_err());
            for bit in 0..8 * stored.len() {
                let mut other = stored.clone();
                other[bit / 8] ^= 1 << (bit % 8);
                assert!(verify_checksum(b"key", &other).is_err(), "length {length}, bit {bit}");
            }
        }
    }

    #[test]
    fn a_value_that_is_cut_off_or_longer_is_found_out() {
        let stored = add_checksum(b"key", vec![0; 64]);
        assert!((0..stored.len()).all(|end| verify_checksum(b"key", &stored[..end]).is_err()));
        assert!(verify_checksum(b"key", &[&stored[..], &[0]].concat()).is_err());
    }
}
