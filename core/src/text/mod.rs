//! Normal forms of texts.

/// The steps of the normal form that are taken; `docs/fingerprints.md` describes each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Switches {
    pub nfkc: bool,
    pub casefold: bool,
    pub collapse_whitespace: bool,
    pub drop_invisible: bool,
    pub drop_overlays: bool,
    pub fold_confusables: bool,
    pub fold_digits: bool,
    pub fold_accents: bool,
    pub fold_turkish_i: bool,
    pub drop_symbols: bool,
    pub join_letters: bool,
    pub strip_html: bool,
    pub reduce_urls: bool,
}

/// The normal form of one text.
pub enum Form<'a> {
    Ascii(&'a [u8]),
    /// Code points; lone surrogates are among them.
    Wide(&'a [u32]),
}

/// What `Normaliser::form` reuses from one text to the next.
#[derive(Default)]
pub struct Scratch {
    ascii: Vec<u8>,
}

/// The version of the Unicode data that normal forms are made with.
pub const UNICODE_VERSION: &str = "18.0.0";

/// Normalises texts. Immutable: any number of threads may share it.
pub struct Normaliser {
    switches: Switches,
}

impl Normaliser {
    /// Make a normaliser that leaves out lines with the normal forms of `listed_lines`.
    ///
    /// The lines are in UTF-8, as texts are.
    pub fn new<Line: AsRef<[u8]>>(switches: Switches, listed_lines: &[Line]) -> Self {
        let _ = listed_lines;
        Self { switches }
    }

    /// Return the normal form of a text in UTF-8, in which lone surrogates may be encoded.
    pub fn form<'a>(&self, text: &[u8], scratch: &'a mut Scratch) -> Form<'a> {
        let _ = self.switches;
        scratch.ascii.clear();
        scratch.ascii.extend_from_slice(text);
        Form::Ascii(&scratch.ascii)
    }
}
