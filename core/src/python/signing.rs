//! The signer, and the keys and similarities of sketches.

use std::sync::{Arc, Mutex, PoisonError};

use numpy::{PyArray1, PyArray2, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::arrays::{column, ends, rows, starts, table};
use super::caught::computed;
use super::given::Texts;
use super::text::Normaliser;
use crate::index::similar;
use crate::sign::keys::{Bands, Keyed};
use crate::sign::sketch::{Slots, Tables};
use crate::sign::{Scheme, Scratch, Secrets, Signer, Unit};

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PySigner>()?;
    module.add_class::<PySigned>()?;
    module.add_function(wrap_pyfunction!(band_keys, module)?)?;
    module.add_function(wrap_pyfunction!(distinct, module)?)?;
    module.add_function(wrap_pyfunction!(equal_slots, module)?)?;
    module.add_function(wrap_pyfunction!(near_pairs, module)?)?;
    module.add_function(wrap_pyfunction!(signatures, module)?)?;
    module.add_function(wrap_pyfunction!(text_keys, module)?)
}

type Hashes<'py> = (Bound<'py, PyArray1<u64>>, Bound<'py, PyArray1<i64>>);

#[pyclass(frozen, name = "Signed", module = "lsh._core", get_all)]
struct PySigned {
    sketches: Py<PyArray2<u8>>,
    texts: Py<PyArray1<u64>>,
    shingles: Py<PyArray1<u32>>,
    blank: Py<PyArray1<bool>>,
}

#[pyclass(frozen, name = "Signer", module = "lsh._core")]
struct PySigner {
    signer: Signer,
    word_key: Keyed,
    /// Buffers that no thread uses now.
    pool: Mutex<Vec<Scratch>>,
}

impl PySigner {
    /// Do work with buffers of its own.
    fn with_scratch<T>(&self, work: impl FnOnce(&mut Scratch) -> T) -> T {
        let pool = || self.pool.lock().unwrap_or_else(PoisonError::into_inner);
        let mut scratch = pool().pop().unwrap_or_default();
        let result = work(&mut scratch);
        if scratch.is_worth_keeping() {
            pool().push(scratch);
        }
        result
    }
}

#[pymethods]
impl PySigner {
    #[new]
    #[pyo3(signature = (
        normaliser, *, shingle, shingle_size, slots, count_distinct, shingle_state, word_key, text_key
    ))]
    #[allow(clippy::too_many_arguments)] // They are named in Python.
    fn new(
        normaliser: PyRef<'_, Normaliser>,
        shingle: &str,
        shingle_size: usize,
        slots: usize,
        count_distinct: bool,
        shingle_state: u64,
        word_key: [u8; 32],
        text_key: [u8; 32],
    ) -> PyResult<Self> {
        let unit = match shingle {
            "char" => Unit::CodePoint,
            "word" => Unit::Word,
            _ => {
                let message = format!("shingle: got {shingle:?}, takes 'char' or 'word'");
                return Err(PyValueError::new_err(message));
            }
        };
        require("shingle_size", shingle_size, MOST_SIZE)?;
        require("slots", slots, MOST_SLOTS)?;
        let secrets = Secrets { shingle_state, word_key, text_key };
        let scheme = Scheme::new(unit, shingle_size, slots, count_distinct, secrets);
        let word_key = Keyed::new(&scheme.word_key);
        let signer = Signer::new(Arc::clone(&normaliser.0), scheme);
        Ok(Self { signer, word_key, pool: Mutex::default() })
    }

    fn sign(&self, py: Python<'_>, texts: &Bound<'_, PyAny>) -> PyResult<PySigned> {
        let texts = Texts::new(texts)?;
        let views = texts.views()?;
        let columns = computed(py, total(&views), || {
            self.with_scratch(|scratch| self.signer.sign(&views, scratch))
        })?;
        let slots = self.signer.scheme().slots.count();
        Ok(PySigned {
            sketches: table(py, columns.sketches, views.len(), slots)?.unbind(),
            texts: PyArray1::from_vec(py, columns.texts).unbind(),
            shingles: PyArray1::from_vec(py, columns.shingles).unbind(),
            blank: PyArray1::from_vec(py, columns.blank).unbind(),
        })
    }

    fn shingles<'py>(&self, py: Python<'py>, texts: &Bound<'py, PyAny>) -> PyResult<Hashes<'py>> {
        let texts = Texts::new(texts)?;
        let views = texts.views()?;
        let (hashes, ends) = computed(py, total(&views), || {
            self.with_scratch(|scratch| self.signer.shingles(&views, scratch))
        })?;
        Ok((PyArray1::from_vec(py, hashes), starts(py, ends)))
    }

    fn word_shingles<'py>(
        &self,
        py: Python<'py>,
        words: &Bound<'py, PyAny>,
        starts: PyReadonlyArray1<'py, i64>,
    ) -> PyResult<Hashes<'py>> {
        let words = Texts::with_bytes(words)?;
        let views = words.views()?;
        let limits = ends(column("starts", &starts)?, views.len())?;
        let (hashes, ends) = computed(py, total(&views), || {
            let hashed: Vec<u64> = views.iter().map(|word| self.word_key.hash(word)).collect();
            self.signer.shingles_of_words(&hashed, &limits)
        })?;
        Ok((PyArray1::from_vec(py, hashes), self::starts(py, ends)))
    }
}

