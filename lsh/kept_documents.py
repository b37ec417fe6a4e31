"""The documents of an `Index` beside fingerprints: ids, texts, sizes, indexes for other questions.

Its buckets can't say which documents are nearest, or hold a text.
"""

from __future__ import annotations

from array import array
from itertools import compress
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from lsh.columns import is_id
from lsh.containment_index import ContainmentIndex
from lsh.nearest_index import NearestIndex

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from lsh.fingerprint import Fingerprinter
    from lsh.hits import Id
    from lsh.parameters import Parameters
    from lsh.shingles import Shingles

UNKNOWN = -1
"""The size of a document whose shingles weren't counted."""


class Sketched(NamedTuple):
    """n documents that aren't blank.

    ids: n ids. sketches: uint8[n, slots].
    sizes: int64[n], how many different shingles each has, or `UNKNOWN`.
    """

    ids: Sequence[Id]
    sketches: NDArray[np.uint8]
    sizes: NDArray[np.int64]


class SideIndexes:
    """Each is made of all documents at the first question for it, and follows them from then on."""

    def __init__(self, parameters: Parameters) -> None:
        """Begin with none. parameters: of the fingerprints."""
        self._parameters = parameters
        self._nearest: NearestIndex | None = None
        self._containment: ContainmentIndex | None = None

    @property
    def need_sizes(self) -> bool:
        """Return whether what is added must have a size."""
        return self._containment is not None

    def nearest(self, documents: Callable[[], Sketched]) -> NearestIndex:
        """Return the index for the most similar documents, made of `documents()` if there is none.

        Sizes may be unknown.
        """
        if self._nearest is None:
            all_ = documents()
            self._nearest = NearestIndex(self._parameters)
            self._nearest.add_sketches(all_.ids, all_.sketches)
        return self._nearest

    def containment(self, documents: Callable[[], Sketched]) -> ContainmentIndex:
        """Return the index for containment, made of `documents()` if there is none.

        All sizes must be known.
        """
        if self._containment is None:
            all_ = documents()
            self._containment = ContainmentIndex(self._parameters)
            self._containment.add_sketches(all_.ids, all_.sketches, all_.sizes)
        return self._containment

    def add(self, documents: Sketched) -> None:
        """Add documents. If a size is unknown, there is no index for containment any more."""
        if self._nearest is not None:
            self._nearest.add_sketches(documents.ids, documents.sketches)
        if (documents.sizes == UNKNOWN).any():
            self._containment = None
        if self._containment is not None:
            self._containment.add_sketches(documents.ids, documents.sketches, documents.sizes)

    def remove(self, ident: Id) -> None:
        """Remove a document that isn't blank."""
        for index in (self._nearest, self._containment):
            if index is not None:
                index.remove(ident)


_BATCH = 8_192  # texts whose shingles are counted at a time


