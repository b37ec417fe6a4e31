//! Normal forms for Python.

use std::sync::Arc;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString};

use super::caught::computed;
use crate::text::{self, Form, Scratch, Switches, utf8};

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("NORMALISER_VERSION", text::NORMALISER_VERSION)?;
    module.add("UNICODE_VERSION", text::UNICODE_VERSION)?;
    module.add_class::<Normaliser>()
}

/// Makes normal forms of texts; see `lsh/_core.pyi`.
#[pyclass(frozen, module = "lsh._core")]
pub struct Normaliser(pub Arc<text::Normaliser>);

#[pymethods]
impl Normaliser {
    #[new]
    #[pyo3(signature = (*, boilerplate = Vec::new(), **switches))]
    fn new(
        py: Python<'_>,
        boilerplate: Vec<Bound<'_, PyString>>,
        switches: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let lines = boilerplate.iter().map(encoded).collect::<PyResult<Vec<_>>>()?;
        let switches = switches.map_or_else(|| Ok(Switches::default()), switches_of)?;
        let size = lines.iter().map(Vec::len).sum();
        let made = computed(py, size, || text::Normaliser::new(switches, &lines))?;
        Ok(Self(Arc::new(made)))
    }

    /// Return the normal form of a text.
    fn normalise<'py>(
        &self,
        py: Python<'py>,
        text: &Bound<'py, PyString>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let text = encoded(text)?;
        let form = || encoded_form(self.0.form(&text, &mut Scratch::default()));
        decoded(py, &computed(py, text.len(), form)?)
    }

    /// Return the lines of a text that are left out because they are listed.
    fn left_out<'py>(
        &self,
        py: Python<'py>,
        text: &Bound<'py, PyString>,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let text = encoded(text)?;
        let left_out = || self.0.left_out(&text, &mut Scratch::default());
        let lines = computed(py, text.len(), left_out)?;
        lines.iter().map(|line| decoded(py, line)).collect()
    }

    /// Return the lines of a text without markup.
    fn lines<'py>(
        &self,
        py: Python<'py>,
        text: &Bound<'py, PyString>,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let text = encoded(text)?;
        let lines = computed(py, text.len(), || self.0.lines(&text))?;
        lines.iter().map(|line| decoded(py, line)).collect()
    }

    /// Return the normal forms of lines, as if each were a text without markup.
    fn forms<'py>(
        &self,
        py: Python<'py>,
        lines: Vec<Bound<'py, PyString>>,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let lines = lines.iter().map(encoded).collect::<PyResult<Vec<_>>>()?;
        let forms: Vec<Vec<u8>> = computed(py, lines.iter().map(Vec::len).sum(), || {
            let mut scratch = Scratch::default();
            let form = |line: &Vec<u8>| encoded_form(self.0.form_of(line, &mut scratch));
            lines.iter().map(form).collect()
        })?;
        forms.iter().map(|form| decoded(py, form)).collect()
    }

    /// Return the normal forms of the lines that are listed.
    fn listed<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        self.0.listed_forms().into_iter().map(|form| decoded(py, form)).collect()
    }
}

/// Return the switches that are named, of which the others are off.
fn switches_of(named: &Bound<'_, PyDict>) -> PyResult<Switches> {
    let mut switches = Switches::default();
    for (name, value) in named {
        let name: String = name.extract()?;
        let switch = match name.as_str() {
            "nfkc" => &mut switches.nfkc,
            "casefold" => &mut switches.casefold,
            "collapse_whitespace" => &mut switches.collapse_whitespace,
            "drop_invisible" => &mut switches.drop_invisible,
            "drop_overlays" => &mut switches.drop_overlays,
            "fold_confusables" => &mut switches.fold_confusables,
            "fold_digits" => &mut switches.fold_digits,
            "fold_accents" => &mut switches.fold_accents,
            "fold_turkish_i" => &mut switches.fold_turkish_i,
            "drop_symbols" => &mut switches.drop_symbols,
            "join_letters" => &mut switches.join_letters,
            "strip_html" => &mut switches.strip_html,
            "reduce_urls" => &mut switches.reduce_urls,
            _ => return Err(PyTypeError::new_err(format!("no such switch: {name}"))),
        };
        *switch = value.extract()?;
    }
    Ok(switches)
}

/// Return a text in UTF-8, with its lone surrogates.
fn encoded(text: &Bound<'_, PyString>) -> PyResult<Vec<u8>> {
    let encoded = text.call_method1("encode", ("utf-8", "surrogatepass"))?;
    Ok(encoded.cast_into::<PyBytes>()?.as_bytes().to_vec())
}

/// Return the text of UTF-8 that may have lone surrogates.
fn decoded<'py>(py: Python<'py>, text: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    PyBytes::new(py, text).call_method1("decode", ("utf-8", "surrogatepass"))
}

fn encoded_form(form: Form<'_>) -> Vec<u8> {
    match form {
        Form::Ascii(text) => text.to_vec(),
        Form::Wide(points) => {
            let mut text = Vec::new();
            utf8::encode(points, &mut text);
            text
        }
    }
}
