"""Texts in whatever holds a column of them: a list, numpy, pandas, Arrow.

None of these libraries is imported: a column is known by the method that lists its values.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

__all__ = ["Column", "values_of"]

Column: TypeAlias = Iterable[str]
"""Texts in order: a sequence, a numpy array, a pandas Series or Index, an Arrow array."""


def values_of(column: Column) -> Sequence[str]:
    """Return the texts of a column in their order.

    column: a list or tuple is returned as it is. Arrow arrays (chunked or not) have
        `to_pylist`, numpy arrays and pandas columns have `tolist`; what has neither is
        iterated over.

    Raises TypeError with one line if the column is itself a text, or if a value is none: a
    missing value (None, NaN, NA) is the caller's to leave out or to fill. Values of a list or
    tuple are not looked at.
    """
    if isinstance(column, (list, tuple)):
        return column
    if isinstance(column, (str, bytes)):
        raise TypeError("texts: got a single text, takes a sequence of texts")
    listed = getattr(column, "to_pylist", None) or getattr(column, "tolist", None)
    values: list[str] = list(column) if listed is None else listed()
    if not isinstance(values, list):
        raise TypeError("texts: got a single value, takes a column of one dimension")
    for row, value in enumerate(values):
        if not isinstance(value, str):
            message = (
                f"texts: row {row} has {value!r}, takes texts; leave out or fill missing values"
            )
            raise TypeError(message)
    return values
