//! A batch on its way through a shard.

use std::sync::{Arc, Mutex, MutexGuard};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::damaged;
use super::found::PyDecision;
use super::shard::Snapshot;
use crate::index::config::IndexConfig;
use crate::index::shard::plan::Plan;
use crate::index::shard::{ReadKey, Writes};
use crate::python::caught::{caught, held, locked, yielding};

pub type Keys<'py> = Vec<(Option<u32>, Vec<Bound<'py, PyBytes>>)>;

/// Group keys by the tables that they are in.
pub fn keys_of<'py>(py: Python<'py>, reads: &[ReadKey]) -> Keys<'py> {
    let groups = reads.chunk_by(|one, next| one.table == next.table);
    let groups = groups.map(|some| {
        (some[0].table, some.iter().map(|reads| PyBytes::new(py, &reads.key)).collect())
    });
    groups.collect()
}

/// How long values are in all.
pub fn length_of(values: &[Option<&[u8]>]) -> usize {
    values.iter().flatten().map(|value| value.len()).sum()
}

/// Return the bytes of values, which must be as many as were asked for.
pub fn values_of<'a>(
    values: &'a [Option<Bound<'_, PyBytes>>],
    expected: usize,
) -> PyResult<Vec<Option<&'a [u8]>>> {
    if values.len() != expected {
        let message = format!("values: got {}, takes {expected}", values.len());
        return Err(PyValueError::new_err(message));
    }
    Ok(values.iter().map(|value| value.as_ref().map(|value| value.as_bytes())).collect())
}

#[pyclass(frozen, name = "Plan", module = "lsh._core")]
pub struct PyPlan {
    /// None once it was applied.
    pub plan: Mutex<Option<Plan>>,
    pub snapshot: Snapshot,
    config: Arc<IndexConfig>,
    rows: usize,
    /// The size of the batch.
    pub bytes: usize,
}

impl PyPlan {
    pub fn new(
        plan: Plan,
        snapshot: Snapshot,
        config: Arc<IndexConfig>,
        rows: usize,
        bytes: usize,
    ) -> Self {
        Self { plan: Mutex::new(Some(plan)), snapshot, config, rows, bytes }
    }

    /// About how many bytes the next step works on.
    pub fn weight(&self, py: Python<'_>) -> PyResult<usize> {
        let held = held(py, &self.plan)?;
        let Some(plan) = held.as_ref() else { return Ok(0) };
        Ok(self.bytes + plan.weight(&self.snapshot.read_attached(py)?.shard))
    }
}

fn of<'a>(held: &'a mut MutexGuard<'_, Option<Plan>>) -> PyResult<&'a mut Plan> {
    held.as_mut().ok_or_else(|| PyValueError::new_err("the plan was applied"))
}

fn unread() -> PyErr {
    PyValueError::new_err("there are keys left to read")
}

#[pymethods]
impl PyPlan {
    fn keys<'py>(&self, py: Python<'py>) -> PyResult<Keys<'py>> {
        let reads = caught(py, self.weight(py)?, || {
            let mut held = locked(&self.plan)?;
            let (plan, state) = (of(&mut held)?, self.snapshot.read()?);
            plan.poll_reads(&state.shard).map_err(damaged)?;
            Ok(plan.open().clone())
        })?;
        Ok(keys_of(py, &reads))
    }

    #[pyo3(name = "give")]
    fn handle_values(
        &self,
        py: Python<'_>,
        values: Vec<Option<Bound<'_, PyBytes>>>,
    ) -> PyResult<()> {
        let expected = of(&mut held(py, &self.plan)?)?.open().len();
        let given = values_of(&values, expected)?;
        caught(py, self.bytes + length_of(&given), || {
            let mut held = locked(&self.plan)?;
            let state = self.snapshot.read()?;
            of(&mut held)?.handle_values(&state.shard, given).map_err(damaged)
        })
    }

    fn judge(&self, py: Python<'_>) -> PyResult<PyDecision> {
        let decision = {
            let mut held = held(py, &self.plan)?;
            let plan = of(&mut held)?;
            let decision = plan.decision().ok_or_else(unread)?.clone();
            plan.prepare();
            decision
        };
        PyDecision::of(py, &self.config, &decision, self.rows)
    }

    fn writes(&self, py: Python<'_>) -> PyResult<PyWrites> {
        let (writes, clock) = caught(py, self.weight(py)?, || {
            let mut held = locked(&self.plan)?;
            let state = self.snapshot.read()?;
            let made = of(&mut held)?.write(&state.shard).map_err(damaged)?;
            let (writes, clock) = made.ok_or_else(unread)?;
            Ok((writes, clock.packed()))
        })?;
        Ok(PyWrites::of(py, writes, &clock))
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
        let mut pair = |(one, other): &(Vec<u8>, Vec<u8>)| {
            made += other.len();
            yielding(py, &mut made);
            (bytes(one), bytes(other))
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
