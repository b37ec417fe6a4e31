//! The earlier documents with the key of an id, as they are stored under the newest one's number.
//!
//! A list grows as a number does that is written with eight digits. An entry of height 0 is a
//! document. Once eight entries have the same height, one of the next height takes their place: it
//! stands for a document, and for all that is stored under that one's number. So a list has seven
//! entries of each height at most, a document that comes writes one list, and all documents are
//! found in as many rounds as there are heights.
//!
//! An entry is its height (1 byte) and its document's number (8), little-endian.

use rustc_hash::FxHashSet;

use super::search::Search;
use crate::index::bytes::Cursor;
use crate::index::reader::Damaged;

const FAN_IN: usize = 8;
/// A shard has fewer than 8^11 documents.
const MOST_HEIGHT: u8 = 11;

/// Heights and numbers; heights descend, and numbers ascend.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IdList(Vec<(u8, u64)>);

impl IdList {
    pub fn entries(&self) -> &[(u8, u64)] {
        &self.0
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Leave out the documents below a number.
    pub fn prune(&mut self, first: u64) {
        let gone = self.0.partition_point(|&(_, number)| number < first);
        self.0.drain(..gone);
    }

    /// Append the document under whose number the list is. Return whether it must stay there: an
    /// entry refers to it.
    pub fn push(&mut self, number: u64) -> bool {
        self.0.push((0, number));
        let mut height = 0;
        while self.0.iter().rev().take_while(|entry| entry.0 == height).count() == FAN_IN {
            self.0.truncate(self.0.len() - FAN_IN);
            height += 1;
            self.0.push((height, number));
        }
        height > 0
    }

    pub fn pack(&self) -> Vec<u8> {
        let entries = self.0.iter();
        entries
            .flat_map(|(height, number)| [&[*height][..], &number.to_le_bytes()].concat())
            .collect()
    }

    /// The list under a number. An error says that it can't be there.
    pub fn unpack(under: u64, packed: &[u8]) -> Result<Self, Damaged> {
        let wrong =
            || Damaged(format!("{} bytes are no list of documents before {under}", packed.len()));
        let mut left = Cursor(packed);
        let mut entries: Vec<(u8, u64)> = Vec::new();
        while !left.is_empty() {
            let (height, number) = left.u8().zip(left.u64()).ok_or_else(wrong)?;
            let follows = entries.last().is_none_or(|last| height <= last.0 && number > last.1);
            let alike = entries.iter().rev().take_while(|entry| entry.0 == height).count();
            if !follows || alike + 1 >= FAN_IN || height > MOST_HEIGHT || number >= under {
                return Err(wrong());
            }
            entries.push((height, number));
        }
        Ok(Self(entries))
    }
}

/// The documents with one key of their ids, as far as they are known.
#[derive(Debug)]
pub struct Chain {
    pub search: Search,
    /// The newest one, once it was found.
    pub newest: Option<u64>,
    pub begun: bool,
    /// The documents whose lists are or were read, and those whose lists weren't looked at.
    pub listed: FxHashSet<u64>,
    pub open_lists: Vec<u64>,
    /// All documents, and those whose records weren't looked at.
    pub found: FxHashSet<u64>,
    pub open: Vec<u64>,
    /// The documents that were not forgotten, with the places of their ids.
    numbers: Vec<(u64, usize)>,
    ids: Vec<Vec<u8>>,
}

impl Chain {
    pub fn new(search: Search) -> Self {
        Self {
            search,
            newest: None,
            begun: false,
            listed: FxHashSet::default(),
            open_lists: Vec::new(),
            found: FxHashSet::default(),
            open: Vec::new(),
            numbers: Vec::new(),
            ids: Vec::new(),
        }
    }

    pub fn is_whole(&self) -> bool {
        self.begun && self.open_lists.is_empty() && self.open.is_empty()
    }

    pub fn add(&mut self, number: u64, with_list: bool) {
        if self.found.insert(number) {
            self.open.push(number);
        }
        if with_list && self.listed.insert(number) {
            self.open_lists.push(number);
        }
    }

