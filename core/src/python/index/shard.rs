//! An open shard. Threads may share it.

use std::sync::{Arc, Mutex, RwLock, RwLockReadGuard};

use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::sync::RwLockExt;
use pyo3::types::{PyBytes, PyDict};

use super::batch::{batch_of, rules_of, shape_of};
use super::damaged;
use super::plan::{PyPlan, PyQuery, Steps};
use crate::index::batch::Batch;
use crate::index::clock::Clock;
use crate::index::config::IndexConfig;
use crate::index::reader::Damaged;
use crate::index::shard::plan::Plan;
use crate::index::shard::state::{CANDIDATE_BYTES, Shard};
use crate::python::arrays;
use crate::python::caught::{caught, left, locked};

/// What changes when a write is applied.
pub struct State {
    pub shard: Shard,
    pub clock: Clock,
    /// How many writes were applied.
    pub writes: u64,
}

/// A shard that plans and queries refer to, and its state when they began.
pub struct Snapshot {
    state: Arc<RwLock<State>>,
    writes: u64,
}

impl Snapshot {
    /// The same as `read`. Other threads of Python run while it waits.
    pub fn read_attached(&self, py: Python<'_>) -> PyResult<RwLockReadGuard<'_, State>> {
        let state = self.state.read_py_attached(py).map_err(|_| left())?;
        if state.writes != self.writes {
            return Err(changed());
        }
        Ok(state)
    }

    /// Let nobody write to the shard; it must be as it was.
    pub fn read(&self) -> PyResult<RwLockReadGuard<'_, State>> {
        let state = read(&self.state)?;
        if state.writes != self.writes {
            return Err(changed());
        }
        Ok(state)
    }
}

fn read(state: &RwLock<State>) -> PyResult<RwLockReadGuard<'_, State>> {
    state.read().map_err(|_| left())
}

fn changed() -> PyErr {
    PyValueError::new_err("the shard has changed since")
}

/// `Plan::new` or `Plan::query`.
type Begin = fn(&Shard, Arc<IndexConfig>, Arc<Batch>, &Clock) -> Result<Plan, Damaged>;

#[pyclass(frozen, name = "Shard", module = "lsh._core")]
pub struct PyShard {
    state: Arc<RwLock<State>>,
    /// That of the last batch.
    config: Mutex<Option<Arc<IndexConfig>>>,
}

impl PyShard {
    pub fn new(shard: Shard, clock: Clock) -> Self {
        let state = State { shard, clock, writes: 0 };
        Self { state: Arc::new(RwLock::new(state)), config: Mutex::default() }
    }

    /// Take a batch, and the configuration by which it is judged.
    fn given(
        &self,
        batch: &Bound<'_, PyAny>,
        rules: &Bound<'_, PyAny>,
    ) -> PyResult<(Arc<IndexConfig>, Arc<Batch>)> {
        let rules = rules_of(rules)?;
        let (columns, slots) = shape_of(batch)?;
        let batch = batch_of(batch)?;
        let mut last = locked(&self.config)?;
        let same = last.take_if(|config| {
            let slots = config.slots == slots || batch.is_empty();
            slots && config.columns == columns && config.rules == rules
        });
        let config = match same {
            Some(config) => config,
            None => Arc::new(IndexConfig::new(rules, columns, slots.max(1)).map_err(wrong)?),
        };
        batch.check(config.columns.len(), config.slots).map_err(wrong)?;
        Ok((last.insert(config).clone(), Arc::new(batch)))
    }

    /// Begin to judge a batch.
    fn begun(
        &self,
        py: Python<'_>,
        batch: &Bound<'_, PyAny>,
        rules: &Bound<'_, PyAny>,
        plan: Begin,
    ) -> PyResult<Steps> {
        let (config, batch) = self.given(batch, rules)?;
        let (rows, bytes) = (batch.len(), batch.bytes());
        caught(py, bytes, || {
            let state = read(&self.state)?;
            let plan = plan(&state.shard, config.clone(), batch, &state.clock).map_err(damaged)?;
            let snapshot = Snapshot { state: self.state.clone(), writes: state.writes };
            Ok(Steps { plan: Mutex::new(Some(plan)), snapshot, config, rows, bytes })
        })
    }

