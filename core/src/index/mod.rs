//! The index: which earlier documents each document of a batch nearly repeats.
//!
//! `judge` decides, one document after the other, by the rules in docs/explanation/architecture.md.
//! `shard` knows where everything is that a decision reads, and writes down what it changes. They
//! meet in two places: a judgement asks a `Sight`, and the shard takes a `Decision`.

/// Return the value of what is at hand, or `Unread` from the function.
macro_rules! seen {
    ($asked:expr) => {
        match $asked {
            Seen::Here(value) => value,
            Seen::Unread => return Ok(Seen::Unread),
        }
    };
}

pub mod batch;
mod buckets;
mod bytes;
mod cells;
mod changes;
pub mod clock;
pub mod court;
pub mod decision;
mod finer;
pub mod in_memory;
pub mod judge;
mod judged;
mod known;
mod naming;
pub mod query;
pub mod record;
mod repeated;
pub mod rules;
mod same_id;
pub mod shard;
pub mod sight;
pub mod similar;
pub mod verdict;
mod walk;
