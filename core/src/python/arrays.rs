//! Arrays of numpy as they are given and returned.

use numpy::ndarray::ArrayView2;
use numpy::{PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Return the rows of sketches, C-contiguous, and how many slots each has.
pub fn rows<'a>(
    what: &str,
    sketches: &'a PyReadonlyArray2<'_, u8>,
) -> PyResult<(&'a [u8], usize, usize)> {
    let view: ArrayView2<'_, u8> = sketches.as_array();
    let (count, slots) = view.dim();
    // Unlike `PyReadonlyArray::as_slice`, this takes no columns for rows.
    let cells = view.to_slice();
    let cells =
        cells.ok_or_else(|| PyValueError::new_err(format!("{what}: takes an array in C order")))?;
    Ok((cells, count, slots))
}

/// Return a column in order.
pub fn column<'a, T: numpy::Element>(
    what: &str,
    given: &'a PyReadonlyArray1<'_, T>,
) -> PyResult<&'a [T]> {
    given.as_slice().map_err(|_| PyValueError::new_err(format!("{what}: takes a contiguous array")))
}

/// Return values as an array of `count` rows.
pub fn table<T: numpy::Element>(
    py: Python<'_>,
    values: Vec<T>,
    count: usize,
    width: usize,
) -> PyResult<Bound<'_, PyArray2<T>>> {
    PyArray1::from_vec(py, values).reshape([count, width])
}

/// Return where each of n parts begins, then the end: int64[n + 1].
pub fn starts(py: Python<'_>, ends: Vec<usize>) -> Bound<'_, PyArray1<i64>> {
    let starts = std::iter::once(0).chain(ends).map(|end| end as i64);
    PyArray1::from_vec(py, starts.collect())
}

/// Return where each of n parts ends, if `starts` lead from 0 through `total` items.
pub fn ends(starts: &[i64], total: usize) -> PyResult<Vec<usize>> {
    let ascending = starts.windows(2).all(|pair| pair[0] <= pair[1]);
    let (first, last) = (starts.first().copied(), starts.last().copied());
    if first != Some(0) || last != Some(total as i64) || !ascending {
        let message =
            format!("starts: takes ascending numbers from 0 to the number of hashes, {total}");
        return Err(PyValueError::new_err(message));
    }
    Ok(starts[1..].iter().map(|&start| start as usize).collect())
}
