//! What is decided, as columns.

use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

use crate::index::config::IndexConfig;
use crate::index::decision::{Decision, Matches};

/// The matches of n documents.
#[pyclass(frozen, name = "Matches", module = "lsh._core", get_all)]
pub struct PyMatches {
    starts: Py<PyArray1<i64>>,
    sequences: Py<PyArray1<u64>>,
    similarities: Py<PyArray1<f64>>,
    containments: Py<PyArray1<f64>>,
    ids: Py<PyList>,
}

impl PyMatches {
    pub fn of(
        py: Python<'_>,
        config: &IndexConfig,
        found: &Matches,
        rows: usize,
    ) -> PyResult<Self> {
        let all = &found.matches;
        // There are no starts of no documents.
        let mut starts: Vec<i64> = found.starts.iter().map(|&start| start as i64).collect();
        starts.resize(rows + 1, all.len() as i64);
        let ids = all.iter().map(|one| PyBytes::new(py, &found.ids[one.id.clone()]));
        let sequences = all.iter().map(|one| one.sequence);
        let similarities = all.iter().map(|one| config.similarity(one.equal));
        let containments = all.iter().map(|one| one.containment);
        Ok(Self {
            starts: PyArray1::from_vec(py, starts).unbind(),
            sequences: PyArray1::from_iter(py, sequences).unbind(),
            similarities: PyArray1::from_iter(py, similarities).unbind(),
            containments: PyArray1::from_iter(py, containments).unbind(),
            ids: PyList::new(py, ids.collect::<Vec<_>>())?.unbind(),
        })
    }
}

/// What is decided about a batch.
#[pyclass(frozen, name = "Decision", module = "lsh._core", get_all)]
pub struct PyDecision {
    matches: Py<PyMatches>,
    candidates: u64,
    absorbed: u64,
    covered: u64,
    divided: u64,
    dropped: u64,
    repeated: u64,
    older: u64,
    leap: Option<(i64, i64)>,
    now: Option<i64>,
    dated: usize,
    inserted: usize,
    forgotten: usize,
    known: Py<PyList>,
}

impl PyDecision {
    pub fn of(
        py: Python<'_>,
        config: &IndexConfig,
        decided: &Decision,
        rows: usize,
    ) -> PyResult<Self> {
        let (counts, dates, changes) = (decided.counts, &decided.dates, &decided.changes);
        let known = decided.known.iter().map(|id| PyBytes::new(py, id)).collect::<Vec<_>>();
        Ok(Self {
            matches: Py::new(py, PyMatches::of(py, config, &decided.matches, rows)?)?,
            candidates: counts.candidates,
            absorbed: counts.absorbed,
            covered: counts.absorbed_similar,
            divided: counts.divided,
            dropped: counts.dropped,
            repeated: counts.repeated,
            older: dates.older,
            leap: dates.leap.map(|leap| (leap.before, leap.after)),
            now: dates.clock.now,
            dated: dates.clock.recent.len(),
            inserted: changes.records.len(),
            forgotten: changes.forgotten.len(),
            known: PyList::new(py, known)?.unbind(),
        })
    }
}
