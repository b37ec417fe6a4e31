//! What is fuzzed in the core of neardup, as plain functions of bytes.
//!
//! Each module is one target: its `run` reads what to do from the bytes, and panics if the core does
//! what it must not. `fuzz_targets` has them for libFuzzer. `tests/short.rs` runs them without it.

mod input;
pub mod markup;
pub mod naive;
pub mod pages;
pub mod shard;
mod side;
pub mod sign;
pub mod values;

pub type Target = (&'static str, fn(&[u8]));

/// All targets, by name.
pub const TARGETS: [Target; 5] = [
    ("sign", sign::run),
    ("markup", markup::run),
    ("pages", pages::run),
    ("values", values::run),
    ("shard", shard::run),
];
