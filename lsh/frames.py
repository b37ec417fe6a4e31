"""`dedupe`: near duplicates among the rows of a data frame, in one line.

It takes frames of pandas and Polars, and tables of Arrow, through narwhals, which is imported when
`dedupe` is called.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from lsh.columns import text_of
from lsh.text_index import Index

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lsh.parameters import Parameters


Frame = TypeVar("Frame")

_ADDED = ("verdict", "duplicate_of", "similarity", "group")


def dedupe(
    frame: Frame,
    text: str = "text",
    *,
    id: str | None = None,  # noqa: A002 -- what the column is called
    parameters: Parameters | None = None,
    absorb: float | None = None,
) -> Frame:
    """Return a frame with what `Index` says of each row, in the columns that follow.

    verdict: "unique"; "duplicate" of an earlier row; "rejected" if there is no text.
    duplicate_of: the id of the most similar earlier row; null unless the row is a duplicate.
    similarity: their estimated similarity; null in the same rows.
    group: the id of the first row of the row's group, as `Index.groups` connects rows; of a row
        without a group, its own id.

    frame: of pandas, Polars or another eager library that narwhals knows, or an Arrow table.
    text: the column with the texts.
    id: the column with the ids; None: a row's id is its number, from 0.
    parameters, absorb: see `Index`.

    The rows stay as they are, in their order. What a filter would publish are those whose verdict
    is "unique". A row that connects two others joins their groups, even if both were unique.

    Raises ImportError if narwhals is missing; TypeError if it knows no such frame, or a text is
    neither a str nor null; ValueError if a column is missing, or one of the new ones is there.
    """
    try:
        import narwhals as nw  # noqa: PLC0415 -- an extra
    except ImportError:
        raise ImportError(
            "lsh.dedupe needs narwhals: pip install 'neardup[frames]', or 'neardup-lsh[frames]'"
        ) from None
    native: Any = frame  # narwhals says which frames it knows.
    known = nw.from_native(native, eager_only=True)
    _check_columns(known.columns, [text] if id is None else [text, id])
    texts, nulls = known[text].to_list(), known[text].is_null().to_list()
    rows = [row for row, null in enumerate(nulls) if not null]
    index = Index(parameters, absorb=absorb)
    hits = index.add_many((row, text_of(texts[row], f"{text}: row {row}")) for row in rows)
    names: Sequence[Any] = range(len(texts)) if id is None else known[id].to_list()
    kinds = [
        "rejected" if null else "duplicate" if row in hits else "unique"
        for row, null in enumerate(nulls)
    ]
    groups = list(names)
    for group in index.groups():
        for member in group.members:
            groups[int(member)] = names[int(group.representative)]
    best = [hits[row][0] if row in hits else None for row in range(len(texts))]
    of = nw.Int64() if id is None else known[id].dtype
    values = (kinds, [None if hit is None else names[int(hit.id)] for hit in best],
              [None if hit is None else hit.similarity for hit in best], groups)  # fmt: skip
    added = []
    for name, column, kind in zip(_ADDED, values, (nw.String(), of, nw.Float64(), of), strict=True):
        if known.implementation.is_pandas_like() and kind.is_integer():
            # With nulls, they would become floats.
            dtype = "Int64" if kind.is_signed_integer() else "UInt64"
            made = known.implementation.to_native_namespace().Series(column, dtype=dtype)
            added.append(nw.from_native(made, series_only=True).alias(name))
        else:
            added.append(nw.new_series(name, column, kind, backend=known.implementation))
    labels = nw.maybe_get_index(known)
    if labels is not None:
        added = [nw.maybe_set_index(series, index=labels) for series in added]
    judged: Frame = known.with_columns(added).to_native()
    return judged


def _check_columns(there: Sequence[str], needed: Sequence[str]) -> None:
    for name in needed:
        if name not in there:
            raise ValueError(f"frame: has no column {name!r}, but {', '.join(there)}")
    for name in _ADDED:
        if name in there:
            raise ValueError(f"frame: has a column {name!r} already; rename or drop it")
