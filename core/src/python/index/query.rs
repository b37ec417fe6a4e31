//! Queries, which change nothing.

use std::sync::{Arc, Mutex};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::damaged;
use super::found::PyMatches;
use super::plan::{Keys, keys_of, length_of, values_of};
use super::shard::Snapshot;
use crate::index::config::IndexConfig;
use crate::index::shard::plan::Inquiry;
use crate::python::caught::{caught, held, locked};

/// Buckets: column, level, size, and the sequence numbers of matches in it.
type Met = Vec<(u8, usize, usize, Vec<u64>)>;

#[pyclass(frozen, name = "Query", module = "lsh._core")]
pub struct PyQuery {
    inquiry: Mutex<Inquiry>,
    snapshot: Snapshot,
    config: Arc<IndexConfig>,
    rows: usize,
    bytes: usize,
}

impl PyQuery {
    pub fn new(
        inquiry: Inquiry,
        snapshot: Snapshot,
        config: Arc<IndexConfig>,
        rows: usize,
        bytes: usize,
    ) -> Self {
        Self { inquiry: Mutex::new(inquiry), snapshot, config, rows, bytes }
    }
}

#[pymethods]
impl PyQuery {
    fn keys<'py>(&self, py: Python<'py>) -> PyResult<Keys<'py>> {
        let weight = self.bytes + held(py, &self.inquiry)?.weight();
        let reads = caught(py, weight, || {
            let mut inquiry = locked(&self.inquiry)?;
            let state = self.snapshot.read()?;
            inquiry.poll_reads(&state.shard).map_err(damaged)?;
            Ok(inquiry.open().clone())
        })?;
        Ok(keys_of(py, &reads))
    }

    #[pyo3(name = "give")]
    fn handle_values(
        &self,
        py: Python<'_>,
        values: Vec<Option<Bound<'_, PyBytes>>>,
    ) -> PyResult<()> {
        let expected = held(py, &self.inquiry)?.open().len();
        let given = values_of(&values, expected)?;
        caught(py, self.bytes + length_of(&given), || {
            let mut inquiry = locked(&self.inquiry)?;
            let state = self.snapshot.read()?;
            inquiry.handle_values(&state.shard, given).map_err(damaged)
        })
    }

    fn answers(&self, py: Python<'_>) -> PyResult<(PyMatches, Vec<Met>, Vec<u64>)> {
        let answers = held(py, &self.inquiry)?.answers().cloned();
        let answers =
            answers.ok_or_else(|| PyValueError::new_err("there are keys left to read"))?;
        let matches = PyMatches::of(py, &self.config, &answers.matches, self.rows)?;
        let met = answers.met.iter().map(|some| {
            let each = some.iter();
            let column = |place: usize| self.config.columns[place];
            each.map(|one| (column(one.column), one.level, one.size, one.holds.clone())).collect()
        });
        Ok((matches, met.collect(), answers.compared.clone()))
    }
}
