//! What all judgements of an index have in common.

use super::overflow::Overflow;
use super::rules::Rules;
use super::similar::Measures;

/// The rules of an index and what follows from them. It never changes.
#[derive(Debug)]
pub struct IndexConfig {
    pub rules: Rules,
    /// The columns' numbers, by place.
    pub columns: Vec<u8>,
    /// How many slots each sketch has.
    pub slots: usize,
    pub(super) leaders: usize,
    pub(super) measures: Measures,
    pub(super) overflow: Overflow,
}

impl IndexConfig {
    /// `columns` are the columns' numbers, maybe none; `slots` is how many each sketch has.
    pub fn new(rules: Rules, columns: Vec<u8>, slots: usize) -> Result<Self, String> {
        rules.check()?;
        if slots == 0 || u16::try_from(slots).is_err() {
            return Err(format!("slots: got {slots}, takes 1 to 65,535"));
        }
        if (1..columns.len()).any(|at| columns[..at].contains(&columns[at])) {
            return Err("columns: takes different numbers".into());
        }
        Ok(Self {
            leaders: rules.leaders(),
            measures: Measures::of(&rules, slots),
            overflow: Overflow::new(&columns, slots),
            rules,
            columns,
            slots,
        })
    }

    /// The estimated similarity of two sketches of which so many slots are equal.
    pub fn similarity(&self, equal: u16) -> f64 {
        self.measures.estimate(u32::from(equal))
    }
}