    fn with<T: Send>(
        &self,
        py: Python<'_>,
        work: impl Send + FnOnce(&State) -> PyResult<T>,
    ) -> PyResult<T> {
        caught(py, 0, || work(&*read(&self.state)?))
    }
}

fn wrong(error: String) -> PyErr {
    PyValueError::new_err(error)
}

#[pymethods]
impl PyShard {
    fn plan(
        &self,
        py: Python<'_>,
        batch: &Bound<'_, PyAny>,
        rules: &Bound<'_, PyAny>,
    ) -> PyResult<PyPlan> {
        Ok(PyPlan(self.begun(py, batch, rules, Plan::new)?))
    }

    fn query(
        &self,
        py: Python<'_>,
        batch: &Bound<'_, PyAny>,
        rules: &Bound<'_, PyAny>,
    ) -> PyResult<PyQuery> {
        Ok(PyQuery(self.begun(py, batch, rules, Plan::query)?))
    }

    fn apply(&self, py: Python<'_>, plan: &PyPlan) -> PyResult<()> {
        caught(py, plan.0.weight(py)?, || {
            let mut held = locked(&plan.0.plan)?;
            let mut state = self.state.write().map_err(|_| left())?;
            if !Arc::ptr_eq(&plan.0.snapshot.state, &self.state)
                || state.writes != plan.0.snapshot.writes
            {
                return Err(changed());
            }
            let plan = held.take_if(|plan| plan.is_written());
            let plan = plan.ok_or_else(|| PyValueError::new_err("the plan has no write"))?;
            if let Some(clock) = plan.apply(&mut state.shard) {
                state.clock = clock;
            }
            state.writes += 1;
            Ok(())
        })
    }

    fn may_have<'py>(
        &self,
        py: Python<'py>,
        column: u8,
        keys: PyReadonlyArray1<'py, u64>,
    ) -> PyResult<Bound<'py, PyArray1<bool>>> {
        let keys = arrays::column("keys", &keys)?;
        let may = caught(py, 8 * keys.len(), || {
            let state = read(&self.state)?;
            let slot = state.shard.list().slot(column).map_err(damaged)?;
            let mut may = vec![false; keys.len()];
            state.shard.hits(slot, keys).iter().for_each(|(at, _)| may[*at] = true);
            Ok(may)
        })?;
        Ok(PyArray1::from_vec(py, may))
    }

    #[pyo3(signature = (records, buckets, candidates=CANDIDATE_BYTES))]
    fn limit(
        &self,
        py: Python<'_>,
        records: usize,
        buckets: usize,
        candidates: usize,
    ) -> PyResult<()> {
        caught(py, 0, || {
            let mut state = self.state.write().map_err(|_| left())?;
            state.shard.limit(records, buckets, candidates);
            Ok(())
        })
    }

    fn sizes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let sizes = self.with(py, |state| Ok(state.shard.sizes()))?;
        let made = PyDict::new(py);
        made.set_item("documents", sizes.documents)?;
        made.set_item("eras", sizes.slices)?;
        made.set_item("expired_eras", sizes.expired_slices)?;
        made.set_item("oldest_since", sizes.oldest_since)?;
        made.set_item("open_cells", sizes.memtable_postings)?;
        made.set_item("tiers", sizes.levels)?;
        made.set_item("open_bytes", sizes.memtable_bytes)?;
        made.set_item("filter_bytes", sizes.filter_bytes)?;
        made.set_item("record_bytes", sizes.record_bytes)?;
        made.set_item("bucket_bytes", sizes.bucket_bytes)?;
        Ok(made)
    }

    #[getter]
    fn inserted(&self, py: Python<'_>) -> PyResult<u64> {
        self.with(py, |state| Ok(state.shard.inserted()))
    }

    #[getter]
    fn room(&self, py: Python<'_>) -> PyResult<u64> {
        self.with(py, |state| Ok(state.shard.room()))
    }

    #[getter]
    fn now(&self, py: Python<'_>) -> PyResult<Option<i64>> {
        self.with(py, |state| Ok(state.clock.now))
    }

    #[getter]
    fn clock<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &self.with(py, |state| Ok(state.clock.packed()))?))
    }
}
