//! Texts, tokens and bytes as Python gives them.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PySequence, PyString, PyTuple};

/// Texts in UTF-8, held while they are read. Lone surrogates are encoded like other code points.
pub struct Texts<'py> {
    held: Vec<Bound<'py, PyAny>>,
}

impl<'py> Texts<'py> {
    /// Take a sequence of str. Raises TypeError, which names the row, for anything else.
    pub fn new(texts: &Bound<'py, PyAny>) -> PyResult<Self> {
        let texts = sequence("texts", texts)?;
        let mut held = Vec::with_capacity(texts.len());
        for (row, text) in texts.iter().enumerate() {
            let Ok(text) = text.cast_into::<PyString>() else {
                return Err(wrong("texts", row, &texts.get_item(row)?, "str"));
            };
            held.push(encoded(text)?);
        }
        Ok(Self { held })
    }

    /// Take a sequence of str or bytes, which are taken as they are.
    pub fn with_bytes(tokens: &Bound<'py, PyAny>) -> PyResult<Self> {
        let tokens = sequence("tokens", tokens)?;
        let mut held = Vec::with_capacity(tokens.len());
        for (row, token) in tokens.iter().enumerate() {
            held.push(if let Ok(text) = token.cast::<PyString>() {
                encoded(text.clone())?
            } else if token.is_instance_of::<PyBytes>() {
                token
            } else {
                return Err(wrong("tokens", row, &token, "str or bytes"));
            });
        }
        Ok(Self { held })
    }

    /// Return the bytes of each.
    pub fn views(&self) -> PyResult<Vec<&[u8]>> {
        self.held.iter().map(view).collect()
    }
}

fn view<'a>(held: &'a Bound<'_, PyAny>) -> PyResult<&'a [u8]> {
    match held.cast::<PyString>() {
        Ok(text) => Ok(text.to_str()?.as_bytes()),
        Err(_) => Ok(held.cast::<PyBytes>()?.as_bytes()),
    }
}

/// Return a str whose UTF-8 Python holds, or else the bytes of it.
fn encoded(text: Bound<'_, PyString>) -> PyResult<Bound<'_, PyAny>> {
    if text.to_str().is_ok() {
        return Ok(text.into_any());
    }
    text.call_method1("encode", ("utf-8", "surrogatepass"))
}

/// Return a sequence as a tuple, which holds its items whatever another thread does.
fn sequence<'py>(what: &str, given: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyTuple>> {
    let no_sequence = given.is_instance_of::<PyString>() || given.is_instance_of::<PyBytes>();
    match given.cast::<PySequence>() {
        Ok(sequence) if !no_sequence => sequence.to_tuple(),
        _ => {
            let kind = given.get_type().name()?;
            Err(PyTypeError::new_err(format!("{what}: got a single {kind}, takes a sequence")))
        }
    }
}

fn wrong(what: &str, row: usize, got: &Bound<'_, PyAny>, takes: &str) -> PyErr {
    let kind = got.get_type().name().map_or_else(|_| "object".into(), |name| name.to_string());
    PyTypeError::new_err(format!("{what}: row {row} has a value of type {kind}, takes {takes}"))
}
