//! The ids and texts of payloads.

use std::borrow::Cow;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

use super::caught::computed;
use crate::payload::read;

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(read_payloads, module)?)
}

type Found<'py> = (Vec<Option<Bound<'py, PyBytes>>>, Vec<Option<Bound<'py, PyString>>>);

#[pyfunction]
fn read_payloads<'py>(
    py: Python<'py>,
    payloads: Vec<Option<Bound<'py, PyBytes>>>,
    id_name: &str,
    text_name: &str,
) -> PyResult<Found<'py>> {
    let views: Vec<&[u8]> =
        payloads.iter().map(|one| one.as_ref().map_or(&b""[..], |one| one.as_bytes())).collect();
    let bytes = views.iter().map(|view| view.len()).sum();
    let found: Vec<_> =
        computed(py, bytes, || views.iter().map(|view| read(view, id_name, text_name)).collect())?;
    let mut ids = Vec::with_capacity(found.len());
    let mut texts = Vec::with_capacity(found.len());
    for one in found {
        let (id, text) = one.map_or((None, None), |one| (one.id, Some(one.text)));
        ids.push(id.map(|id: Cow<'_, str>| PyBytes::new(py, id.as_bytes())));
        texts.push(text.map(|text| PyString::new(py, &text)));
    }
    Ok((ids, texts))
}
