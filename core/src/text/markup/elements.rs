//! What a browser does with elements, by their names: whether they break a line, what they hide,
//! and which open elements a tag ends (HTML standard, sections 13.2.6 and 15.3).

use std::sync::LazyLock;

/// A line or cell begins and ends with it.
pub const BREAKS: u64 = 1;
/// It has no content, and no end tag.
pub const VOID: u64 = 1 << 1;
/// A browser shows nothing of its content.
pub const HIDES: u64 = 1 << 2;
/// Its content is no markup, and isn't shown.
pub const RAW: u64 = 1 << 3;
/// Its content is no markup, and is shown, with references.
pub const REFERENCES: u64 = 1 << 4;
/// Its content is no markup, and is shown as it is.
pub const VERBATIM: u64 = 1 << 5;
/// It never ends.
pub const PLAINTEXT: u64 = 1 << 6;
pub const SCRIPT: u64 = 1 << 7;
pub const TITLE: u64 = 1 << 8;
pub const DIALOG: u64 = 1 << 9;
/// The page itself: it is open all the time.
pub const PAGE: u64 = 1 << 10;
/// Its start ends a paragraph.
pub const ENDS_PARAGRAPH: u64 = 1 << 11;
pub const PARAGRAPH: u64 = 1 << 12;
pub const ITEM: u64 = 1 << 13;
pub const TERM: u64 = 1 << 14;
pub const OPTION: u64 = 1 << 15;
pub const HEADING: u64 = 1 << 16;
pub const RUBY: u64 = 1 << 17;
/// What stands beside the text of a ruby,
pub const BESIDE: u64 = 1 << 18;
/// and is shown there.
pub const ABOVE: u64 = 1 << 19;
/// Its start ends another one of its name.
pub const ALONE: u64 = 1 << 20;
pub const BUTTON: u64 = 1 << 21;
/// It breaks lines, but a tag within it may end what is around it.
pub const LOOSE: u64 = 1 << 22;
/// So may an item of a list.
pub const THIN: u64 = 1 << 23;
/// No tag within it ends an element outside of it.
pub const SCOPE: u64 = 1 << 24;
/// It goes on behind the block that ends around it.
pub const FORMATTING: u64 = 1 << 25;
pub const TABLE: u64 = 1 << 26;
/// Parts of a table, from the outside in.
pub const GROUP: u64 = 1 << 27;
pub const ROW: u64 = 1 << 28;
pub const CELL: u64 = 1 << 29;
pub const PARTS: u64 = GROUP | ROW | CELL;
/// What is drawn: only some elements in it have text.
pub const SVG: u64 = 1 << 30;
pub const MATH: u64 = 1 << 31;
/// Its start ends what is drawn.
pub const ENDS_DRAWING: u64 = 1 << 32;
/// It is drawn, with all of its content.
pub const DRAWN: u64 = 1 << 33;
/// Within an SVG, it is a line of text, or has HTML, or nothing of it is shown.
pub const SVG_TEXT: u64 = 1 << 34;
pub const SVG_HTML: u64 = 1 << 35;
pub const SVG_HIDES: u64 = 1 << 36;
/// Within a formula, it has text or HTML, or nothing of it is shown.
pub const MATH_HTML: u64 = 1 << 37;
pub const MATH_HIDES: u64 = 1 << 38;

/// A name may stand in several lines.
const KINDS: [(u64, &str); 38] = [
    (
        BREAKS | ENDS_PARAGRAPH,
        "address article aside blockquote center dd details dialog dir div dl dt fieldset \
         figcaption figure footer form h1 h2 h3 h4 h5 h6 header hgroup hr li listing main menu nav \
         ol p plaintext pre search section summary table ul xmp",
    ),
    (BREAKS, "br caption legend optgroup option tbody td tfoot th thead title tr"),
    (
        VOID,
        "area base basefont bgsound br col embed frame hr img input keygen link meta param source \
         track wbr",
    ),
    (HIDES, "audio canvas datalist meter progress rp select template video"),
    (RAW, "iframe noembed noframes noscript script style"),
    (REFERENCES, "textarea title"),
    (VERBATIM, "xmp"),
    (PLAINTEXT, "plaintext"),
    (SCRIPT, "script"),
    (TITLE, "title"),
    (DIALOG, "dialog"),
    (PAGE, "body frameset head html"),
    (PARAGRAPH, "p"),
    (ITEM, "li"),
    (TERM, "dd dt"),
    (OPTION, "optgroup option"),
    (HEADING, "h1 h2 h3 h4 h5 h6"),
    (RUBY, "ruby"),
    (BESIDE, "rb rp rt rtc"),
    (ABOVE, "rt rtc"),
    (ALONE, "a button nobr"),
    (BUTTON, "button"),
    (LOOSE, "dialog legend optgroup option"),
    (THIN, "address div p"),
    (SCOPE, "applet caption marquee object table td template th"),
    (FORMATTING, "a b big code em font i nobr s small strike strong tt u"),
    (TABLE, "table"),
    (GROUP, "caption colgroup tbody tfoot thead"),
    (ROW, "tr"),
    (CELL, "caption td th"),
    (SVG, "svg"),
    (MATH, "math"),
    (
        ENDS_DRAWING,
        "b big blockquote body br center code dd div dl dt em embed h1 h2 h3 h4 h5 h6 head hr i img \
         li listing menu meta nobr ol p pre ruby s small span strike strong sub sup table tt u ul \
         var",
    ),
    (SVG_TEXT, "text"),
    (SVG_HTML, "desc foreignobject title"),
    (
        SVG_HIDES,
        "clippath defs desc lineargradient marker mask metadata pattern script style symbol title",
    ),
    (MATH_HTML, "mi mn mo ms mtext"),
    (MATH_HIDES, "annotation annotation-xml"),
];

