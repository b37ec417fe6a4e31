//! A plain index, by which tests judge and ask.

use std::collections::HashMap;
use std::sync::Arc;

use numpy::{PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::index::batch::{Batch, Forgotten};
use crate::index::court::Court;
use crate::index::decision::{Decision, Matches};
use crate::index::judge::Judgement;
use crate::index::plain;
use crate::index::query::Query;
use crate::index::rules::{Rules, SameId};
use crate::index::sight::{Damaged, Seen};

/// An index in hash maps. Its rules are those of a `lsh.index.BucketRules`.
#[pyclass]
pub struct PlainIndex {
    court: Arc<Court>,
    index: plain::PlainIndex,
    decision: Option<Decision>,
    /// How often the last judgement had to read.
    #[pyo3(get)]
    rounds: usize,
}

fn damaged(error: Damaged) -> PyErr {
    PyRuntimeError::new_err(error.0)
}

fn wrong(error: String) -> PyErr {
    PyValueError::new_err(error)
}

pub fn rules_of(rules: &Bound<'_, PyAny>) -> PyResult<Rules> {
    let same_id: String = rules.getattr("same_id")?.extract()?;
    Ok(Rules {
        threshold: rules.getattr("threshold")?.extract()?,
        absorb: rules.getattr("absorb")?.extract()?,
        capacity: rules.getattr("capacity")?.extract()?,
        max_matches: rules.getattr("max_matches")?.extract()?,
        window: rules.getattr("window_ms")?.extract()?,
        same_id: match &same_id[..] {
            "duplicate" => SameId::Duplicate,
            "replace" => SameId::Replace,
            "ignore" => SameId::Ignore,
            other => return Err(PyValueError::new_err(format!("same_id: got {other:?}"))),
        },
        containment: rules.getattr("containment")?.extract()?,
        containment_error: rules.getattr("containment_error")?.extract()?,
        rows: rules.getattr("rows")?.extract()?,
        crowded: rules.getattr("crowded")?.extract()?,
        now_rank: rules.getattr("now_rank")?.extract()?,
        now_of: rules.getattr("now_of")?.extract()?,
        now_least: rules.getattr("now_least")?.extract()?,
    })
}

type Found<'py> = Vec<(u64, f64, Bound<'py, PyBytes>, f64)>;

fn matches_of<'py>(py: Python<'py>, court: &Court, found: &Matches) -> HashMap<usize, Found<'py>> {
    let mut made = HashMap::new();
    for (row, ends) in found.starts.windows(2).enumerate() {
        let own = &found.matches[ends[0]..ends[1]];
        if !own.is_empty() {
            let each = own.iter().map(|one| {
                let id = PyBytes::new(py, &found.ids[one.id.clone()]);
                (one.sequence, court.similarity(one.equal), id, one.containment)
            });
            made.insert(row, each.collect());
        }
    }
    made
}

#[pymethods]
impl PlainIndex {
    #[new]
    fn new(rules: &Bound<'_, PyAny>, columns: Vec<u8>, slots: usize) -> PyResult<Self> {
        let court = Court::new(rules_of(rules)?, columns, slots).map_err(wrong)?;
        let index = plain::PlainIndex::new();
        Ok(Self { court: Arc::new(court), index, decision: None, rounds: 0 })
    }

    #[getter]
    fn moved_below(&self) -> u64 {
        self.index.moved_below
    }

    #[setter]
    fn set_moved_below(&mut self, number: u64) {
        self.index.moved_below = number;
    }