    pub fn add_id(&mut self, number: u64, id: &[u8]) {
        let place = self.ids.iter().position(|other| other == id).unwrap_or_else(|| {
            self.ids.push(id.to_vec());
            self.ids.len() - 1
        });
        self.numbers.push((number, place));
    }

    /// The documents with an id, newest first.
    pub fn with_id(&self, id: &[u8]) -> Vec<u64> {
        let own = self.numbers.iter().filter(|(_, place)| self.ids[*place] == id);
        let mut numbers: Vec<u64> = own.map(|(number, _)| *number).collect();
        numbers.sort_unstable_by(|one, other| other.cmp(one));
        numbers
    }

    /// Whether one of the documents is among some, which ascend.
    pub fn has_any(&self, some: &[u64]) -> bool {
        self.numbers.iter().any(|(number, _)| some.binary_search(number).is_ok())
    }

    /// What is left of the documents without some, which ascend, if any is forgotten: ascending.
    pub fn left(&self, forgotten: &[u64]) -> Option<Vec<u64>> {
        let numbers = self.numbers.iter().map(|(number, _)| *number);
        let mut left: Vec<u64> =
            numbers.filter(|number| forgotten.binary_search(number).is_err()).collect();
        left.sort_unstable();
        (left.len() < self.found.len()).then_some(left)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// Follow a list, level by level; return the documents, and how many levels there are.
    fn followed(stored: &BTreeMap<u64, IdList>, newest: u64) -> (Vec<u64>, usize) {
        let (mut found, mut open, mut levels) = (vec![newest], vec![newest], 0);
        while !open.is_empty() {
            let lists = open.iter().filter_map(|number| stored.get(number));
            let entries: Vec<(u8, u64)> = lists.flat_map(|list| list.entries()).copied().collect();
            let new = entries.iter().filter(|entry| !found.contains(&entry.1));
            let new: std::collections::BTreeSet<(u8, u64)> = new.copied().collect();
            found.extend(new.iter().map(|entry| entry.1));
            open = new.iter().filter(|entry| entry.0 > 0).map(|entry| entry.1).collect();
            levels += 1;
        }
        found.sort_unstable();
        (found, levels)
    }

    #[test]
    fn all_documents_are_found_in_few_levels_and_few_lists_are_kept() {
        let (mut stored, mut list) = (BTreeMap::new(), IdList::default());
        for number in 0..3000u64 {
            stored.insert(3 * number, list.clone());
            assert_eq!(IdList::unpack(3 * number, &list.pack()).as_ref(), Ok(&list));
            if number % 500 == 499 {
                let (found, levels) = followed(&stored, 3 * number);
                assert_eq!(found, (0..=number).map(|one| 3 * one).collect::<Vec<_>>());
                assert!(levels <= 5);
            }
            if !list.push(3 * number) {
                stored.remove(&(3 * number));
            }
        }
        assert!(stored.len() < 3000 / 7);
        list.prune(2900 * 3);
        assert!(list.entries().iter().all(|entry| entry.1 >= 2900 * 3));
    }

    #[test]
    fn what_cannot_be_a_list_is_refused() {
        let packed = |entries: &[(u8, u64)]| IdList(entries.to_vec()).pack();
        assert!(IdList::unpack(9, &packed(&[(1, 3), (0, 4), (0, 8)])).is_ok());
        let wrong: [&[(u8, u64)]; 5] =
            [&[(0, 9)], &[(0, 4), (0, 4)], &[(0, 3), (1, 4)], &[(12, 1)], &[(0, 5), (0, 4)]];
        assert!(wrong.iter().all(|entries| IdList::unpack(9, &packed(entries)).is_err()));
        let eight: Vec<(u8, u64)> = (0..8).map(|number| (0, number)).collect();
        assert!(IdList::unpack(9, &packed(&eight)).is_err());
        assert!(IdList::unpack(9, &[0; 8]).is_err());
    }
}
