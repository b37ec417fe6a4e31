//! Pages of document records.
//!
//! A page has the records of 8 documents with successive numbers: how many there are (2 bytes), the
//! length of each (2 bytes each), then the records. The last page of a shard is written again until
//! it is full. Numbers are little-endian.

use super::checksum::{self, add_checksum, verify_checksum};
use super::keys::{Key, RECORDS, number_key};
use crate::index::bytes::Cursor;
use crate::index::reader::Damaged;

pub const DOCUMENTS_A_PAGE: usize = 8;

/// The number of the page that has a document's record, and its place there.
pub fn page_of(number: u64) -> (u64, usize) {
    let each = DOCUMENTS_A_PAGE as u64;
    (number / each, (number % each) as usize)
}

pub fn page_key(page: u64) -> Key {
    number_key(RECORDS, page)
}

/// The key and the bytes of a page, with their checksum. An error says that a record is too long.
pub fn pack<R: AsRef<[u8]>>(page: u64, records: &[R]) -> Result<(Key, Vec<u8>), Damaged> {
    let key = page_key(page);
    let records = records.iter().map(AsRef::as_ref);
    let size = records.clone().map(<[u8]>::len).sum::<usize>() + 2 * (records.len() + 1);
    let mut packed = Vec::with_capacity(size + checksum::BYTES);
    packed.extend_from_slice(&(records.len() as u16).to_le_bytes());
    for record in records.clone() {
        let length = u16::try_from(record.len())
            .map_err(|_| Damaged(format!("a record of {} bytes is too long", record.len())))?;
        packed.extend_from_slice(&length.to_le_bytes());
    }
    records.for_each(|record| packed.extend_from_slice(record));
    let packed = add_checksum(&key, packed);
    Ok((key, packed))
}

/// A page that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordPage {
    records: Vec<u8>,
    /// Where each record ends.
    ends: Vec<usize>,
}

impl RecordPage {
    pub fn unpack(page: u64, stored: &[u8]) -> Result<Self, Damaged> {
        let packed = verify_checksum(&page_key(page), stored)?;
        Self::read(packed).ok_or_else(|| {
            Damaged(format!("the {} bytes of page {page} are not records", packed.len()))
        })
    }

    fn read(packed: &[u8]) -> Option<Self> {
        let mut left = Cursor(packed);
        let count = usize::from(left.u16()?);
        let mut end = 0;
        let mut ends = Vec::with_capacity(DOCUMENTS_A_PAGE);
        for _ in 0..count {
            end += usize::from(left.u16()?);
            ends.push(end);
        }
        let whole = count <= DOCUMENTS_A_PAGE && left.0.len() == end;
        whole.then(|| Self { records: left.0.to_vec(), ends })
    }

    /// About how much memory it takes.
    pub fn size_bytes(&self) -> usize {
        size_of::<Option<Self>>() + self.records.len() + size_of::<usize>() * DOCUMENTS_A_PAGE
    }

    /// The record at a place; none if the page has fewer.
    pub fn get(&self, place: usize) -> Option<&[u8]> {
        let start =
            place.checked_sub(1).map_or(Some(0), |before| self.ends.get(before).copied())?;
        self.records.get(start..*self.ends.get(place)?)
    }

    pub fn records(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.ends.len()).filter_map(|place| self.get(place))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_have_their_records_and_every_flipped_bit_is_found_out() {
        let records = [&b"one"[..], b"", b"three"];
        let (_, packed) = pack(7, &records).unwrap();
        let page = RecordPage::unpack(7, &packed).unwrap();
        assert_eq!(page.records().collect::<Vec<_>>(), records);
        assert_eq!((page.get(2), page.get(3)), (Some(&b"three"[..]), None));
        assert!(RecordPage::unpack(8, &packed).is_err());
        for bit in 0..8 * packed.len() {
            let mut other = packed.clone();
            other[bit / 8] ^= 1 << (bit % 8);
            assert!(RecordPage::unpack(7, &other).is_err());
        }
    }

    #[test]
    fn what_cannot_be_a_page_is_refused() {
        let key = page_key(7);
        for value in [&[][..], &[1], &[1, 0], &[1, 0, 2, 0, 1], &[0, 0, 1], &[9; 40]] {
            assert!(RecordPage::unpack(7, &add_checksum(&key, value.to_vec())).is_err());
        }
        assert!(pack(7, &[vec![0; 1 << 16]]).is_err());
    }
}