    /// Judge a batch; return matches, counts and dates. If `reluctant`, everything is read first.
    #[pyo3(signature = (batch, *, reluctant=false))]
    fn judge<'py>(
        &mut self,
        py: Python<'py>,
        batch: &Bound<'py, PyAny>,
        reluctant: bool,
    ) -> PyResult<Bound<'py, PyDict>> {
        let batch = Arc::new(batch_of(batch)?);
        let court = &self.court;
        let mut judgement =
            Judgement::new(court.clone(), batch.clone(), &self.index.clock).map_err(wrong)?;
        let mut sight = self.index.sight(court, &batch, reluctant);
        self.rounds = 0;
        let decision = loop {
            match judgement.step(&mut sight).map_err(damaged)? {
                Seen::Here(decision) => break decision,
                Seen::Unread if sight.read() == 0 => {
                    return Err(PyRuntimeError::new_err("nothing was asked for"));
                }
                Seen::Unread => self.rounds += 1,
            }
        };
        let made = PyDict::new(py);
        made.set_item("matches", matches_of(py, court, &decision.matches))?;
        let counts = decision.counts;
        made.set_item("candidates", counts.candidates)?;
        made.set_item("absorbed", counts.absorbed)?;
        made.set_item("covered", counts.covered)?;
        made.set_item("divided", counts.divided)?;
        made.set_item("dropped", counts.dropped)?;
        made.set_item("repeated", counts.repeated)?;
        let dates = &decision.dates;
        made.set_item("times", dates.times.clone())?;
        made.set_item("oldest", dates.oldest.clone())?;
        made.set_item("clock", PyBytes::new(py, &dates.clock.packed()))?;
        made.set_item("latest", dates.latest)?;
        made.set_item("older", dates.older)?;
        made.set_item("leap", dates.leap.map(|leap| (leap.before, leap.after)))?;
        made.set_item("forgotten", decision.changes.forgotten.clone())?;
        made.set_item("cells", decision.changes.cells.len())?;
        self.decision = Some(decision);
        Ok(made)
    }

    /// Apply the last decision.
    fn apply(&mut self) -> PyResult<()> {
        let decision = self.decision.take();
        let decision = decision.ok_or_else(|| PyRuntimeError::new_err("there is no decision"))?;
        self.index.apply(&decision, &self.court).map_err(damaged)
    }

    /// Answer queries: matches, the buckets that each met, and with how many each was compared.
    #[pyo3(signature = (batch, *, reluctant=false))]
    #[allow(clippy::type_complexity)]
    fn query<'py>(
        &self,
        py: Python<'py>,
        batch: &Bound<'py, PyAny>,
        reluctant: bool,
    ) -> PyResult<(HashMap<usize, Found<'py>>, Vec<Vec<(u8, usize, usize, Vec<u64>)>>, Vec<u64>)>
    {
        let batch = Arc::new(batch_of(batch)?);
        let court = &self.court;
        let mut query =
            Query::new(court.clone(), batch.clone(), &self.index.clock).map_err(wrong)?;
        let mut sight = self.index.sight(court, &batch, reluctant);
        let answers = loop {
            match query.step(&mut sight).map_err(damaged)? {
                Seen::Here(answers) => break answers,
                Seen::Unread if sight.read() == 0 => {
                    return Err(PyRuntimeError::new_err("nothing was asked for"));
                }
                Seen::Unread => {}
            }
        };
        let met = answers.met.into_iter().map(|some| {
            let each = some.into_iter();
            each.map(|one| (court.columns[one.column], one.level, one.size, one.holds)).collect()
        });
        Ok((matches_of(py, court, &answers.matches), met.collect(), answers.compared))
    }

    /// All buckets, by column and key: their entries, and whether they have finer ones.
    fn buckets(&self) -> HashMap<(u8, u64), (Vec<u64>, bool)> {
        let each = self.index.buckets.iter();
        each.map(|(&key, bucket)| (key, (bucket.entries.clone(), bucket.beyond))).collect()
    }

    fn records<'py>(&self, py: Python<'py>) -> Vec<Bound<'py, PyBytes>> {
        self.index.records.iter().map(|record| PyBytes::new(py, record)).collect()
    }

    fn renewals(&self) -> HashMap<u64, HashMap<u8, i64>> {
        let each = self.index.renewals.iter();
        each.map(|(&number, own)| (number, own.iter().copied().collect())).collect()
    }

    fn verdicts<'py>(&self, py: Python<'py>) -> HashMap<u64, Bound<'py, PyBytes>> {
        let each = self.index.verdicts.iter();
        each.map(|(&number, packed)| (number, PyBytes::new(py, packed))).collect()
    }
}

fn batch_of(batch: &Bound<'_, PyAny>) -> PyResult<Batch> {
    let keys: PyReadonlyArray2<'_, u64> = batch.getattr("keys")?.extract()?;
    let sketches: PyReadonlyArray2<'_, u8> = batch.getattr("sketches")?.extract()?;
    let ids: Vec<Vec<u8>> = batch
        .getattr("ids")?
        .try_iter()?
        .map(|id| Ok(id?.cast::<PyBytes>()?.as_bytes().to_vec()))
        .collect::<PyResult<_>>()?;
    let mut forgotten = Vec::new();
    for one in batch.getattr("forgotten")?.try_iter()? {
        let one = one?;
        let id = one.getattr("id")?.cast::<PyBytes>()?.as_bytes().to_vec();
        forgotten.push(Forgotten { row: one.getattr("row")?.extract()?, id });
    }
    Ok(Batch {
        sequences: vector(&batch.getattr("sequences")?)?,
        times: vector(&batch.getattr("times")?)?,
        ids: ids.iter().collect(),
        shingles: vector(&batch.getattr("shingles")?)?,
        keys: keys.as_array().iter().copied().collect(),
        sketches: sketches.as_array().iter().copied().collect(),
        forgotten,
    })
}

pub fn vector<T: numpy::Element + Copy>(array: &Bound<'_, PyAny>) -> PyResult<Vec<T>> {
    let array: PyReadonlyArray1<'_, T> = array.extract()?;
    Ok(array.as_array().iter().copied().collect())
}
