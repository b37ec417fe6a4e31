//! One shard of the index: where everything is that the judge reads, and what a decision writes.
//!
//! A shard does no I/O. It names keys of its store, takes their values, and returns writes. In
//! memory it has the newest postings (`memtable`), the filters of all runs (`filter`), the list of
//! runs (`run_list`) with the time slices, and what was read or written lately (`recent`). All else
//! is in the store, under the keys of `keys`.
//!
//! A new bucket has one document, and most keep only that one. Such a posting is no key of the store,
//! which would cost sorting it several times over. Postings are gathered in the memtable, which is
//! written as a sorted run when it has enough documents. Runs of a level are merged into one of the
//! next, a little with every write (`merge`). So each posting is written about once for every
//! eightfold growth of the shard, and a look-up asks as many filters as there are levels. A bucket
//! keeps its posting when it grows. The grown bucket is a key of its own, which stands above the posting,
//! and another posting marks that there is one: so a look-up asks for that key only if it exists.
//!
//! # How a shard is driven
//!
//! To open one, read what it names:
//!
//! ```text
//! opening = Opening::new(settings, inserted)       inserted: how many documents were inserted
//! opening.handle_values(values of opening.keys())
//! for range in opening.ranges(): opening.take(key, value) for each of its keys, ascending
//! shard = opening.finish()
//! ```
//!
//! A `Plan` leads a batch, or queries, through a shard. Several threads may read at once. Nothing may
//! be read during `apply`.
//!
//! ```text
//! plan = Plan::new(shard, config, batch, clock)    looks up all postings in memory
//! plan.handle_values(values of plan.poll_reads())  until nothing has to be read
//! decision = plan.decision()                       a query ends here
//! plan.prepare()
//! plan.handle_values(values of plan.poll_reads())  until nothing has to be read
//! (writes, clock) = plan.write()
//! put writes.tables into files, then the rest into the store, in one atomic write
//! plan.apply(shard)                                once that write is in the store
//! ```
//!
//! `Writes` says in which order its parts are written. If a write fails, drop the shard, and open
//! it again.

mod bucket;
pub mod checksum;
mod commit;
pub mod contents;
mod fetch;
mod filter;
mod huge;
mod id_chains;
pub mod id_list;
mod implied;
pub mod keys;
pub mod layout;
pub mod memtable;
mod merge;
pub mod open;
pub mod plan;
mod prefetch;
mod reader;
pub mod reads;
mod recent;
pub mod record_pages;
pub mod run;
pub mod run_list;
mod search;
pub mod slices;
pub mod state;
#[cfg(any(test, feature = "testing"))]
pub mod tests;
mod write;
pub mod writes;
