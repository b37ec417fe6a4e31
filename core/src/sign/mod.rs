//! Shingles, sketches and keys of texts.
