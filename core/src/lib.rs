//! The compiled core of neardup.
//!
//! It computes and holds state; it does no I/O: it opens no file, knows no clock, starts no thread.
//! `python` is the only module that knows Python. `lsh/_core.pyi` describes what Python sees.
#![deny(unsafe_op_in_unsafe_fn, clippy::undocumented_unsafe_blocks)]

#[cfg(not(target_endian = "little"))]
compile_error!("sketches, keys and pages are little-endian");

pub mod index;
pub mod payload;
#[cfg(feature = "python")]
mod python;
pub mod sign;
pub mod text;
pub mod unwound;
mod vectors;
