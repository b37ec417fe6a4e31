//! The index: which earlier documents each document of a batch nearly repeats.
//!
//! `judge` decides, one document after the other, by the rules in docs/explanation/architecture.md.
//! `shard` knows where everything is that a decision reads, and writes down what it changes. They
//! meet in two places: the judge asks an `IndexReader`, and the shard takes a `Decision`.

/// Return the value that is ready, or `Pending` from the function.
macro_rules! ready {
    ($asked:expr) => {
        match $asked {
            Poll::Ready(value) => value,
            Poll::Pending => return Ok(Poll::Pending),
        }
    };
}

pub mod batch;
mod buckets;
mod bytes;
mod candidates;
mod changes;
pub mod clock;
mod collisions;
pub mod config;
pub mod decision;
mod ids;
pub mod in_memory;
pub mod judge;
mod naming;
mod overflow;
mod query;
pub mod reader;
pub mod record;
mod repeated;
pub mod rules;
pub mod shard;
pub mod similar;
pub mod verdict;
