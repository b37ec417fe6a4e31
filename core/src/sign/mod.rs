//! Shingles, sketches and keys of texts.
//!
//! `tests/oracle/fingerprint.py` defines them. Whatever the path that a text takes, it has one result.

mod columns;
mod hashing;
pub mod keys;
mod mixing;
mod scheme;
mod shingles;
mod signer;
pub mod sketch;
mod words;

pub use columns::Columns;
pub use scheme::{Scheme, Secrets, Unit};
pub use signer::{Scratch, Signer};