/// An element, by its name in any case.
#[derive(Clone, Copy)]
pub struct Element {
    /// Equal for equal names.
    pub key: u64,
    traits: u64,
}

impl Element {
    #[inline]
    pub fn named(name: &[u8]) -> Self {
        let (mut packed, mut others) = (0u128, 0);
        for (at, byte) in name.iter().enumerate() {
            let letter = byte.to_ascii_lowercase();
            if at < 16 {
                packed |= u128::from(letter) << (8 * at);
            } else {
                others = mixed(others ^ u64::from(letter));
            }
        }
        let key = hash_of(packed) ^ others;
        let traits = if name.len() <= 16 { TRAITS.get(packed, key) } else { 0 };
        Self { key, traits }
    }

    #[inline(always)]
    pub fn has(self, traits: u64) -> bool {
        self.traits & traits != 0
    }

    /// Return the same element with other traits.
    pub fn with(self, traits: u64) -> Self {
        Self { traits, ..self }
    }

    pub fn traits(self) -> u64 {
        self.traits
    }
}

/// Names in lower case, up to 16 bytes each: an open hash table. 0 is an empty slot.
struct Names {
    slots: Box<[(u128, u64)]>,
}

const SLOTS: usize = 512;

static TRAITS: LazyLock<Names> = LazyLock::new(Names::made);

impl Names {
    fn made() -> Self {
        let mut slots = vec![(0, 0); SLOTS].into_boxed_slice();
        for (traits, names) in KINDS {
            for name in names.split_whitespace() {
                let packed = name.bytes().rev().fold(0, |all, byte| all << 8 | u128::from(byte));
                let mut at = slot_of(hash_of(packed));
                while slots[at].0 != 0 && slots[at].0 != packed {
                    at = (at + 1) % SLOTS;
                }
                slots[at] = (packed, slots[at].1 | traits);
            }
        }
        Self { slots }
    }

    /// Return the traits of a name, 0 if it isn't there.
    #[inline]
    fn get(&self, packed: u128, hash: u64) -> u64 {
        let mut at = slot_of(hash);
        loop {
            let (found, traits) = self.slots[at];
            if found == packed || found == 0 {
                return traits;
            }
            at = (at + 1) % SLOTS;
        }
    }
}

#[inline(always)]
fn mixed(word: u64) -> u64 {
    let word = word.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    word ^ word >> 32
}

#[inline(always)]
fn hash_of(packed: u128) -> u64 {
    mixed(mixed(packed as u64) ^ (packed >> 64) as u64)
}

#[inline(always)]
fn slot_of(hash: u64) -> usize {
    hash as usize % SLOTS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_any_case() {
        assert!(Element::named(b"DIV").has(BREAKS) && Element::named(b"div").has(THIN));
        assert_eq!(Element::named(b"annotation-XML").traits(), MATH_HIDES);
        for name in ["word", "my-tag", "annotation-xmls-of-any-kind", ""] {
            assert_eq!(Element::named(name.as_bytes()).traits(), 0);
        }
        let long = |name: &str| Element::named(name.as_bytes()).key;
        assert_eq!(long("a-name-of-many-letters"), long("A-Name-Of-Many-Letters"));
        assert_ne!(long("a-name-of-many-letters"), long("a-name-of-many-letterz"));
        assert!(Element::named(b"br").has(VOID) && Element::named(b"br").has(BREAKS));
    }
}
