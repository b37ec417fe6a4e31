//! Tables of what code points become, filled page by page on first use.

use std::sync::{Arc, LazyLock, OnceLock};

use super::unicode::CODE_POINTS;

const PAGE: usize = 256;
const PAGES: usize = CODE_POINTS as usize / PAGE;

/// What a code point becomes, and what else is to know of it.
///
/// Bits 0 to 20: what changes of its bits, or where its form begins in the pool of the page.
/// Bits 21 to 25: how many code points its form has, if it doesn't have one.
/// Bits 26 to 31: `MANY` and other flags.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Entry(u32);

const VALUE: u32 = (1 << 21) - 1;
const MANY: u32 = 1 << 26;
/// The code point joins what is before it. Its form is what replaces it.
pub const JOINS: u32 = 1 << 27;
/// Its form may have more code points than it has bytes.
pub const EXPANDS: u32 = 1 << 28;
/// It has an iota below, so its form holds only if no mark follows.
pub const WITH_IOTA: u32 = 1 << 29;

impl Entry {
    /// Return whether the form is one code point, and there are no flags.
    #[inline(always)]
    pub fn is_plain(self) -> bool {
        self.0 <= VALUE
    }

    #[inline(always)]
    pub fn has(self, flag: u32) -> bool {
        self.0 & flag != 0
    }

    /// Return the form of `point`, if it is one code point.
    #[inline(always)]
    pub fn single(self, point: u32) -> Option<u32> {
        (self.0 & MANY == 0).then_some(point ^ self.0 & VALUE)
    }

    /// Return the form of `point`, which is plain.
    #[inline(always)]
    pub fn plain(self, point: u32) -> u32 {
        point ^ self.0
    }

    /// Return how many code points the form has.
    #[inline(always)]
    pub fn len(self) -> usize {
        if self.0 & MANY == 0 { 1 } else { (self.0 >> 21 & 31) as usize }
    }

    /// Return whether the code point is dropped.
    #[inline(always)]
    pub fn is_dropped(self) -> bool {
        self.0 & (MANY | 31 << 21 | JOINS) == MANY
    }
}

/// The entries of 256 code points.
pub struct Page {
    entries: [Entry; PAGE],
    pool: Vec<u32>,
}

/// The page of code points that don't change: most of the pages of Chinese, for instance.
static IDENTITY: LazyLock<Arc<Page>> =
    LazyLock::new(|| Arc::new(Page { entries: [Entry(0); PAGE], pool: Vec::new() }));

impl Page {
    #[inline(always)]
    pub fn entry(&self, point: u32) -> Entry {
        self.entries[(point & 0xFF) as usize]
    }

    /// Append the form of `point`, whose entry is `entry`.
    #[inline(always)]
    pub fn append(&self, entry: Entry, point: u32, out: &mut Vec<u32>) {
        match entry.single(point) {
            Some(form) => out.push(form),
            None => out.extend(self.many(entry)),
        }
    }

    /// Return a form that doesn't have one code point.
    #[inline(always)]
    fn many(&self, entry: Entry) -> &[u32] {
        let first = (entry.0 & VALUE) as usize;
        &self.pool[first..first + entry.len()]
    }
}

/// What a code point becomes.
pub trait Rule {
    /// Append the form of `point`, of at most 31 code points, and return its flags.
    fn apply(&self, point: u32, form: &mut Vec<u32>) -> u32;
}

/// A rule, and a table of its answers. Any number of threads may share it.
pub struct Mapping<R> {
    rule: R,
    pages: Box<[OnceLock<Arc<Page>>]>,
}

impl<R: Rule> Mapping<R> {
    pub fn new(rule: R) -> Self {
        let pages = (0..PAGES).map(|_| OnceLock::new()).collect();
        Self { rule, pages }
    }

    /// Return the page of `point`.
    #[inline(always)]
    pub fn page(&self, point: u32) -> &Page {
        let number = point as usize / PAGE;
        match self.pages[number].get() {
            Some(page) => page,
            None => self.fill(number),
        }
    }

    /// Append the form of `point`.
    #[inline(always)]
    pub fn append(&self, point: u32, out: &mut Vec<u32>) {
        let page = self.page(point);
        page.append(page.entry(point), point, out);
    }

    /// Return the form of `point`.
    #[inline(always)]
    pub fn form(&self, point: u32) -> impl Iterator<Item = u32> {
        let page = self.page(point);
        let entry = page.entry(point);
        let single = entry.single(point);
        let many = if single.is_some() { &[] } else { page.many(entry) };
        single.into_iter().chain(many.iter().copied())
    }

    #[cold]
    #[inline(never)]
    fn fill(&self, number: usize) -> &Page {
        self.pages[number].get_or_init(|| {
            let mut pool = Vec::new();
            let mut form = Vec::new();
            let first = (number * PAGE) as u32;
            let entries = std::array::from_fn(|place| {
                let point = first + place as u32;
                form.clear();
                let flags = self.rule.apply(point, &mut form);
                if let [single] = form[..] {
                    return Entry(point ^ single | flags);
                }
                let (begin, length) = (pool.len() as u32, form.len() as u32);
                assert!(length < 32, "the form of U+{point:04X} is too long");
                pool.extend_from_slice(&form);
                Entry(begin | length << 21 | MANY | flags)
            });
            if entries.iter().all(|entry: &Entry| entry.0 == 0) {
                return Arc::clone(&IDENTITY);
            }
            Arc::new(Page { entries, pool })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Doubled;

    impl Rule for Doubled {
        fn apply(&self, point: u32, form: &mut Vec<u32>) -> u32 {
            match point {
                0x41 => form.extend([0x41, 0x42]),
                0x42 => {}
                0x43 => form.push(0x63),
                _ => form.push(point),
            }
            if point == 0x44 { JOINS } else { 0 }
        }
    }

    #[test]
    fn forms_have_any_length() {
        let mapping = Mapping::new(Doubled);
        let mut out = Vec::new();
        for point in [0x41, 0x42, 0x43, 0x44, 0x4E00, 0x10_FFFF] {
            mapping.append(point, &mut out);
        }
        assert_eq!(out, [0x41, 0x42, 0x63, 0x44, 0x4E00, 0x10_FFFF]);
        let entry = |point| mapping.page(point).entry(point);
        assert!(entry(0x42).is_dropped() && !entry(0x41).is_dropped());
        assert!(entry(0x43).is_plain() && !entry(0x44).is_plain() && entry(0x44).has(JOINS));
    }
}
