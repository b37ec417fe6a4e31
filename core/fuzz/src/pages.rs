//! Pages of postings and of records: any bytes, with a checksum that is right or not, and flipped ones.
//!
//! A page that is taken must be one that would be written, byte for byte. One flipped byte must be
//! found out.

use _core::index::record::Record;
use _core::index::shard::checksum::add_checksum;
use _core::index::shard::keys::{PAGES, Place};
use _core::index::shard::record_pages::{DOCUMENTS_A_PAGE, RecordPage, pack, page_key};
use _core::index::shard::run::{MARK, Page, Posting, Shape, pack_pages};

use crate::input::{Input, spoil};

pub fn run(data: &[u8]) {
    let mut input = Input(data);
    match input.below(2) {
        0 => postings(&mut input),
        _ => records(&mut input),
    }
}

/// A value under its key: as it was written, or any bytes, or a spoilt one.
struct Stored {
    stored: Vec<u8>,
    /// Whether one byte was flipped in what was written.
    flipped: bool,
}

fn stored(genuine: Vec<u8>, key: &[u8], input: &mut Input) -> Stored {
    let as_it_is = |stored| Stored { stored, flipped: false };
    match input.below(4) {
        // Any bytes.
        0 => as_it_is(input.rest().to_vec()),
        // Any bytes, with the right checksum.
        1 => as_it_is(add_checksum(key, input.rest().to_vec())),
        // What was written, but for some bytes, and the checksum is right again.
        2 => {
            let mut value = genuine;
            value.truncate(value.len() - 4);
            spoil(&mut value, input);
            as_it_is(add_checksum(key, value))
        }
        _ => {
            let mut stored = genuine;
            let at = usize::from(input.u16()) % stored.len();
            let flip = input.byte();
            stored[at] ^= flip;
            Stored { stored, flipped: flip != 0 }
        }
    }
}

fn postings(input: &mut Input) {
    let level = input.below(5) as u8;
    let shape = Shape::of(u32::from(input.u16()) + 1, level);
    if !shape.fits() {
        return;
    }
    let page = input.u32() % shape.pages();
    let place = Place { run: input.u32(), slot: input.byte(), page };
    let genuine = genuine_cells(place, shape, input);
    let Stored { stored, flipped } = stored(genuine, &place.key(PAGES), input);
    let found = Page::unpack(place, shape, &stored);
    assert!(!flipped || found.is_err());
    let Ok(found) = found else { return };
    let postings: Vec<Posting> = found.postings().collect();
    assert!(postings.iter().all(|posting| shape.page(posting.hash) == page));
    assert!(postings.is_sorted_by_key(|posting| posting.hash));
    for posting in &postings {
        let same = |other: &&Posting| other.hash == posting.hash && !other.is_mark();
        let expected = postings.iter().find(same).map(|other| other.document);
        assert_eq!(found.find(posting.hash), expected);
    }
    let asked = input.u64();
    assert!(postings.iter().any(|posting| posting.hash == asked) || found.find(asked).is_none());
    let again = pack_pages(place.run, place.slot, shape, page..page + 1, &postings);
    let expected = (place.key(PAGES), stored);
    assert!(if postings.is_empty() { again.is_empty() } else { again == [expected] });
}

/// A page of some postings, with its checksum.
fn genuine_cells(place: Place, shape: Shape, input: &mut Input) -> Vec<u8> {
    let page_bits = shape.pages().trailing_zeros();
    let first = u64::from(place.page).checked_shl(64 - page_bits).unwrap_or(0);
    let mut postings: Vec<Posting> = (0..1 + input.below(40))
        .map(|_| {
            let within = input.u64().checked_shr(page_bits).unwrap_or(0);
            let mark = input.one_of([0, 0, 0, MARK]);
            Posting { hash: first | within, document: input.u32() & !MARK | mark }
        })
        .collect();
    postings.sort_by_key(|posting| (posting.hash, posting.is_mark()));
    postings.dedup_by_key(|posting| (posting.hash, posting.is_mark()));
    let packed = pack_pages(place.run, place.slot, shape, place.page..place.page + 1, &postings);
    packed.into_iter().next().expect("it has a posting").1
}

fn records(input: &mut Input) {
    let page = input.number();
    let count = input.below(DOCUMENTS_A_PAGE + 1);
    let records: Vec<Vec<u8>> = (0..count).map(|_| genuine_record(input)).collect();
    let (key, genuine) = pack(page, &records).expect("the records are short");
    assert_eq!(key, page_key(page));
    let Stored { stored, flipped } = stored(genuine, &key, input);
    let found = RecordPage::unpack(page, &stored);
    assert!(!flipped || found.is_err());
    let Ok(found) = found else { return };
    let records: Vec<&[u8]> = found.records().collect();
    assert!(records.len() <= DOCUMENTS_A_PAGE);
    assert_eq!(pack(page, &records), Ok((key, stored)));
    for (place, packed) in records.iter().enumerate() {
        assert_eq!(found.get(place), Some(*packed));
        if let Ok(record) = Record::unpack(packed) {
            assert_eq!(record.pack(), *packed);
        }
    }
    assert_eq!(found.get(records.len()), None);
}

/// A document's record; one in four is that of a document that was forgotten.
fn genuine_record(input: &mut Input) -> Vec<u8> {
    if input.below(4) == 0 {
        return Vec::new();
    }
    let record = Record {
        sequence: input.number(),
        time: input.number() as i64,
        shingles: input.u32(),
        sketch: input.some(),
        new: input.some(),
        id: input.some(),
    };
    assert_eq!(Record::unpack(&record.pack()), Ok(record));
    record.pack()
}
