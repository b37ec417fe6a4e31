//! The index: which earlier documents each document of a batch nearly repeats.
//!
//! `judge` decides, by the rules that docs/architecture.md states, one document after the other.
//! `shard` knows where everything is that a decision reads, and writes down what it changes. They
//! meet in two places: a judgement asks a `Sight`, and the shard takes a `Decision`.

mod bytes;
pub mod decision;
pub mod record;
pub mod shard;
pub mod sight;
