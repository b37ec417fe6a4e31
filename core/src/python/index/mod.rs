//! A shard of the index: opened, asked and written to in steps, by whoever has its store.

pub mod batch;
mod contents;
mod found;
mod open;
mod plan;
mod shard;

use pyo3::create_exception;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::index::reader;
use crate::index::shard::checksum;

create_exception!(lsh._core, Damaged, PyValueError);

fn damaged(error: reader::Damaged) -> PyErr {
    Damaged::new_err(error.0)
}

/// Return a stored value without its checksum.
#[pyfunction]
fn check<'py>(
    py: Python<'py>,
    key: &Bound<'py, PyBytes>,
    value: &Bound<'py, PyBytes>,
) -> PyResult<Bound<'py, PyBytes>> {
    let value = checksum::verify_checksum(key.as_bytes(), value.as_bytes()).map_err(damaged)?;
    Ok(PyBytes::new(py, value))
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("Damaged", module.py().get_type::<Damaged>())?;
    module.add_class::<open::PyOpening>()?;
    module.add_class::<contents::PyContents>()?;
    module.add_class::<shard::PyShard>()?;
    module.add_class::<plan::PyPlan>()?;
    module.add_class::<plan::PyWrites>()?;
    module.add_class::<plan::PyQuery>()?;
    module.add_class::<found::PyDecision>()?;
    module.add_class::<found::PyMatches>()?;
    module.add_function(wrap_pyfunction!(check, module)?)
}
