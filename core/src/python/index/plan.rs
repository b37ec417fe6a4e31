//! A batch on its way through a shard.

use std::sync::{Arc, Mutex, MutexGuard};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::damaged;
use super::found::{PyDecision, PyMatches};
use super::shard::Snapshot;
use crate::index::config::IndexConfig;
use crate::index::decision::{Decision, MetBucket};
use crate::index::shard::keys::Key;
use crate::index::shard::plan::Plan;
use crate::index::shard::reads::ReadKey;
use crate::index::shard::writes::Writes;
use crate::python::caught::{caught, held, locked, yielding};

type Keys<'py> = Vec<(Option<u32>, Vec<Bound<'py, PyBytes>>)>;

/// Group keys by the tables that they are in.
fn keys_of<'py>(py: Python<'py>, reads: &[ReadKey]) -> Keys<'py> {
    let groups = reads.chunk_by(|one, next| one.table == next.table);
    let groups = groups.map(|some| {
        (some[0].table, some.iter().map(|reads| PyBytes::new(py, &reads.key)).collect())
    });
    groups.collect()
}

/// How long values are in all.
fn length_of(values: &[Option<&[u8]>]) -> usize {
    values.iter().flatten().map(|value| value.len()).sum()
}

/// Return the bytes of values, which must be as many as were asked for.
fn values_of<'a>(
    values: &'a [Option<Bound<'_, PyBytes>>],
    expected: usize,
) -> PyResult<Vec<Option<&'a [u8]>>> {
    if values.len() != expected {
        let message = format!("values: got {}, takes {expected}", values.len());
        return Err(PyValueError::new_err(message));
    }
    Ok(values.iter().map(|value| value.as_ref().map(|value| value.as_bytes())).collect())
}

/// A batch, or queries, on the way through a shard, and what of it both have in common.
pub struct Steps {
    /// None once it was applied.
    pub plan: Mutex<Option<Plan>>,
    pub snapshot: Snapshot,
    pub config: Arc<IndexConfig>,
    pub rows: usize,
    /// The size of the batch.
    pub bytes: usize,
}

impl Steps {
    /// About how many bytes the next step works on.
    pub fn weight(&self, py: Python<'_>) -> PyResult<usize> {
        let held = held(py, &self.plan)?;
        let Some(plan) = held.as_ref() else { return Ok(0) };
        Ok(self.bytes + plan.weight(&self.snapshot.read_attached(py)?.shard))
    }

    fn keys<'py>(&self, py: Python<'py>) -> PyResult<Keys<'py>> {
        let reads = caught(py, self.weight(py)?, || {
            let mut held = locked(&self.plan)?;
            let (plan, state) = (of(&mut held)?, self.snapshot.read()?);
            plan.poll_reads(&state.shard).map_err(damaged)?;
            Ok(plan.open().clone())
        })?;
        Ok(keys_of(py, &reads))
    }

    fn handle_values(&self, py: Python<'_>, values: &[Option<Bound<'_, PyBytes>>]) -> PyResult<()> {
        let expected = of(&mut held(py, &self.plan)?)?.open().len();
        let given = values_of(values, expected)?;
        caught(py, self.bytes + length_of(&given), || {
            let mut held = locked(&self.plan)?;
            let state = self.snapshot.read()?;
            of(&mut held)?.handle_values(&state.shard, given).map_err(damaged)
        })
    }

    fn decision(&self, py: Python<'_>) -> PyResult<Arc<Decision>> {
        let mut held = held(py, &self.plan)?;
        Ok(of(&mut held)?.decision().ok_or_else(unread)?.clone())
    }
}

fn of<'a>(held: &'a mut MutexGuard<'_, Option<Plan>>) -> PyResult<&'a mut Plan> {
    held.as_mut().ok_or_else(|| PyValueError::new_err("the plan was applied"))
}

fn unread() -> PyErr {
    PyValueError::new_err("there are keys left to read")
}

#[pyclass(frozen, name = "Plan", module = "lsh._core")]
pub struct PyPlan(pub Steps);

