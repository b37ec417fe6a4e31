//! Signing: normal forms and sketches of any bytes, by all switches.
//!
//! The first bytes say how texts are signed, all others are the text; `tests/oracle/test_fuzzed.py`
//! reads the same, and compares with the oracle. The fingerprint is compared with that by its
//! definition, and the normal form with itself: of a text that was cut, or has been seen before.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use _core::sign::keys::Keyed;
use _core::sign::{Columns, Scheme, Scratch, Secrets, Signer, Unit};
use _core::text::{Form, Normaliser, Switches, utf8};

use crate::input::Input;
use crate::naive::{Constants, signature};

/// Longer texts are cut: what is compared with takes time by the square of it.
const MOST_BYTES: usize = 1 << 12;
const WORD_KEY: [u8; 32] = [1; 32];
const TEXT_KEY: [u8; 32] = [2; 32];
const SHINGLE_STATE: u64 = 7;
/// Where a text is cut into several, which are signed together.
const CUT: u8 = 0;
const MOST_TEXTS: usize = 8;

/// Lines that may be left out.
const LISTED: [&str; 6] =
    ["share this", "\u{E9}t\u{E9} \u{2014} 5", "\u{3B9}", "- -", "\u{FB01} \u{1FB3}", "<b>x</b>"];

/// Sets of switches, a bit for each: none, the default, all but joining letters, all.
const SETS: [u16; 4] = [0, 0x1F, 0x1BFF, 0x1FFF];
/// One of them is flipped, or none: tables of normal forms are made for each set.
const FLIPS: u8 = 14;

/// How texts are signed.
struct How {
    /// The byte that stands for the switches and for whether lines are left out.
    set: u8,
    switches: Switches,
    lists: bool,
    unit: Unit,
    size: usize,
    slots: usize,
    count_distinct: bool,
}

impl How {
    fn read(input: &mut Input) -> Self {
        let (set, others) = (input.byte(), input.byte());
        let flip = set / 8 % FLIPS;
        let bits = SETS[usize::from(set % 4)] ^ (1 << flip);
        let bit = |place: u32| bits >> place & 1 == 1;
        let switches = Switches {
            nfkc: bit(0),
            casefold: bit(1),
            collapse_whitespace: bit(2),
            drop_invisible: bit(3),
            drop_overlays: bit(4),
            fold_confusables: bit(5),
            fold_digits: bit(6),
            fold_accents: bit(7),
            fold_turkish_i: bit(8),
            drop_symbols: bit(9),
            join_letters: bit(10),
            strip_html: bit(11),
            reduce_urls: bit(12),
        };
        Self {
            set,
            switches,
            lists: set / 4 % 2 == 1,
            unit: if others & 1 == 1 { Unit::Word } else { Unit::CodePoint },
            count_distinct: others & 2 == 2,
            size: 1 + input.below(64),
            slots: 1 + input.below(256),
        }
    }

    fn scheme(&self) -> Scheme {
        let secrets =
            Secrets { shingle_state: SHINGLE_STATE, word_key: WORD_KEY, text_key: TEXT_KEY };
        Scheme::new(self.unit, self.size, self.slots, self.count_distinct, secrets)
    }

    fn has_markup(&self) -> bool {
        self.switches.strip_html || self.switches.reduce_urls
    }
}

thread_local! {
    /// By `How::set`.
    static NORMALISERS: RefCell<HashMap<u8, Arc<Normaliser>>> = RefCell::default();
    static USED: RefCell<Scratch> = RefCell::default();
}

pub fn run(data: &[u8]) {
    let mut input = Input(data);
    let how = How::read(&mut input);
    let text = input.rest();
    let text = &text[..text.len().min(MOST_BYTES)];
    let texts: Vec<&[u8]> = text.splitn(MOST_TEXTS, |&byte| byte == CUT).collect();
    let listed = if how.lists { &LISTED[..] } else { &[] };
    let made = || Arc::new(Normaliser::new(how.switches, listed));
    let normaliser =
        NORMALISERS.with_borrow_mut(|all| all.entry(how.set).or_insert_with(made).clone());
    let forms: Vec<Vec<u32>> = texts.iter().map(|text| checked_form(&normaliser, text)).collect();
    for (text, form) in texts.iter().zip(&forms) {
        if !how.lists && !how.has_markup() {
            compare_paths(&how.switches, &normaliser, text, form);
        }
    }
    let signer = Signer::new(normaliser, how.scheme());
    let together = USED.with_borrow_mut(|scratch| signer.sign(&texts, scratch));
    for (row, text) in texts.iter().enumerate() {
        let alone = signer.sign(&[text], &mut Scratch::default());
        assert_eq!(row_of(&together, row, how.slots), row_of(&alone, 0, how.slots));
        compare_with_definition(&how, &forms[row], &alone);
        for other in 0..row {
            let same = together.texts[row] == together.texts[other]
                && together.blank[row] == together.blank[other];
            let both_blank = together.blank[row] && together.blank[other];
            assert!(both_blank || same == (forms[row] == forms[other]));
        }
    }
}

