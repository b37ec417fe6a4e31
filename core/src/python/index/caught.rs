//! Work that may fail without taking the process with it.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, MutexGuard};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::python::arrays::detached;

/// Do work on `bytes` bytes, and let other threads of Python run unless it is short.
///
/// A panic becomes RuntimeError: PyO3's own exception would pass by `except Exception`. What the
/// work changes must be behind locks, which a panic poisons; so nothing half changed is used again.
pub fn caught<T: Send>(
    py: Python<'_>,
    bytes: usize,
    work: impl Send + FnOnce() -> PyResult<T>,
) -> PyResult<T> {
    detached(py, bytes, || catch_unwind(AssertUnwindSafe(work)))
        .unwrap_or_else(|panic| Err(failed(&*panic)))
}

fn failed(panic: &(dyn Any + Send)) -> PyErr {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("of unknown cause");
    PyRuntimeError::new_err(format!("the core has failed: {text}"))
}

/// What is said of something that a panic has left half changed.
pub fn left() -> PyErr {
    PyRuntimeError::new_err("it failed before; open the shard again")
}

pub fn locked<T>(mutex: &Mutex<T>) -> PyResult<MutexGuard<'_, T>> {
    mutex.lock().map_err(|_| left())
}
