//! Rules and batches as Python gives them: `lsh.index.BucketRules` and `lsh.index.DocumentBatch`.

use numpy::{PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::index::batch::{Batch, Forgotten, Ids};
use crate::index::rules::{Rules, SameId};

pub fn rules_of(rules: &Bound<'_, PyAny>) -> PyResult<Rules> {
    let same_id: String = rules.getattr("same_id")?.extract()?;
    Ok(Rules {
        threshold: rules.getattr("threshold")?.extract()?,
        absorb: rules.getattr("absorb")?.extract()?,
        capacity: rules.getattr("capacity")?.extract()?,
        max_matches: rules.getattr("max_matches")?.extract()?,
        window: rules.getattr("window_ms")?.extract()?,
        same_id: match &same_id[..] {
            "duplicate" => SameId::Duplicate,
            "replace" => SameId::Replace,
            "ignore" => SameId::Ignore,
            other => return Err(PyValueError::new_err(format!("same_id: got {other:?}"))),
        },
        containment: rules.getattr("containment")?.extract()?,
        containment_error: rules.getattr("containment_error")?.extract()?,
        bands: rules.getattr("bands")?.extract()?,
        rows: rules.getattr("rows")?.extract()?,
        crowded: rules.getattr("crowded")?.extract()?,
        now_rank: rules.getattr("now_rank")?.extract()?,
        now_of: rules.getattr("now_of")?.extract()?,
        now_least: rules.getattr("now_least")?.extract()?,
    })
}

/// The columns' numbers of a batch, and how many slots each sketch has.
pub fn shape_of(batch: &Bound<'_, PyAny>) -> PyResult<(Vec<u8>, usize)> {
    let sketches: PyReadonlyArray2<'_, u8> = batch.getattr("sketches")?.extract()?;
    let columns = batch.getattr("columns")?.try_iter()?.map(|column| column?.extract());
    Ok((columns.collect::<PyResult<_>>()?, sketches.as_array().ncols()))
}

/// A copy of a batch. `Batch::check` says whether its parts fit.
pub fn batch_of(batch: &Bound<'_, PyAny>) -> PyResult<Batch> {
    let mut ids = Ids::default();
    for id in batch.getattr("ids")?.try_iter()? {
        ids.push(id?.cast::<PyBytes>()?.as_bytes());
    }
    let mut forgotten = Vec::new();
    for one in batch.getattr("forgotten")?.try_iter()? {
        let one = one?;
        let id = one.getattr("id")?.cast::<PyBytes>()?.as_bytes().to_vec();
        forgotten.push(Forgotten { row: one.getattr("row")?.extract()?, id });
    }
    Ok(Batch {
        sequences: vector(&batch.getattr("sequences")?)?,
        times: vector(&batch.getattr("times")?)?,
        ids,
        shingles: vector(&batch.getattr("shingles")?)?,
        keys: table(&batch.getattr("keys")?)?,
        sketches: table(&batch.getattr("sketches")?)?,
        forgotten,
    })
}

pub fn vector<T: numpy::Element + Copy>(array: &Bound<'_, PyAny>) -> PyResult<Vec<T>> {
    let array: PyReadonlyArray1<'_, T> = array.extract()?;
    Ok(array.as_array().to_vec())
}

/// Row after row, whatever the order of the array.
fn table<T: numpy::Element + Copy>(array: &Bound<'_, PyAny>) -> PyResult<Vec<T>> {
    let array: PyReadonlyArray2<'_, T> = array.extract()?;
    let view = array.as_array();
    Ok(view.to_slice().map_or_else(|| view.iter().copied().collect(), <[T]>::to_vec))
}
