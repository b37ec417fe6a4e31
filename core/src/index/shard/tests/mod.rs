//! Tests of a shard, and what tests elsewhere need of one.

#[cfg(test)]
mod against_maps;
pub mod store;
