"""The indexes beside an `Index`, for questions that its buckets can't answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from lsh.containment_index import ContainmentIndex
from lsh.nearest_index import NearestIndex

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from lsh.hits import Id
    from lsh.parameters import Parameters


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
