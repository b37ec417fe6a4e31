//! Work of the core for Python, whose failures are exceptions like any other.

use std::sync::{Mutex, MutexGuard};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::sync::MutexExt;

use crate::unwound::unwound;

/// Work below so many bytes keeps the interpreter lock: to get it back may take 5 ms.
const SHORT: usize = 1 << 15;

/// About what is made into objects in a millisecond.
const MANY: usize = 4 << 20;

/// Do work on `bytes` bytes, and let other threads of Python run unless it is short.
///
/// A panic becomes RuntimeError: PyO3's own exception would pass by `except Exception`. What the
/// work changes must be behind locks, which a panic poisons; so nothing half changed is used again.
pub fn caught<T: Send>(
    py: Python<'_>,
    bytes: usize,
    work: impl Send + FnOnce() -> PyResult<T>,
) -> PyResult<T> {
    computed(py, bytes, work)?
}

/// Do work that returns no error; see `caught`.
pub fn computed<T: Send>(
    py: Python<'_>,
    bytes: usize,
    work: impl Send + FnOnce() -> T,
) -> PyResult<T> {
    let done = if bytes < SHORT { unwound(work) } else { py.detach(|| unwound(work)) };
    done.map_err(|text| PyRuntimeError::new_err(format!("the core has failed: {text}")))
}

/// What is said of something that a panic has left half changed.
pub fn left() -> PyErr {
    PyRuntimeError::new_err("the core has failed in it before: open it again, or make another")
}

/// Lock while the interpreter lock is held, which others get if it takes long. Touch no objects of
/// Python before the guard is dropped: they may run any code, also of a thread that waits for it.
pub fn held<'a, T>(py: Python<'_>, mutex: &'a Mutex<T>) -> PyResult<MutexGuard<'a, T>> {
    mutex.lock_py_attached(py).map_err(|_| left())
}

/// Let other threads of Python run if many bytes were made into objects since they did.
pub fn yielding(py: Python<'_>, bytes: &mut usize) {
    if *bytes >= MANY {
        *bytes = 0;
        py.detach(|| {});
    }
}

pub fn locked<T>(mutex: &Mutex<T>) -> PyResult<MutexGuard<'_, T>> {
    mutex.lock().map_err(|_| left())
}
