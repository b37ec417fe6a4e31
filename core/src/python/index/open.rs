//! A shard, while its store is read.

use std::sync::Mutex;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::damaged;
use super::shard::PyShard;
use crate::index::clock::Clock;
use crate::index::shard::open::Opening;
use crate::index::shard::run_list::MOST_RUN_DOCUMENTS;
use crate::index::shard::state::Settings;
use crate::python::caught::{caught, locked};

type Spans<'py> = Vec<(Bound<'py, PyBytes>, Bound<'py, PyBytes>, u64)>;

#[pyclass(frozen, name = "Opening", module = "lsh._core")]
pub struct PyOpening {
    opening: Mutex<Option<Opening>>,
    clock: Clock,
}

impl PyOpening {
    /// Work on the opening. After an error, and after `finish`, there is none.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        bytes: usize,
        work: impl Send + FnOnce(&mut Opening) -> PyResult<T>,
    ) -> PyResult<T> {
        caught(py, bytes, || {
            let mut held = locked(&self.opening)?;
            let mut opening = held.take().ok_or_else(ended)?;
            let made = work(&mut opening)?;
            *held = Some(opening);
            Ok(made)
        })
    }
}

fn ended() -> PyErr {
    PyValueError::new_err("the opening has ended")
}

#[pymethods]
impl PyOpening {
    #[new]
    #[pyo3(signature = (*, run_documents, window_ms, inserted, clock))]
    fn new(
        run_documents: u32,
        window_ms: Option<i64>,
        inserted: u64,
        clock: Option<&[u8]>,
    ) -> PyResult<Self> {
        let sized = (1..=MOST_RUN_DOCUMENTS).contains(&run_documents);
        if !sized || window_ms.is_some_and(|window| window < 0) {
            let message = format!(
                "got run_documents {run_documents} and window_ms {window_ms:?}: takes 1 to \
                 {MOST_RUN_DOCUMENTS}, and at least 0"
            );
            return Err(PyValueError::new_err(message));
        }
        let clock = clock.map(Clock::unpacked).transpose().map_err(damaged)?.unwrap_or_default();
        let settings = Settings { run_documents, window: window_ms };
        Ok(Self { opening: Mutex::new(Some(Opening::new(settings, inserted))), clock })
    }

    fn keys<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        let keys = self.with(py, 0, |opening| Ok(opening.keys()))?;
        Ok(keys.iter().map(|key| PyBytes::new(py, key)).collect())
    }

    #[pyo3(name = "give")]
    fn handle_values(
        &self,
        py: Python<'_>,
        values: Vec<Option<Bound<'_, PyBytes>>>,
    ) -> PyResult<()> {
        let given: Vec<Option<&[u8]>> =
            values.iter().map(|value| value.as_ref().map(|value| value.as_bytes())).collect();
        let Ok(given) = <[Option<&[u8]>; 3]>::try_from(given) else {
            let message = format!("values: got {}, takes 3", values.len());
            return Err(PyValueError::new_err(message));
        };
        self.with(py, 0, |opening| opening.handle_values(given).map_err(damaged))
    }

    fn tables(&self, py: Python<'_>) -> PyResult<(Vec<u32>, Vec<u32>)> {
        self.with(py, 0, |opening| Ok(opening.tables()))
    }

    fn ranges<'py>(&self, py: Python<'py>) -> PyResult<Spans<'py>> {
        let ranges = self.with(py, 0, |opening| Ok(opening.ranges()))?;
        let ranges = ranges.into_iter().map(|(range, postings)| {
            (PyBytes::new(py, &range.low), PyBytes::new(py, &range.high), postings)
        });
        Ok(ranges.collect())
    }

    fn take(
        &self,
        py: Python<'_>,
        pairs: Vec<(Bound<'_, PyBytes>, Bound<'_, PyBytes>)>,
    ) -> PyResult<()> {
        let pairs: Vec<(&[u8], &[u8])> =
            pairs.iter().map(|(key, value)| (key.as_bytes(), value.as_bytes())).collect();
        let bytes = pairs.iter().map(|(_, value)| value.len()).sum();
        self.with(py, bytes, |opening| {
            pairs.iter().try_for_each(|(key, value)| opening.take(key, value)).map_err(damaged)
        })
    }

    fn finish(&self, py: Python<'_>) -> PyResult<PyShard> {
        let shard = caught(py, 0, || {
            locked(&self.opening)?.take().ok_or_else(ended)?.finish().map_err(damaged)
        })?;
        Ok(PyShard::new(shard, self.clock.clone()))
    }
}
