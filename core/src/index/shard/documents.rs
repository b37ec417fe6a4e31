//! What is read by document: records, renewals, verdicts, lists of ids.

use std::collections::hash_map::Entry;

use super::Shard;
use super::fetch::{Fetcher, Purpose};
use super::id_list::IdList;
use super::keys::{self, number_key};
use super::recent::Age;
use super::record_pages::{RecordPage, page_key, page_of};
use crate::index::reader::Damaged;

impl Fetcher {
    /// Return the record of a document, if it is at hand.
    pub(super) fn record_here<'a>(&'a self, shard: &'a Shard, number: u64) -> Option<&'a [u8]> {
        shard.find_record(number).map(|(record, _)| record).or_else(|| self.read_record(number))
    }

    /// Return the record of a document, if it was read.
    pub(super) fn read_record(&self, number: u64) -> Option<&[u8]> {
        let (page, place) = page_of(number);
        self.page(page)?.get(place)
    }

    /// Return whether the record of a document is at hand; else it will be read.
    ///
    /// An error says that there is none.
    pub(super) fn has_record(&mut self, shard: &Shard, number: u64) -> Result<bool, Damaged> {
        if let Some((_, age)) = shard.find_record(number) {
            self.note_record(number, age);
            return Ok(true);
        }
        let (page, place) = page_of(number);
        let missing = || Damaged(format!("document {number} has no record"));
        match self.pages.get(&page) {
            Some(Some(found)) if found.get(place).is_some() => {
                self.read_records.push(number);
                return Ok(true);
            }
            Some(Some(_)) => return Err(missing()),
            Some(None) => {}
            None if number >= shard.inserted => return Err(missing()),
            None => drop(self.has_page(page)),
        }
        Ok(false)
    }

    /// Return whether a page of records is at hand; else it will be read.
    pub(super) fn has_page(&mut self, page: u64) -> bool {
        if let Entry::Vacant(unread) = self.pages.entry(page) {
            unread.insert(None);
            self.want(page_key(page), Purpose::Page(page));
        }
        self.page(page).is_some()
    }

    pub(super) fn page(&self, page: u64) -> Option<&RecordPage> {
        self.pages.get(&page)?.as_ref()
    }

    /// Note that a record is asked for that is in memory.
    pub(super) fn note_record(&mut self, number: u64, age: Age) {
        if age == Age::Old {
            self.old_records.push(number);
        }
    }

    pub(super) fn renewals(&mut self, number: u64) -> Option<&Vec<(u8, i64)>> {
        if let Entry::Vacant(unread) = self.renewals.entry(number) {
            unread.insert(None);
            self.want(number_key(keys::RENEWALS, number), Purpose::Renewals(number));
        }
        self.renewals.get(&number)?.as_ref()
    }

    pub(super) fn verdict(&mut self, number: u64) -> Option<&Option<Vec<u8>>> {
        if let Entry::Vacant(unread) = self.verdicts.entry(number) {
            unread.insert(None);
            self.want(number_key(keys::VERDICTS, number), Purpose::Verdict(number));
        }
        self.verdicts.get(&number)?.as_ref()
    }

    /// The list of earlier documents with the same key of their ids, if there is one.
    pub(super) fn id_list(&mut self, number: u64) -> Option<Option<&IdList>> {
        if let Entry::Vacant(unread) = self.id_lists.entry(number) {
            unread.insert(None);
            self.want(number_key(keys::ID_LISTS, number), Purpose::IdList(number));
        }
        self.id_lists.get(&number)?.as_ref().map(Option::as_ref)
    }
}
