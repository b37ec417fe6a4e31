//! What Python sees: conversions, and nothing else.

mod arrays;
mod caught;
mod encodings;
mod given;
mod index;
mod memory;
mod payload;
mod signing;
mod text;

use pyo3::prelude::*;

#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    text::register(module)?;
    signing::register(module)?;
    payload::register(module)?;
    encodings::register(module)?;
    index::register(module)?;
    module.add_class::<memory::MemoryIndex>()
}