fn points(form: Form<'_>) -> Vec<u32> {
    match form {
        Form::Ascii(text) => text.iter().map(|&byte| u32::from(byte)).collect(),
        Form::Wide(points) => points.to_vec(),
    }
}

/// The normal form of a text, with new buffers and with used ones.
fn checked_form(normaliser: &Normaliser, text: &[u8]) -> Vec<u32> {
    let mut scratch = _core::text::Scratch::default();
    let form = normaliser.form(text, &mut scratch);
    match form {
        Form::Ascii(ascii) => assert!(ascii.is_ascii()),
        Form::Wide(points) => assert!(points.iter().any(|&point| point > 0x7F)),
    }
    let first = points(form);
    assert!(first.iter().all(|&point| point <= 0x10_FFFF));
    // The bound that `core/src/text/wide.rs` states. What isn't UTF-8 can't come from Python.
    let most =
        if str::from_utf8(text).is_ok() { text.len() + text.len() / 4 } else { 4 * text.len() };
    assert!(first.len() <= most + 32);
    normaliser.left_out(text, &mut scratch);
    assert_eq!(points(normaliser.form(text, &mut scratch)), first);
    first
}

/// ASCII has a path of its own. With a Chinese character behind it, a text takes that of all others.
fn compare_paths(switches: &Switches, normaliser: &Normaliser, text: &[u8], form: &[u32]) {
    if switches.join_letters || switches.drop_symbols || !text.is_ascii() {
        return;
    }
    let longer = [text, "\u{4E2D}".as_bytes()].concat();
    let found = checked_form(normaliser, &longer);
    let (last, before) = found.split_last().expect("a letter stays");
    assert_eq!(*last, 0x4E2D);
    let gap = switches.collapse_whitespace && before.last() == Some(&0x20) && !before.is_empty();
    let before = if gap { &before[..before.len() - 1] } else { before };
    assert_eq!(before, form);
}

type Row = (Vec<u8>, u64, u32, bool);

fn row_of(columns: &Columns, row: usize, slots: usize) -> Row {
    let sketch = columns.sketches[row * slots..(row + 1) * slots].to_vec();
    (sketch, columns.texts[row], columns.shingles[row], columns.blank[row])
}

fn compare_with_definition(how: &How, form: &[u32], signed: &Columns) {
    let constants = Constants::new(SHINGLE_STATE);
    let hashes = match how.unit {
        Unit::CodePoint => constants.shingles(form, how.size),
        Unit::Word => {
            let keyed = Keyed::new(&WORD_KEY);
            let words = form.split(|&point| is_white_space(point)).filter(|word| !word.is_empty());
            let words: Vec<u64> = words.map(|word| keyed.hash(&encoded(word))).collect();
            constants.word_shingles(&words, how.size)
        }
    };
    assert_eq!(signed.blank[0], hashes.is_empty());
    if hashes.is_empty() {
        assert_eq!((signed.texts[0], signed.shingles[0]), (0, 0));
        assert!(signed.sketches.iter().all(|&slot| slot == 0));
        return;
    }
    let expected: Vec<u8> =
        signature(&hashes, how.slots).iter().map(|&value| value as u8).collect();
    assert_eq!(signed.sketches, expected);
    assert_eq!(signed.texts[0], Keyed::new(&TEXT_KEY).hash(&encoded(form)));
    let mut different = hashes.clone();
    different.sort_unstable();
    different.dedup();
    let count = if how.count_distinct { different.len() } else { hashes.len() };
    assert_eq!(signed.shingles[0] as usize, count);
}

fn encoded(points: &[u32]) -> Vec<u8> {
    let mut text = Vec::new();
    utf8::encode(points, &mut text);
    text
}

/// What Python's `str.split` splits at.
fn is_white_space(point: u32) -> bool {
    matches!(
        point,
        0x09..=0x0D | 0x1C..=0x20 | 0x85 | 0xA0 | 0x1680 | 0x2000..=0x200A | 0x2028 | 0x2029
            | 0x202F | 0x205F | 0x3000
    )
}
