"""Arguments that callers give: columns of texts in a list, numpy, pandas or Arrow; ids; numbers.

None of these libraries is imported: a column is known by the method that lists its values.

A message shows what callers gave in one line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from numbers import Integral, Real
from reprlib import Repr
from typing import Final, TypeAlias

from lsh.hits import Id

_SHOWN: Final = Repr()
_SHOWN.maxother = 60


def is_integer(value: object) -> bool:
    """Return whether something is an integer, Python's or numpy's; True and False are none."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def is_number(value: object) -> bool:
    """Return whether something is a real number, Python's or numpy's; True and False are none."""
    return isinstance(value, Real) and not isinstance(value, bool)


def shown(value: object) -> str:
    """Return a value, cut to a line, and its type."""
    if value is None:
        return "None"
    return f"{' '.join(_SHOWN.repr(value).split())} of type {type(value).__name__}"


Column: TypeAlias = Iterable[str]
"""Texts in order: a sequence, a numpy array, a pandas Series or Index, an Arrow array."""

_REMEDY: Final = "leave out or fill missing values, and decode bytes"
_NO_PAIRS: Final = (str, bytes, Mapping, AbstractSet)


def values_of(column: Column) -> Sequence[str]:
    """Return the texts of a column in their order.

    column: a list or tuple is returned as it is. Arrow arrays (chunked or not) have
        `to_pylist`, numpy arrays and pandas columns have `tolist`; what has neither is
        iterated over.

    Raises TypeError with one line if the column is itself a text, has no order, or has more
    than one dimension, or if a value is no text: a missing value (None, NaN, NA) is the
    caller's to leave out or to fill, and bytes to decode. The line names the row.
    """
    values = column if isinstance(column, (list, tuple)) else _listed(column)
    if not set(map(type, values)) <= {str}:
        for row, value in enumerate(values):
            if not isinstance(value, str):
                raise TypeError(f"texts: row {row} has {shown(value)}, takes str; {_REMEDY}")
    return values


def require_column(column: object) -> None:
    """Check that something can hold texts in order. Raises TypeError with one line if not."""
    if isinstance(column, (str, bytes)):
        raise TypeError("texts: got a single text, takes a sequence of texts")
    if isinstance(column, (Mapping, AbstractSet)):
        raise TypeError(f"texts: got a {type(column).__name__}, takes a sequence of texts")
    if getattr(column, "ndim", 1) != 1:
        raise TypeError(f"texts: got {column.ndim} dimensions, takes a column of one dimension")  # type: ignore[attr-defined]
    if not isinstance(column, Iterable) and _reader(column) is None:
        raise TypeError(f"texts: got {shown(column)}, takes a sequence of texts")


def _reader(column: object) -> Callable[[], list[str]] | None:
    return getattr(column, "to_pylist", None) or getattr(column, "tolist", None)


def _listed(column: Column) -> list[str]:
    require_column(column)
    read = _reader(column)
    values: list[str] = list(column) if read is None else read()
    if not isinstance(values, list):
        raise TypeError("texts: got a single value, takes a column of one dimension")
    return values


def text_of(text: object, what: str = "text") -> str:
    """Return a text. Raises TypeError with one line if it is none."""
    if isinstance(text, str):
        return text
    raise TypeError(f"{what}: got {shown(text)}, takes str; {_REMEDY}")


def id_of(ident: object, where: str = "id") -> Id:
    """Return an id as str or int: numpy's are taken as Python's own.

    Raises TypeError with one line if it is neither; True and False aren't ids, nor is 1.0.
    """
    if isinstance(ident, str):
        return str(ident)
    if is_integer(ident):
        return int(ident)  # type: ignore[call-overload, no-any-return]
    raise TypeError(f"{where}: got {shown(ident)}, takes str or int")


def is_id(ident: object) -> bool:
    """Return whether something is an id; see `id_of`."""
    return isinstance(ident, str) or is_integer(ident)


def ids_of(ids: Iterable[Id]) -> list[Id]:
    """Return ids in their order.

    Raises TypeError with one line if one isn't str or int.
    """
    if isinstance(ids, bytes) or not isinstance(ids, Iterable):
        raise TypeError(f"ids: got {shown(ids)}, takes a sequence of ids")
    return [id_of(ident, f"ids: row {row}") for row, ident in enumerate(ids)]


def documents_of(documents: Iterable[tuple[Id, str]]) -> Iterator[tuple[Id, str]]:
    """Yield pairs of an id and a text.

    Raises TypeError with one line that names the first row that is no such pair.
    """
    if isinstance(documents, (Mapping, str, bytes)) or not isinstance(documents, Iterable):
        raise TypeError(
            f"documents: got {shown(documents)}, takes pairs of an id and a text; see dict.items"
        )
    for row, pair in enumerate(documents):
        try:
            ident, text = () if isinstance(pair, _NO_PAIRS) else pair
        except (TypeError, ValueError):
            message = f"documents: row {row} has {shown(pair)}, takes an id and a text"
            raise TypeError(message) from None
        where = f"documents: row {row}"
        yield id_of(ident, f"{where}, id"), text_of(text, f"{where}, text")
