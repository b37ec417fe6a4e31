//! Texts in the encodings of the web.

use encoding_rs::Encoding;
use pyo3::exceptions::PyLookupError;
use pyo3::prelude::*;
use pyo3::types::PyString;

use super::caught::computed;

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(decode, module)?)
}

#[pyfunction]
fn decode<'py>(
    py: Python<'py>,
    data: &[u8],
    label: &str,
) -> PyResult<Option<Bound<'py, PyString>>> {
    let encoding = Encoding::for_label_no_replacement(label.as_bytes())
        .ok_or_else(|| PyLookupError::new_err("the Encoding Standard has no such label"))?;
    let text = computed(py, data.len(), || {
        encoding.decode_without_bom_handling_and_without_replacement(data)
    })?;
    Ok(text.map(|text| PyString::new(py, &text)))
}
