//! The names by which markup is told from text: elements of HTML, and attributes without a value.
//!
//! Elements: those of the HTML standard, obsolete ones too; those of MathML, since a formula's
//! letters are text; `svg`, whose content is none; and those that Office writes, such as `o:p`.

use std::sync::LazyLock;

/// Elements whose content is no text of the page.
pub const RAW: [&str; 5] = ["script", "style", "template", "noscript", "svg"];

/// Elements that stand inside a word as well as between two.
const INLINE: &str = "
    a abbr acronym b bdi bdo big cite code data del dfn em font i ins kbd label mark nobr q s samp
    small span strike strong sub sup time tt u var wbr
";

const OTHERS: &str = "
    address applet area article aside audio base basefont bgsound blink blockquote body br button
    canvas caption center col colgroup command content datalist dd details dialog dir div dl dt
    element embed fencedframe fieldset figcaption figure footer form frame frameset h1 h2 h3 h4 h5
    h6 head header hgroup hr html iframe image img input isindex keygen layer legend li link
    listing main map marquee math menu menuitem meta meter multicol nav nextid noembed noframes
    nolayer object ol optgroup option output p param picture plaintext portal pre progress rb rp
    rt rtc ruby search section select selectedcontent shadow slot source spacer summary table
    tbody td textarea tfoot th thead title tr track ul video xmp
";

const MATHEMATICS: &str = "
    annotation maction maligngroup malignmark menclose merror mfenced mfrac mglyph
    mi mlabeledtr mlongdiv mmultiscripts mn mo mover mpadded mphantom mprescripts mroot mrow ms
    mscarries mscarry msgroup msline mspace msqrt msrow mstack mstyle msub msubsup msup mtable mtd
    mtext mtr munder munderover semantics
";

/// The prefixes of Office's elements.
const OFFICE: [&[u8]; 6] = [b"m", b"o", b"st1", b"v", b"w", b"x"];

/// Attributes that stand without a value.
const WITHOUT_VALUE: &str = "
    allowfullscreen alt async autofocus autoplay border checked compact contenteditable controls
    crossorigin declare default defer disabled download draggable formnovalidate hidden inert
    ismap itemscope loop multiple muted nohref nomodule noresize noshade novalidate nowrap open
    playsinline popover readonly required reversed scoped seamless selected shadowrootmode
    sortable truespeed typemustmatch
";

/// What a name after `<` or `</` is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Name {
    /// An element that stands inside a line.
    Inline,
    /// An element that begins a new line or cell.
    Block,
    /// It may be a custom element: it begins with a letter and has a hyphen.
    Custom,
}

/// Names in lower case, up to 16 bytes each: an open hash table. 0 is an empty slot.
struct Names {
    slots: Box<[(u128, bool)]>,
}

const SLOTS: usize = 512;

static ELEMENTS: LazyLock<Names> = LazyLock::new(|| {
    let others = [OTHERS, MATHEMATICS].into_iter().flat_map(str::split_whitespace);
    let blocks = others.chain(RAW).map(|name| (name, false));
    Names::made(INLINE.split_whitespace().map(|name| (name, true)).chain(blocks))
});
static ATTRIBUTES: LazyLock<Names> =
    LazyLock::new(|| Names::made(WITHOUT_VALUE.split_whitespace().map(|name| (name, true))));

impl Names {
    fn made<'a>(names: impl Iterator<Item = (&'a str, bool)>) -> Self {
        let mut slots = vec![(0, false); SLOTS].into_boxed_slice();
        for (name, value) in names {
            let key = packed(name.as_bytes()).unwrap_or_default();
            let mut at = slot_of(key);
            while slots[at].0 != 0 {
                at = (at + 1) % SLOTS;
            }
            slots[at] = (key, value);
        }
        Self { slots }
    }

    /// Return the value of a name in any case, None if it isn't there.
    #[inline]
    fn get(&self, name: &[u8]) -> Option<bool> {
        let key = packed(name)?;
        let mut at = slot_of(key);
        loop {
            let (found, value) = self.slots[at];
            if found == key {
                return Some(value);
            }
            if found == 0 {
                return None;
            }
            at = (at + 1) % SLOTS;
        }
    }
}

/// Return a name in lower case as a number; None if it is too long to be one of the names, or empty.
#[inline]
fn packed(name: &[u8]) -> Option<u128> {
    if name.is_empty() || name.len() > 16 {
        return None;
    }
    let mut bytes = [0; 16];
    for (byte, letter) in bytes.iter_mut().zip(name) {
        *byte = letter.to_ascii_lowercase();
    }
    Some(u128::from_le_bytes(bytes))
}

#[inline(always)]
fn slot_of(key: u128) -> usize {
    let halves = (key as u64) ^ ((key >> 64) as u64).rotate_left(32);
    (halves.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 55) as usize
}

/// Return what a name is, of letters, digits, `_`, `.`, `:` and `-`; None if it is none.
pub fn name_of(name: &[u8]) -> Option<Name> {
    let Some(sign) = name.iter().position(|&byte| matches!(byte, b'-' | b':')) else {
        let is_inline = ELEMENTS.get(name)?;
        return Some(if is_inline { Name::Inline } else { Name::Block });
    };
    if name[sign] == b':' {
        let is_prefix = |prefix: &&[u8]| prefix.eq_ignore_ascii_case(&name[..sign]);
        return OFFICE.iter().any(is_prefix).then_some(Name::Block);
    }
    (sign > 0 && name[0].is_ascii_alphabetic() && !name.contains(&b':')).then_some(Name::Custom)
}

/// Return whether a word is an attribute that stands without a value. So are others that have a
/// hyphen, such as `data-x`.
pub fn stands_without_value(word: &[u8]) -> bool {
    word.contains(&b'-') || ATTRIBUTES.get(word).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        for (name, expected) in [
            ("b", Some(Name::Inline)),
            ("DIV", Some(Name::Block)),
            ("svg", Some(Name::Block)),
            ("o:p", Some(Name::Block)),
            ("ST1:place-x", Some(Name::Block)),
            ("my-tag", Some(Name::Custom)),
            ("a-", Some(Name::Custom)),
            ("a-b:c", None),
            ("1-b", None),
            ("y:p", None),
            ("-", None),
            ("", None),
            ("word", None),
        ] {
            assert_eq!(name_of(name.as_bytes()), expected, "{name}");
        }
        assert!(stands_without_value(b"Checked") && stands_without_value(b"data-x"));
        assert!(!stands_without_value(b"and"));
    }
}
