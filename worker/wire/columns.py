"""Columns of a frame: little-endian bytes in the record, arrays in memory."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import numpy.typing as npt

U8 = np.dtype(np.uint8)
U16 = np.dtype(np.uint16).newbyteorder("<")
U32 = np.dtype(np.uint32).newbyteorder("<")
U64 = np.dtype(np.uint64).newbyteorder("<")
I64 = np.dtype(np.int64).newbyteorder("<")
F32 = np.dtype(np.float32).newbyteorder("<")

ScalarT = TypeVar("ScalarT", bound=np.generic)


class ColumnError(Exception):
    """A column contradicts the others of its frame, or itself, or can't be carried out."""


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


def offsets_column(name: str, data: memoryview, within: int) -> npt.NDArray[np.uint32]:
    """Return a column of offsets, relative to the frame's start; the frame has ``within``.

    Raises:
        ColumnError: they don't ascend, or go beyond the frame.
    """
    offsets = column(name, data, U32, length(name, data, U32))
    if (offsets[1:] <= offsets[:-1]).any() or (len(offsets) and int(offsets[-1]) >= within):
        raise ColumnError(f"{name} does not ascend within the frame")
    return offsets


def among(some: npt.NDArray[np.uint32], offsets: npt.NDArray[np.uint32]) -> npt.NDArray[np.bool_]:
    """Return which of some offsets are among ascending ones, bool[len(some)]."""
    if not len(offsets) or not len(some):
        return np.zeros(len(some), np.bool_)
    places = np.minimum(np.searchsorted(offsets, some), len(offsets) - 1)
    found: npt.NDArray[np.bool_] = offsets[places] == some
    return found


def decoded(name: str, data: memoryview | bytes) -> str:
    """Return bytes decoded as UTF-8.

    Raises:
        ColumnError: they are something else.
    """
    try:
        return str(data, "utf-8")
    except UnicodeDecodeError as error:
        raise ColumnError(f"{name} is not UTF-8 at byte {error.start}") from None


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


def packed(values: npt.NDArray[ScalarT], dtype: np.dtype[ScalarT]) -> memoryview:
    """Return the bytes of a column in row order, copied only if the memory layout differs."""
    return np.ascontiguousarray(values, dtype).data


def any_packed(values: npt.NDArray[ScalarT] | None, dtype: np.dtype[ScalarT]) -> memoryview | None:
    """Return the bytes of a column; None if the frame has none."""
    return None if values is None else packed(values, dtype)