#[pymethods]
impl PyPlan {
    fn keys<'py>(&self, py: Python<'py>) -> PyResult<Keys<'py>> {
        self.0.keys(py)
    }

    #[pyo3(name = "give")]
    fn handle_values(
        &self,
        py: Python<'_>,
        values: Vec<Option<Bound<'_, PyBytes>>>,
    ) -> PyResult<()> {
        self.0.handle_values(py, &values)
    }

    fn judge(&self, py: Python<'_>) -> PyResult<PyDecision> {
        let decision = self.0.decision(py)?;
        of(&mut held(py, &self.0.plan)?)?.prepare();
        PyDecision::of(py, &self.0.config, &decision, self.0.rows)
    }

    fn writes(&self, py: Python<'_>) -> PyResult<PyWrites> {
        let (writes, clock) = caught(py, self.0.weight(py)?, || {
            let mut held = locked(&self.0.plan)?;
            let state = self.0.snapshot.read()?;
            let made = of(&mut held)?.write(&state.shard).map_err(damaged)?;
            let (writes, clock) = made.ok_or_else(unread)?;
            Ok((writes, clock.packed()))
        })?;
        Ok(PyWrites::of(py, writes, &clock))
    }
}

/// Buckets: column, level, size, and the sequence numbers of matches in it.
type Met = Vec<(u8, usize, usize, Vec<u64>)>;

/// Queries, which change nothing.
#[pyclass(frozen, name = "Query", module = "lsh._core")]
pub struct PyQuery(pub Steps);

#[pymethods]
impl PyQuery {
    fn keys<'py>(&self, py: Python<'py>) -> PyResult<Keys<'py>> {
        self.0.keys(py)
    }

    #[pyo3(name = "give")]
    fn handle_values(
        &self,
        py: Python<'_>,
        values: Vec<Option<Bound<'_, PyBytes>>>,
    ) -> PyResult<()> {
        self.0.handle_values(py, &values)
    }

    fn answers(&self, py: Python<'_>) -> PyResult<(PyMatches, Vec<Met>, Vec<u64>)> {
        let decision = self.0.decision(py)?;
        let matches = PyMatches::of(py, &self.0.config, &decision.matches, self.0.rows)?;
        let bucket = |met: &MetBucket| {
            (self.0.config.columns[met.column], met.level, met.size, met.holds.clone())
        };
        let answers = &decision.answers;
        let met = answers.iter().map(|answer| answer.met.iter().map(bucket).collect());
        Ok((matches, met.collect(), answers.iter().map(|answer| answer.compared).collect()))
    }
}

type Pairs = Vec<(Py<PyBytes>, Py<PyBytes>)>;

/// What is written.
#[pyclass(frozen, name = "Writes", module = "lsh._core", get_all)]
pub struct PyWrites {
    tables: Vec<(u32, Pairs, bool, bool)>,
    ranges: Pairs,
    deletes: Vec<Py<PyBytes>>,
    puts: Pairs,
    replaced: Vec<u32>,
    erased: Vec<u64>,
    inserted: u64,
    clock: Py<PyBytes>,
}

impl PyWrites {
    fn of(py: Python<'_>, writes: Writes, clock: &[u8]) -> Self {
        let bytes = |bytes: &[u8]| PyBytes::new(py, bytes).unbind();
        let mut made = 0;
        let mut pair = |(key, value): &(Key, Vec<u8>)| {
            made += value.len();
            yielding(py, &mut made);
            (bytes(key), bytes(value))
        };
        let tables = writes.tables.iter().map(|table| {
            (table.run, table.pages.iter().map(&mut pair).collect(), table.finished, table.last)
        });
        let tables = tables.collect();
        let ranges = writes.ranges.iter().map(|range| (bytes(&range.low), bytes(&range.high)));
        Self {
            tables,
            ranges: ranges.collect(),
            deletes: writes.deletes.iter().map(|key| bytes(key)).collect(),
            puts: writes.puts.iter().map(pair).collect(),
            replaced: writes.replaced,
            erased: writes.erased,
            inserted: writes.inserted,
            clock: bytes(clock),
        }
    }
}
