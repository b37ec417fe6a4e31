"""Columns of a frame: little-endian bytes in the record, arrays in memory."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import numpy.typing as npt

__all__ = [
    "F32",
    "I64",
    "U8",
    "U16",
    "U32",
    "U64",
    "ColumnError",
    "any_column",
    "any_packed",
    "column",
    "length",
    "packed",
    "width",
]

U8 = np.dtype(np.uint8)
U16 = np.dtype(np.uint16).newbyteorder("<")
U32 = np.dtype(np.uint32).newbyteorder("<")
U64 = np.dtype(np.uint64).newbyteorder("<")
I64 = np.dtype(np.int64).newbyteorder("<")
F32 = np.dtype(np.float32).newbyteorder("<")

ScalarT = TypeVar("ScalarT", bound=np.generic)


class ColumnError(Exception):
    """A column contradicts the others of its frame, or itself."""


def length(name: str, data: memoryview, dtype: np.dtype[ScalarT]) -> int:
    """Return how many values a column has.

    Raises:
        ColumnError: its bytes are not a whole number of values.
    """
    values, rest = divmod(data.nbytes, dtype.itemsize)
    if rest:
        raise ColumnError(f"{name} has {data.nbytes} bytes, not a whole number of values")
    return values


def column(
    name: str, data: memoryview, dtype: np.dtype[ScalarT], count: int
) -> npt.NDArray[ScalarT]:
    """Return a column of ``count`` values, a view of its bytes.

    Raises:
        ColumnError: it has more or fewer.
    """
    expected = count * dtype.itemsize
    if data.nbytes != expected:
        raise ColumnError(f"{name} has {data.nbytes} bytes, expected {expected}")
    # Unlike np.frombuffer, this keeps no memoryview for each array.
    return np.ndarray(count, dtype, data)


def width(name: str, data: memoryview, dtype: np.dtype[ScalarT], documents: int) -> int:
    """Return how many values a column has for each document: at least one, or 0 without documents.

    Raises:
        ColumnError: the values can't be divided evenly among the documents.
    """
    values, rest = divmod(data.nbytes, dtype.itemsize * max(1, documents))
    if rest or (values > 0) != (documents > 0):
        raise ColumnError(
            f"{name} has {data.nbytes} bytes, not a whole number of values for each of"
            f" {documents} documents"
        )
    return values


def any_column(
    name: str, data: memoryview | None, dtype: np.dtype[ScalarT]
) -> npt.NDArray[ScalarT] | None:
    """Return a column of any length; None if the frame has none.

    Raises:
        ColumnError: its bytes are not a whole number of values.
    """
    return None if data is None else column(name, data, dtype, length(name, data, dtype))


def packed(values: npt.NDArray[ScalarT], dtype: np.dtype[ScalarT]) -> memoryview:
    """Return the bytes of a column in row order, copied only if the memory layout differs."""
    return np.ascontiguousarray(values, dtype).data


def any_packed(values: npt.NDArray[ScalarT] | None, dtype: np.dtype[ScalarT]) -> memoryview | None:
    """Return the bytes of a column; None if the frame has none."""
    return None if values is None else packed(values, dtype)
