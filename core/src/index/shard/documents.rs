//! What is read by document: records, renewals, verdicts, and earlier documents with the same id.

use std::collections::hash_map::Entry;

use super::Shard;
use super::keyspace::{self, number_key};
use super::reading::{Purpose, Reading};
use super::record_pages::{page_key, page_of};
use crate::index::sight::Damaged;

impl Reading {
    /// Return the record of a document, if it is at hand.
    pub(super) fn record_here<'a>(&'a self, shard: &'a Shard, number: u64) -> Option<&'a [u8]> {
        shard.record_here(number).or_else(|| {
            let (page, place) = page_of(number);
            self.pages.get(&page)?.as_ref()?.get(place)
        })
    }

    /// Return whether the record of a document is at hand; else it will be read.
    ///
    /// An error says that there is none.
    pub(super) fn has_record(&mut self, shard: &Shard, number: u64) -> Result<bool, Damaged> {
        self.used_records.insert(number);
        if self.record_here(shard, number).is_some() {
            return Ok(true);
        }
        let (page, _) = page_of(number);
        let missing = || Damaged(format!("document {number} has no record"));
        match self.pages.get(&page) {
            Some(Some(_)) => return Err(missing()),
            Some(None) => {}
            None if number >= shard.inserted => return Err(missing()),
            None => {
                self.pages.insert(page, None);
                self.want(page_key(page), Purpose::Page(page));
            }
        }
        Ok(false)
    }

    pub(super) fn renewals(&mut self, number: u64) -> Option<&Vec<(u8, i64)>> {
        if let Entry::Vacant(unread) = self.renewals.entry(number) {
            unread.insert(None);
            self.want(number_key(keyspace::RENEWALS, number), Purpose::Renewals(number));
        }
        self.renewals.get(&number)?.as_ref()
    }

    pub(super) fn verdict(&mut self, number: u64) -> Option<&Option<Vec<u8>>> {
        if let Entry::Vacant(unread) = self.verdicts.entry(number) {
            unread.insert(None);
            self.want(number_key(keyspace::VERDICTS, number), Purpose::Verdict(number));
        }
        self.verdicts.get(&number)?.as_ref()
    }

    /// The earlier document with the same key of its id, if there is one.
    pub(super) fn previous(&mut self, number: u64) -> Option<Option<u64>> {
        if let Entry::Vacant(unread) = self.previous.entry(number) {
            unread.insert(None);
            self.want(number_key(keyspace::PREVIOUS, number), Purpose::Previous(number));
        }
        *self.previous.get(&number)?
    }
}
