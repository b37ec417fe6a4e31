//! Filters that rule out runs without reading their pages.
//!
//! On a feed of mostly new documents, nearly every look-up is of an absent bucket. Each run has a
//! Bloom filter, which stays in memory. A posting has four bits in each of two words. Only what has
//! those of the first word is looked up in the second, so nearly every look-up is one memory access
//! (compare Putze, Sanders, Singler, "Cache-, hash- and space-efficient Bloom filters", WEA 2007).
//! The highest bits of a key choose the first word. The second one is among those of the same page.
//!
//! The filters of a level are interleaved word by word, so that one memory access asks up to eight
//! runs. Each has a lane of a group.

use std::ops::Range;

use super::checksum;
use super::huge;
use super::prefetch::prefetch;
use super::run::{FAN_IN, Posting, Shape};
use crate::index::reader::Damaged;

/// The lanes of a group, by level; above, one. They take memory before a run uses them, and the
/// filters of higher levels are large. To add lanes later would copy a hundred megabytes at once.
const LANES: [usize; 2] = [FAN_IN, FAN_IN / 2];
fn lanes_of(level: u8) -> usize {
    LANES.get(usize::from(level)).copied().unwrap_or(1)
}

/// How many look-ups are under way at a time, so that they wait for memory together.
const AHEAD: usize = 24;
const LINE_WORDS: usize = 8;

/// The words that some pages of one column have in the filter of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    pub run: u32,
    pub slot: u8,
    pub page: u32,
    pub words: Vec<u64>,
}

impl Part {
    /// The part that successive pages have, with their postings in it.
    pub fn filled(
        run: u32,
        slot: u8,
        shape: Shape,
        pages: Range<u32>,
        postings: &[Posting],
    ) -> Self {
        let start = pages.start as usize * shape.page_words;
        let mut words = vec![0; pages.len() * shape.page_words];
        for posting in postings {
            words[first_word(posting.hash, shape) - start] |= four_bits(posting.hash);
            words[second_word(posting.hash, shape) - start] |= four_bits(mixed(posting.hash));
        }
        Self { run, slot, page: pages.start, words }
    }

    pub fn pack(&self) -> Vec<u8> {
        let mut packed = Vec::with_capacity(8 * self.words.len() + checksum::BYTES);
        self.words.iter().for_each(|word| packed.extend_from_slice(&word.to_le_bytes()));
        packed
    }

    pub fn unpack(run: u32, slot: u8, page: u32, packed: &[u8]) -> Result<Self, Damaged> {
        let (words, rest) = packed.as_chunks::<8>();
        if !rest.is_empty() {
            return Err(Damaged(format!("{} bytes are not a filter", packed.len())));
        }
        let words = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
        Ok(Self { run, slot, page, words })
    }
}

fn first_word(hash: u64, shape: Shape) -> usize {
    (((hash >> 32) * shape.words() as u64) >> 32) as usize
}

fn second_word(hash: u64, shape: Shape) -> usize {
    let within = (mixed(hash) * shape.page_words as u64) >> 32;
    shape.page(hash) as usize * shape.page_words + within as usize
}

/// A number of 32 bits that chooses the second word of a key, and the bits in it.
fn mixed(hash: u64) -> u64 {
    hash.wrapping_mul(0xD6E8_FEB8_6659_FD93) >> 32
}

/// A word with the bits set that the lowest 24 bits of a number choose.
fn four_bits(number: u64) -> u64 {
    let bit = |shift: u32| 1u64 << (number >> shift & 63);
    bit(0) | bit(6) | bit(12) | bit(18)
}

/// The filters of up to eight runs of one shape.
struct Group {
    shape: Shape,
    /// The run that has each lane; none: it is free.
    lanes: Vec<Option<u32>>,
    /// The lanes that are asked, a bit each; the filters of others aren't whole yet.
    asked: u32,
    /// For each column and word of a filter, that word of each lane.
    words: Vec<u64>,
    /// Where they begin, so that eight lanes are one line of the cache.
    base: usize,
}

impl Group {
    fn new(columns: usize, shape: Shape, width: usize) -> Self {
        let words = huge::zeros::<u64>(columns * shape.words() * width + LINE_WORDS);
        let base = words.as_ptr().align_offset(8 * LINE_WORDS).min(LINE_WORDS);
        Self { shape, lanes: vec![None; width], asked: 0, words, base }
    }

    fn lane_of(&self, run: u32) -> Option<usize> {
        self.lanes.iter().position(|lane| *lane == Some(run))
    }

