//! The index in memory.

use numpy::{PyArray1, PyArray2, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

use super::arrays::table;
use super::caught::{caught, computed, left};
use super::index::batch::{rules_of, vector};
use crate::index::in_memory::{self, Found, Given};
use crate::index::reader::Damaged;

/// While one thread is in a method that changes the index, another one's calls raise RuntimeError:
/// PyO3 sees to that.
#[pyclass(name = "MemoryIndex", module = "lsh._core")]
pub struct MemoryIndex {
    index: in_memory::MemoryIndex,
    /// Whether a failure has left it half changed.
    is_broken: bool,
}

type Matches<'py> = (
    Bound<'py, PyArray1<i64>>,
    Bound<'py, PyArray1<i64>>,
    Bound<'py, PyArray1<f64>>,
    Bound<'py, PyArray1<f64>>,
);

fn damaged(error: Damaged) -> PyErr {
    PyRuntimeError::new_err(error.0)
}

fn arrays_of(py: Python<'_>, found: Found) -> Matches<'_> {
    (
        PyArray1::from_vec(py, found.documents),
        PyArray1::from_vec(py, found.rows),
        PyArray1::from_vec(py, found.similarity),
        PyArray1::from_vec(py, found.containment),
    )
}

impl MemoryIndex {
    fn index(&self) -> PyResult<&in_memory::MemoryIndex> {
        if self.is_broken { Err(left()) } else { Ok(&self.index) }
    }

    /// Do work that changes the index. If it fails, the index is half changed, and isn't used again.
    /// What is given is checked before.
    fn change<T: Send>(
        &mut self,
        py: Python<'_>,
        bytes: usize,
        work: impl Send + FnOnce(&mut in_memory::MemoryIndex) -> Result<T, Damaged>,
    ) -> PyResult<T> {
        self.index()?;
        self.is_broken = true;
        let done = computed(py, bytes, || work(&mut self.index))?.map_err(damaged)?;
        self.is_broken = false;
        Ok(done)
    }

    /// Copy what is given, so that nobody can change it.
    fn given(
        &self,
        keys: &PyReadonlyArray2<'_, u64>,
        sketches: &PyReadonlyArray2<'_, u8>,
        shingles: &Bound<'_, PyAny>,
    ) -> PyResult<Given> {
        let index = self.index()?;
        let (keys, sketches) = (keys.as_array(), sketches.as_array());
        let shingles: Vec<u32> = vector(shingles)?;
        let expected = [(shingles.len(), index.width()), (shingles.len(), index.slots())];
        let shapes = [keys.dim(), sketches.dim()];
        if shapes != expected {
            let message = format!("keys, sketches: got arrays of {shapes:?}, takes {expected:?}");
            return Err(PyValueError::new_err(message));
        }
        let by_column = keys.reversed_axes().as_standard_layout().into_owned();
        let by_row = sketches.as_standard_layout().into_owned();
        Ok(Given {
            keys: by_column.into_raw_vec_and_offset().0,
            sketches: by_row.into_raw_vec_and_offset().0,
            shingles,
        })
    }

    /// The rows that are given, all of which exist.
    fn rows(&self, rows: &Bound<'_, PyAny>) -> PyResult<Vec<usize>> {
        let count = self.index()?.len();
        let row = |row: i64| {
            usize::try_from(row).ok().filter(|&row| row < count).ok_or_else(|| {
                PyValueError::new_err(format!("row {row}: the index has {count} rows"))
            })
        };
        vector(rows)?.into_iter().map(row).collect()
    }

    fn column(&self, column: usize) -> PyResult<&[u64]> {
        let index = self.index()?;
        let columns = index.width();
        if column < columns {
            return Ok(index.keys(column));
        }
        Err(PyValueError::new_err(format!("column {column}: the index has {columns} columns")))
    }
}

#[pymethods]
impl MemoryIndex {
    #[new]
    fn new(rules: &Bound<'_, PyAny>, columns: usize, slots: usize) -> PyResult<Self> {
        let made = in_memory::MemoryIndex::new(rules_of(rules)?, columns, slots);
        let index = made.map_err(PyValueError::new_err)?;
        Ok(Self { index, is_broken: false })
    }

    fn __len__(&self) -> usize {
        self.index.len()
    }

    #[getter]
    fn compared(&self) -> u64 {
        self.index.compared()
    }

    fn judge<'py>(
        &mut self,
        py: Python<'py>,
        keys: PyReadonlyArray2<'py, u64>,
        sketches: PyReadonlyArray2<'py, u8>,
        shingles: &Bound<'py, PyAny>,
        blank: PyReadonlyArray1<'py, bool>,
    ) -> PyResult<Matches<'py>> {
        let given = self.given(&keys, &sketches, shingles)?;
        let blank: Vec<bool> = blank.as_array().to_vec();
        if blank.len() != given.shingles.len() {
            let (got, takes) = (blank.len(), given.shingles.len());
            return Err(PyValueError::new_err(format!("blank: got {got}, takes {takes}")));
        }
        self.index.check_room(blank.len()).map_err(damaged)?;
        let found = self.change(py, given.sketches.len(), |index| index.judge(&given, &blank))?;
        Ok(arrays_of(py, found))
    }

    fn matches<'py>(
        &self,
        py: Python<'py>,
        keys: PyReadonlyArray2<'py, u64>,
        sketches: PyReadonlyArray2<'py, u8>,
        shingles: &Bound<'py, PyAny>,
    ) -> PyResult<Matches<'py>> {
        let given = self.given(&keys, &sketches, shingles)?;
        let index = self.index()?;
        let matches = || index.matches(&given).map_err(damaged);
        Ok(arrays_of(py, caught(py, given.sketches.len(), matches)?))
    }

    fn remove(
        &mut self,
        py: Python<'_>,
        rows: &Bound<'_, PyAny>,
        others: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let (rows, others) = (self.rows(rows)?, self.rows(others)?);
        let work = (rows.len() + others.len()) * self.index.width();
        self.change(py, work, |index| index.remove(&rows, &others))
    }

    fn keys<'py>(
        &self,
        py: Python<'py>,
        rows: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyArray2<u64>>> {
        let (rows, columns, index) = (self.rows(rows)?, self.index.width(), self.index()?);
        let keys = computed(py, 8 * rows.len() * columns, || {
            let mut keys = Vec::with_capacity(rows.len() * columns);
            for column in 0..columns {
                let own = index.keys(column);
                keys.extend(rows.iter().map(|&row| own[row]));
            }
            keys
        })?;
        table(py, keys, columns, rows.len())
    }

    fn sketches<'py>(
        &self,
        py: Python<'py>,
        rows: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyArray2<u8>>> {
        let (rows, slots, index) = (self.rows(rows)?, self.index.slots(), self.index()?);
        let sketches = computed(py, rows.len() * slots, || {
            let mut sketches = Vec::with_capacity(rows.len() * slots);
            rows.iter().for_each(|&row| sketches.extend_from_slice(index.sketch(row)));
            sketches
        })?;
        table(py, sketches, rows.len(), slots)
    }

    fn shingles<'py>(
        &self,
        py: Python<'py>,
        rows: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyArray1<u32>>> {
        let rows = self.rows(rows)?;
        let shingles = rows.iter().map(|&row| self.index.shingles()[row]).collect();
        Ok(PyArray1::from_vec(py, shingles))
    }

    fn with_key<'py>(
        &self,
        py: Python<'py>,
        column: usize,
        key: u64,
    ) -> PyResult<Bound<'py, PyArray1<i64>>> {
        let keys = (0..).zip(self.column(column)?);
        let rows = keys.filter(|&(_, &own)| own == key).map(|(row, _)| row).collect();
        Ok(PyArray1::from_vec(py, rows))
    }

    fn similarity<'py>(
        &self,
        py: Python<'py>,
        left: &Bound<'py, PyAny>,
        right: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let (left, right) = (self.rows(left)?, self.rows(right)?);
        if left.len() != right.len() && left.len() != 1 {
            let (got, takes) = (left.len(), right.len());
            return Err(PyValueError::new_err(format!("left: got {got} rows, takes {takes} or 1")));
        }
        let index = self.index()?;
        let similarity = computed(py, right.len() * index.slots(), || {
            let pairs = left.iter().cycle().zip(&right);
            pairs.map(|(&one, &other)| index.similarity(one, other)).collect()
        })?;
        Ok(PyArray1::from_vec(py, similarity))
    }
}