const MOST_SIZE: usize = 64;
const MOST_SLOTS: usize = 4096;

fn require(what: &str, given: usize, most: usize) -> PyResult<()> {
    if (1..=most).contains(&given) {
        return Ok(());
    }
    Err(PyValueError::new_err(format!("{what}: got {given}, takes an integer from 1 to {most}")))
}

fn total(views: &[&[u8]]) -> usize {
    views.iter().map(|view| view.len()).sum()
}

#[pyfunction]
#[pyo3(signature = (sketches, bands, rows, columns=None))]
fn band_keys<'py>(
    py: Python<'py>,
    sketches: PyReadonlyArray2<'py, u8>,
    bands: usize,
    rows: usize,
    columns: Option<Vec<usize>>,
) -> PyResult<Bound<'py, PyArray2<u64>>> {
    let (cells, count, slots) = self::rows("sketches", &sketches)?;
    let needed = bands.checked_mul(rows);
    if bands == 0 || rows == 0 || needed.is_none_or(|needed| needed > slots) {
        let message = format!(
            "bands * rows: got {bands} * {rows}, takes at most the number of slots, {slots}"
        );
        return Err(PyValueError::new_err(message));
    }
    let columns = columns.unwrap_or_else(|| (0..bands).collect());
    if columns.iter().any(|&column| column >= bands) {
        let message = format!("columns: takes numbers from 0 to {}", bands - 1);
        return Err(PyValueError::new_err(message));
    }
    let keys = computed(py, cells.len(), || {
        let scheme = Bands::new(bands, rows);
        let mut keys = Vec::with_capacity(count * columns.len());
        for sketch in cells.chunks_exact(slots) {
            keys.extend(columns.iter().map(|&band| scheme.key(sketch, band)));
        }
        keys
    })?;
    table(py, keys, count, columns.len())
}

#[pyfunction]
fn equal_slots<'py>(
    py: Python<'py>,
    a: PyReadonlyArray2<'py, u8>,
    b: PyReadonlyArray2<'py, u8>,
) -> PyResult<Bound<'py, PyArray1<u16>>> {
    let (ones, count, slots) = rows("a", &a)?;
    let (others, other_count, other_slots) = rows("b", &b)?;
    if slots != other_slots || slots > usize::from(u16::MAX) {
        let message = format!("b: got {other_slots} slots, takes as many as a, {slots}");
        return Err(PyValueError::new_err(message));
    }
    if count != other_count && count != 1 && other_count != 1 {
        let message = format!("b: got {other_count} sketches, takes as many as a, {count}");
        return Err(PyValueError::new_err(message));
    }
    let pairs = if count.min(other_count) == 0 { 0 } else { count.max(other_count) };
    let row = |count: usize, pair: usize| {
        let at = if count == 1 { 0 } else { pair };
        at * slots..(at + 1) * slots
    };
    let equal = computed(py, 2 * pairs * slots, || {
        let pair = |at| {
            let (one, other) = (row(count, at), row(other_count, at));
            similar::equal_slots(&ones[one], &others[other]) as u16
        };
        (0..pairs).map(pair).collect()
    })?;
    Ok(PyArray1::from_vec(py, equal))
}

