//! What Python sees: conversions, and nothing else.

mod text;

use pyo3::prelude::*;

#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("NORMALISER_VERSION", crate::text::NORMALISER_VERSION)?;
    module.add("UNICODE_VERSION", crate::text::UNICODE_VERSION)?;
    module.add_class::<text::Normaliser>()
}