    fn put(&mut self, lane: usize, part: &Part) {
        let width = self.lanes.len();
        let first = usize::from(part.slot) * self.shape.words()
            + part.page as usize * self.shape.page_words;
        let words = self.words[self.base + first * width..].chunks_exact_mut(width);
        for (word, to) in part.words.iter().zip(words) {
            to[lane] = *word;
        }
    }

    fn ask(&mut self, lane: usize) {
        self.asked |= 1 << lane;
    }

    fn free(&mut self, lane: usize) {
        self.asked &= !(1 << lane);
        self.lanes[lane] = None;
    }

    /// Call `found` with the place of each key of a column that a run may have, and that run.
    fn find(&self, slot: u8, hashes: &[u64], found: &mut impl FnMut(usize, u32)) {
        match self.lanes.len() {
            8 => self.find_among::<8>(slot, hashes, found),
            4 => self.find_among::<4>(slot, hashes, found),
            _ => self.find_among::<1>(slot, hashes, found),
        }
    }

    fn find_among<const WIDTH: usize>(
        &self,
        slot: u8,
        hashes: &[u64],
        found: &mut impl FnMut(usize, u32),
    ) {
        let column = usize::from(slot) * self.shape.words();
        let rows = self.words[self.base..].as_chunks::<WIDTH>().0;
        let rows = &rows[column..column + self.shape.words()];
        let place = |hash| &rows[first_word(hash, self.shape)];
        for &hash in hashes.iter().take(AHEAD) {
            prefetch(place(hash));
        }
        let mut passed = Vec::new();
        for (at, &hash) in hashes.iter().enumerate() {
            if let Some(&next) = hashes.get(at + AHEAD) {
                prefetch(place(next));
            }
            let may = have(place(hash), four_bits(hash)) & self.asked;
            if may != 0 {
                let second = second_word(hash, self.shape);
                prefetch(&rows[second]);
                passed.push((at, may, second));
            }
        }
        for (at, may, second) in passed {
            let mut may = may & have(&rows[second], four_bits(mixed(hashes[at])));
            while may != 0 {
                let lane = may.trailing_zeros() as usize;
                may &= may - 1;
                if let Some(run) = self.lanes[lane] {
                    found(at, run);
                }
            }
        }
    }
}

/// Which words have all these bits: a bit each.
fn have<const WIDTH: usize>(words: &[u64; WIDTH], bits: u64) -> u32 {
    let mut may = 0;
    for (lane, word) in words.iter().enumerate() {
        may |= u32::from(word & bits == bits) << lane;
    }
    may
}

/// Room for the filter of another run; see `Filters::room`.
pub struct Room {
    pub level: u8,
    /// For a run that finds no free lane.
    group: Option<Group>,
}

/// The filters of all runs.
pub struct Filters {
    columns: usize,
    run_documents: u32,
    levels: Vec<Vec<Group>>,
}

impl Filters {
    pub fn new(columns: usize, run_documents: u32) -> Self {
        Self { columns, run_documents, levels: Vec::new() }
    }

    pub fn size_bytes(&self) -> usize {
        self.levels.iter().flatten().map(|group| 8 * group.words.len()).sum()
    }

    /// Make room for another run; see `reserve`.
    ///
    /// `others` is how many more runs of this level have got room that isn't reserved yet.
    pub fn room(&self, level: u8, others: usize) -> Room {
        let groups = self.levels.get(usize::from(level)).map_or(&[][..], Vec::as_slice);
        let free = groups.iter().flat_map(|group| &group.lanes).filter(|lane| lane.is_none());
        let group = (free.count() <= others).then(|| self.group(level));
        Room { level, group }
    }

    fn group(&self, level: u8) -> Group {
        Group::new(self.columns, Shape::of(self.run_documents, level), lanes_of(level))
    }

    /// Whether the system has the memory for another group of a level.
    pub fn fits(&self, level: u8) -> bool {
        let words = self.columns * Shape::of(self.run_documents, level).words() * lanes_of(level);
        huge::fits::<u64>(words + LINE_WORDS)
    }

    /// Give a run the room that was made. If another one has taken that, there is more.
    ///
    /// It isn't asked before `ask`, and its filter must have all parts by then.
    pub fn reserve(&mut self, run: u32, room: Room) {
        let level = usize::from(room.level);
        if self.levels.len() <= level {
            self.levels.resize_with(level + 1, Vec::new);
        }
        let groups = &self.levels[level];
        if !groups.iter().any(|group| group.lanes.contains(&None)) {
            let group = room.group.unwrap_or_else(|| self.group(room.level));
            self.levels[level].push(group);
        }
        let mut lanes = self.levels[level].iter_mut().flat_map(|group| &mut group.lanes);
        *lanes.find(|lane| lane.is_none()).expect("a group was added") = Some(run);
    }