class KeptDocuments:
    """Documents by ids, and by the rows that their fingerprints have in the core.

    A row whose document was removed is left without one.
    """

    def __init__(self, fingerprinter: Fingerprinter, *, texts: bool, sizes: bool) -> None:
        """Begin empty.

        texts: whether to keep the texts. sizes: whether to count the different shingles of each
        text as it is added.
        """
        self._fingerprinter = fingerprinter
        self._rows: dict[Id, int] = {}
        self._ids: list[Id | None] = []
        self._blank: set[int] = set()
        self._texts: list[str | None] | None = [] if texts else None
        self._sizes = array("q")
        self._count_sizes = sizes

    def emptied(self) -> KeptDocuments:
        """Return one without documents that keeps the same of them."""
        texts = self._texts is not None
        return KeptDocuments(self._fingerprinter, texts=texts, sizes=self._count_sizes)

    @property
    def keep_texts(self) -> bool:
        """Return whether texts are kept."""
        return self._texts is not None

    @property
    def keep_sizes(self) -> bool:
        """Return whether sizes are counted as texts are added."""
        return self._count_sizes

    @property
    def rows(self) -> int:
        """Return the number of rows, with those that are left without a document."""
        return len(self._ids)

    def __len__(self) -> int:
        """Return the number of documents."""
        return len(self._rows)

    def __contains__(self, ident: object) -> bool:
        """Return whether there is a document with this id."""
        return is_id(ident) and ident in self._rows

    def __iter__(self) -> Iterator[Id]:
        """Yield the ids in the order in which they were added."""
        return iter(self._rows)

    def require_new(self, ids: Sequence[Id]) -> None:
        """Check that none of these ids is known, or comes twice. Raises ValueError if one does."""
        seen: set[Id] = set()
        for ident in ids:
            if ident in self._rows or ident in seen:
                raise ValueError(f"id {ident!r}: the index has it; remove it first to replace it")
            seen.add(ident)

    def add(
        self,
        ids: Sequence[Id],
        texts: Sequence[str | None],
        blank: NDArray[np.bool_],
        sizes: NDArray[np.int64],
        *,
        count: bool,
    ) -> NDArray[np.int64]:
        """Add n documents that were checked, in the next rows; return their sizes: int64[n].

        sizes: int64[n], those that are known, or `UNKNOWN`. count: whether to count the others,
        where there are texts. They are counted anyway if this keeps sizes.
        """
        first = len(self._ids)
        self._ids += ids
        self._rows |= zip(ids, range(first, len(self._ids)), strict=True)
        self._blank |= {first + place for place in np.flatnonzero(blank).tolist()}
        if self._texts is not None:
            self._texts += texts
        if self._count_sizes or count:
            sizes = self._sized(sizes, texts)
        self._sizes.extend(sizes.tolist())
        return sizes

    def remove(self, ident: Id) -> int:
        """Remove a document, and return the row that it had.

        Raises KeyError if there is none with the id.
        """
        if ident not in self:
            raise KeyError(ident)
        row = self._rows.pop(ident)
        self._ids[row] = None
        if self._texts is not None:
            self._texts[row] = None
        return row

    def named(self, row: int) -> Id:
        """Return the id of the document in a row that has one."""
        ident = self._ids[row]
        assert ident is not None  # noqa: S101 -- no bucket names a document that was removed
        return ident

    def is_blank(self, row: int) -> bool:
        """Return whether nothing was left of a document's text."""
        return row in self._blank

    def all_rows(self) -> list[int]:
        """Return the rows of all documents, in the order in which they were added."""
        return list(self._rows.values())

    def fingerprinted(self) -> NDArray[np.int64]:
        """Return the rows of all documents that aren't blank, ascending: int64[m]."""
        rows = self._rows.values()
        return np.array([row for row in rows if row not in self._blank], np.int64)

    def texts(self) -> list[str | None] | None:
        """Return the texts of all documents, None for one added without; None: none are kept."""
        return None if self._texts is None else [self._texts[row] for row in self._rows.values()]

    def have_texts(self, rows: NDArray[np.int64]) -> bool:
        """Return whether the documents in these rows have texts."""
        return all(self._text_of(row) is not None for row in rows.tolist())

    def shingles(self, rows: Sequence[int]) -> Shingles:
        """Return the shingles of the texts in some rows, which have texts."""
        return self._fingerprinter.shingles([self._text_of(row) or "" for row in rows])

    def sizes(self, rows: NDArray[np.int64] | list[int]) -> NDArray[np.int64]:
        """Return the sizes of the documents in some rows, or `UNKNOWN`: int64[k]."""
        return np.array(self._sizes, np.int64)[rows]

    def count_sizes(self, rows: NDArray[np.int64]) -> bool:
        """Count the sizes in some rows that aren't known; return whether all are known now."""
        sizes = np.array(self._sizes, np.int64)
        for low in range(0, len(rows), _BATCH):
            part = rows[low : low + _BATCH]
            sizes[part] = self._sized(sizes[part], [self._text_of(row) for row in part.tolist()])
        self._sizes = array("q", sizes.tolist())
        return not (sizes[rows] == UNKNOWN).any()

    def _text_of(self, row: int) -> str | None:
        return None if self._texts is None else self._texts[row]

    def _sized(self, sizes: NDArray[np.int64], texts: Sequence[str | None]) -> NDArray[np.int64]:
        """Return sizes, int64[n], with those counted that are unknown and have a text."""
        there = np.array([text is not None for text in texts], np.bool_)
        due = (sizes == UNKNOWN) & there
        counted = sizes.copy()
        counted[due] = self._fingerprinter.sizes([text or "" for text in compress(texts, due)])
        return counted
