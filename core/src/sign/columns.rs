//! What signing returns for n texts.

/// The columns of n texts. Those of a blank text are zeros.
pub struct Columns {
    /// n times the number of slots.
    pub sketches: Vec<u8>,
    pub texts: Vec<u64>,
    pub shingles: Vec<u32>,
    /// Whether nothing is left of a text in its normal form, or it has no words if these are asked
    /// for.
    pub blank: Vec<bool>,
}

impl Columns {
    pub fn new(count: usize, slots: usize) -> Self {
        Self {
            sketches: vec![0; count * slots],
            texts: vec![0; count],
            shingles: vec![0; count],
            blank: vec![false; count],
        }
    }
}