type Pairs<'py> = (Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<u16>>);

#[pyfunction]
fn near_pairs<'py>(
    py: Python<'py>,
    a: PyReadonlyArray2<'py, u8>,
    b: PyReadonlyArray2<'py, u8>,
    least: u16,
) -> PyResult<Pairs<'py>> {
    let (ones, count, slots) = rows("a", &a)?;
    let (others, other_count, other_slots) = rows("b", &b)?;
    if slots != other_slots || slots == 0 || slots > usize::from(u16::MAX) {
        let message = format!("b: got {other_slots} slots, takes as many as a, {slots}");
        return Err(PyValueError::new_err(message));
    }
    let (of_a, of_b, equal) = computed(py, count * other_count * slots, || {
        let (mut of_a, mut of_b, mut found) = (Vec::new(), Vec::new(), Vec::new());
        for (row, one) in ones.chunks_exact(slots).enumerate() {
            for (other_row, other) in others.chunks_exact(slots).enumerate() {
                let equal = similar::equal_slots(one, other) as u16;
                if equal >= least {
                    of_a.push(row as i64);
                    of_b.push(other_row as i64);
                    found.push(equal);
                }
            }
        }
        (of_a, of_b, found)
    })?;
    let array = |rows| PyArray1::from_vec(py, rows);
    Ok((array(of_a), array(of_b), PyArray1::from_vec(py, equal)))
}

#[pyfunction]
fn signatures<'py>(
    py: Python<'py>,
    hashes: PyReadonlyArray1<'py, u64>,
    starts: PyReadonlyArray1<'py, i64>,
    slots: usize,
) -> PyResult<Bound<'py, PyArray2<u64>>> {
    let hashes = column("hashes", &hashes)?;
    let ends = ends(column("starts", &starts)?, hashes.len())?;
    require("slots", slots, MOST_SLOTS)?;
    let values = computed(py, 8 * hashes.len(), || {
        let (scheme, mut tables) = (Slots::new(slots), Tables::default());
        let mut values = vec![0; ends.len() * slots];
        let mut start = 0;
        for (out, &end) in values.chunks_exact_mut(slots).zip(&ends) {
            if start < end {
                out.copy_from_slice(scheme.sign(&hashes[start..end], &mut tables));
            }
            start = end;
        }
        values
    })?;
    table(py, values, ends.len(), slots)
}

#[pyfunction]
fn distinct<'py>(
    py: Python<'py>,
    hashes: PyReadonlyArray1<'py, u64>,
    starts: PyReadonlyArray1<'py, i64>,
) -> PyResult<Hashes<'py>> {
    let hashes = column("hashes", &hashes)?;
    let limits = ends(column("starts", &starts)?, hashes.len())?;
    let (different, ends) = computed(py, 8 * hashes.len(), || {
        let (mut different, mut ends): (Vec<u64>, Vec<usize>) = (Vec::new(), Vec::new());
        let (mut ordered, mut start) = (Vec::new(), 0);
        for &end in &limits {
            ordered.clear();
            ordered.extend_from_slice(&hashes[start..end]);
            ordered.sort_unstable();
            ordered.dedup();
            different.extend_from_slice(&ordered);
            ends.push(different.len());
            start = end;
        }
        (different, ends)
    })?;
    Ok((PyArray1::from_vec(py, different), self::starts(py, ends)))
}

#[pyfunction]
fn text_keys<'py>(
    py: Python<'py>,
    encoded: Vec<Bound<'py, pyo3::types::PyBytes>>,
    key: [u8; 32],
) -> PyResult<Bound<'py, PyArray1<u64>>> {
    let views: Vec<&[u8]> = encoded.iter().map(|text| text.as_bytes()).collect();
    let keyed = Keyed::new(&key);
    let hash = || views.iter().map(|text| keyed.hash(text)).collect();
    Ok(PyArray1::from_vec(py, computed(py, total(&views), hash)?))
}
