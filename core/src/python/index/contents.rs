//! What a store has of a shard, value by value.

use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::damaged;
use crate::index::record::Record;
use crate::index::shard::contents::Contents;
use crate::index::shard::run_list::ID_COLUMN;
use crate::python::caught::caught;

type FoundRecord<'py> = (u64, i64, u32, Bound<'py, PyBytes>, Bound<'py, PyBytes>);
type Postings<'py> =
    (Bound<'py, PyArray1<u8>>, Bound<'py, PyArray1<u64>>, Bound<'py, PyArray1<i64>>, usize);

#[pyclass(frozen, name = "Contents", module = "lsh._core")]
pub struct PyContents(Contents);

#[pymethods]
impl PyContents {
    #[new]
    fn new(runs: Option<&[u8]>, inserted: u64) -> PyResult<Self> {
        Ok(Self(Contents::new(runs, inserted).map_err(damaged)?))
    }

    #[getter]
    fn columns(&self) -> Vec<u32> {
        let columns = self.0.list().columns.iter();
        columns.filter(|&&column| column != ID_COLUMN).map(|&column| column.into()).collect()
    }

    #[getter]
    fn runs(&self) -> Vec<(u32, u8, u64)> {
        self.0.list().runs.iter().map(|run| (run.number, run.level, run.postings)).collect()
    }

    #[getter]
    fn tables(&self) -> Vec<u32> {
        let list = self.0.list();
        let begun = list.merging.iter().filter(|plan| plan.done > 0).map(|plan| plan.target);
        list.runs.iter().map(|run| run.number).chain(begun).collect()
    }

    #[getter]
    #[pyo3(name = "eras")]
    fn slices(&self) -> Vec<(u32, u64)> {
        self.0.list().slices.kept().iter().map(|slice| (slice.number, slice.first)).collect()
    }

    #[pyo3(name = "cells")]
    fn postings<'py>(
        &self,
        py: Python<'py>,
        key: &Bound<'py, PyBytes>,
        value: &Bound<'py, PyBytes>,
    ) -> PyResult<Postings<'py>> {
        let (key, value) = (key.as_bytes(), value.as_bytes());
        let found = caught(py, 0, || self.0.postings(key, value).map_err(damaged))?;
        let of_ids = |at: &usize| found.columns[*at] == ID_COLUMN;
        let kept: Vec<usize> = (0..found.columns.len()).filter(|at| !of_ids(at)).collect();
        let ids = found.columns.len() - kept.len();
        let (columns, hashes) = (&found.columns, &found.hashes);
        Ok((
            PyArray1::from_iter(py, kept.iter().map(|&at| columns[at])),
            PyArray1::from_iter(py, kept.iter().map(|&at| hashes[at])),
            PyArray1::from_iter(py, kept.iter().map(|&at| found.documents[at] as i64)),
            found.marks + ids,
        ))
    }

    fn bucket<'py>(
        &self,
        py: Python<'py>,
        key: &Bound<'py, PyBytes>,
        value: &Bound<'py, PyBytes>,
    ) -> PyResult<(u32, u8, u64, Vec<u64>, bool)> {
        let (key, value) = (key.as_bytes(), value.as_bytes());
        let found = caught(py, 0, || self.0.bucket(key, value).map_err(damaged))?;
        let bucket = found.bucket;
        Ok((found.slice, found.column, found.hash, bucket.entries, bucket.has_overflow))
    }

    fn records<'py>(
        &self,
        py: Python<'py>,
        key: &Bound<'py, PyBytes>,
        value: &Bound<'py, PyBytes>,
    ) -> PyResult<Vec<Option<FoundRecord<'py>>>> {
        let (key, value) = (key.as_bytes(), value.as_bytes());
        let page = caught(py, 0, || self.0.records(key, value).map_err(damaged))?;
        let records = page.records().map(|packed| {
            if packed.is_empty() {
                return Ok(None);
            }
            let record = Record::unpack(packed).map_err(damaged)?;
            let Record { sequence, time, shingles, sketch, id, .. } = record;
            let (sketch, id) = (PyBytes::new(py, sketch), PyBytes::new(py, id));
            Ok(Some((sequence, time, shingles, sketch, id)))
        });
        records.collect()
    }
}
