"""The input of the index, and its answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

__all__ = ["DocumentBatch", "Forgotten", "Match"]


class Match(NamedTuple):
    """An earlier document that is a near duplicate of a document.

    containment: the estimated share of the document that is in the earlier one, if it reaches
        `BucketRules.containment`. So a match without it is one by its similarity alone, and one
        that is less similar than the threshold is one by its containment alone.

    The id is empty in the matches of a document that was sent again, if it was forgotten meanwhile.
    Whoever publishes matches leaves these out, after taking the best of all indexes.
    """

    sequence: int
    similarity: float
    id: bytes
    containment: float | None = None


class Forgotten(NamedTuple):
    """An id that is forgotten at one place in the order.

    row: the row of the batch's first document after it; n if there is none.
    id: the id. Whatever documents have it, in earlier batches or before this row, are forgotten.
    """

    row: int
    id: bytes


@dataclass(frozen=True, slots=True)
class DocumentBatch:
    """n documents in sequence order, with the key columns of one index.

    sequences: uint64[n], ascending; the documents' numbers in the global order.
    times: int64[n], ms, or `lsh.index.clock.NO_TIME`.
    ids: n ids.
    shingles: uint32[n], the number of shingles of each: of different ones, if the rules have a
        containment.
    columns: c numbers below 256; each is a band or the exact text.
    keys: uint64[c, n], one row for each column.
    sketches: uint8[n, slots].
    forgotten: the ids that are forgotten, in their order; rows ascend.
    """

    sequences: NDArray[np.uint64]
    times: NDArray[np.int64]
    ids: Sequence[bytes]
    shingles: NDArray[np.uint32]
    columns: Sequence[int]
    keys: NDArray[np.uint64]
    sketches: NDArray[np.uint8]
    forgotten: Sequence[Forgotten] = ()
