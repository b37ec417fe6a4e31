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
    codes: Vec<u32>,
}

/// Normalises texts. Immutable: any number of threads may share it.
pub struct Normaliser {
    switches: Switches,
}

impl Normaliser {
    pub fn new(switches: Switches) -> Self {
        Self { switches }
    }

    /// Return the normal form of a text in UTF-8, in which lone surrogates may be encoded.
    pub fn form<'a>(&self, text: &[u8], scratch: &'a mut Scratch) -> Form<'a> {
        let _ = self.switches;
        if text.is_ascii() {
            scratch.ascii.clear();
            scratch.ascii.extend_from_slice(text);
            return Form::Ascii(&scratch.ascii);
        }
        scratch.codes.clear();
        let mut rest = text;
        while let Some((&first, mut others)) = rest.split_first() {
            let (mut code, more) = match first {
                0..0xC0 => (u32::from(first), 0),
                0xC0..0xE0 => (u32::from(first & 0x1F), 1),
                0xE0..0xF0 => (u32::from(first & 0x0F), 2),
                _ => (u32::from(first & 0x07), 3),
            };
            for _ in 0..more {
                let Some((&next, behind)) = others.split_first() else { break };
                code = code << 6 | u32::from(next & 0x3F);
                others = behind;
            }
            scratch.codes.push(code);
            rest = others;
        }
        Form::Wide(&scratch.codes)
    }
}