    pub fn put(&mut self, part: &Part) {
        if let Some((group, lane)) = self.lane_of(part.run) {
            group.put(lane, part);
        }
    }

    /// Ask a run from now on.
    pub fn ask(&mut self, run: u32) {
        if let Some((group, lane)) = self.lane_of(run) {
            group.ask(lane);
        }
    }

    /// Ask a run no more. Memory is released once no lane of a group is used.
    pub fn remove(&mut self, run: u32) {
        if let Some((group, lane)) = self.lane_of(run) {
            group.free(lane);
        }
        for groups in &mut self.levels {
            groups.retain(|group| group.lanes.iter().any(Option::is_some));
        }
    }

    fn lane_of(&mut self, run: u32) -> Option<(&mut Group, usize)> {
        let groups = self.levels.iter_mut().flatten();
        groups.filter_map(|group| group.lane_of(run).map(|lane| (group, lane))).next()
    }

    /// Call `found` with the place of each key of a column that a run may have, and that run.
    ///
    /// No other run has one of them.
    pub fn find(&self, slot: u8, hashes: &[u64], mut found: impl FnMut(usize, u32)) {
        for group in self.levels.iter().flatten() {
            group.find(slot, hashes, &mut found);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENTS: u32 = 1000;

    fn hashes(run: u64) -> Vec<u64> {
        (0..u64::from(DOCUMENTS))
            .map(|at| (run << 32 | at).wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15))
            .collect()
    }

    fn add(filters: &mut Filters, level: u8, run: u32) {
        let shape = Shape::of(DOCUMENTS, level);
        filters.reserve(run, filters.room(level, 0));
        for slot in 0..2 {
            for page in 0..shape.pages() {
                let own = hashes(u64::from(run)).into_iter();
                let own = own.filter(|&hash| shape.page(hash) == page);
                let postings: Vec<Posting> =
                    own.map(|hash| Posting { hash, document: 0 }).collect();
                let part = Part::filled(run, slot, shape, page..page + 1, &postings);
                let packed = part.pack();
                filters.put(&Part::unpack(run, slot, page, &packed).unwrap());
            }
        }
        filters.ask(run);
    }

    fn found(filters: &Filters, hashes: &[u64]) -> Vec<(usize, u32)> {
        let mut found = Vec::new();
        filters.find(1, hashes, |at, run| found.push((at, run)));
        found
    }

    #[test]
    fn runs_are_found_in_every_group_and_few_others_are() {
        let mut filters = Filters::new(2, DOCUMENTS);
        let runs: Vec<(u32, u8)> =
            (0..15).map(|run| (run, [0, 0, 0, 1, 2][run as usize % 5])).collect();
        for &(run, level) in &runs {
            add(&mut filters, level, run);
        }
        for &(run, _) in &runs {
            let some = found(&filters, &hashes(run.into()));
            let own: Vec<usize> = some.iter().filter(|f| f.1 == run).map(|f| f.0).collect();
            assert_eq!(own.len(), DOCUMENTS as usize, "run {run}");
        }
        assert!(found(&filters, &hashes(99)).len() < 100);
    }

    #[test]
    fn runs_that_were_promised_the_same_room_all_get_some() {
        let mut filters = Filters::new(2, DOCUMENTS);
        for level in 0..3 {
            let rooms: Vec<Room> = (0..20).map(|_| filters.room(level, 0)).collect();
            add(&mut filters, level, 100 + u32::from(level));
            for (run, mut room) in (100 * u32::from(level) + 200..).zip(rooms) {
                room.group = room.group.filter(|_| run % 3 == 0);
                filters.reserve(run, room);
                assert!(filters.lane_of(run).is_some());
            }
        }
    }

    #[test]
    fn runs_that_are_removed_or_not_whole_are_not_found() {
        let mut filters = Filters::new(2, DOCUMENTS);
        (0..9).for_each(|run| add(&mut filters, 0, run));
        filters.remove(3);
        filters.reserve(10, filters.room(0, 0));
        let some = found(&filters, &hashes(3));
        assert!(some.iter().all(|&(_, run)| run != 3 && run != 10));
        let all = filters.size_bytes();
        (0..9).for_each(|run| filters.remove(run));
        assert!(filters.size_bytes() < all);
        filters.remove(10);
        assert_eq!(filters.size_bytes(), 0);
    }
}
