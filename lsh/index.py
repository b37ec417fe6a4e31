"""The questions and answers of an index: its rules, batches of documents, and matches.

The compiled core judges by the rules that docs/explanation/architecture.md explains. `lsh.Index` is
an index of texts in memory. `comparisons` tells how much work an index has with documents:

>>> from lsh import Fingerprinter, Parameters
>>> from lsh.index import BucketRules, comparisons
>>> prints = Fingerprinter(Parameters()).fingerprint(["Hello,  world!", "hello, WORLD!", "Bye"])
>>> comparisons([prints], BucketRules(threshold=0.8))
1
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

from lsh._core import MemoryIndex
from lsh.containment import MOST_ERROR

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from lsh.fingerprint import Fingerprints


NO_TIME: Final = -(1 << 63)
"""The time of a document that has none."""

SameId: TypeAlias = Literal["duplicate", "replace", "ignore"]
"""What a document is whose id the index already has.

duplicate: a document like any other. It may match the earlier one.
replace: the earlier one is forgotten just before, as by a tombstone. So they never match.
ignore: it was sent again. Its matches are those of the first one, and it changes nothing.

To be ignored, a document needs a first one that isn't older than the window by now, and was not
forgotten. Ids, times and what is forgotten decide that, and nothing else. So all indexes that
divide the columns of the same documents agree.
"""

_MOST_MARKED = 63
"""Until there is a now, the core notes in so many bits whose times an entry counts by."""


@dataclass(frozen=True, slots=True)
class BucketRules:
    """The settings of an index. An index is valid only for the rules that it was made with.

    threshold: least estimated similarity at which a candidate is a match.
    absorb: least estimated similarity to an entry at which a document isn't
        inserted, because the entry stands for it.
    capacity: most entries in a bucket; later ones go to overflow buckets.
    max_matches: most matches that are reported for a document, best first.
    window_ms: how long an entry lives after its own time, or after the latest of those of the
        documents that it absorbed; None: for ever.
    same_id: what a document is whose id the index already has.
    containment: least estimated share of a document that is in a candidate at which that is a
        match, whatever their similarity; None: only the similarity counts.
    containment_error: largest standard error of an estimated share that counts. The error grows
        with the ratio of the sizes: for a share of 0.9 and 256 slots, it is 0.1 at 4.8 times
        the size, and at 3.1 times with 128.
    bands, rows: the keys of each column below ``bands`` follow from ``rows`` slots of the sketch,
        as `lsh.band_keys` makes them. So who knows two sketches knows in which of these columns
        they share a bucket. 0: they don't follow from sketches.
    crowded: how many entries make a bucket hot; a full one always is. One of the first entries
        of a hot bucket stands for a document if it matches, and is at least 0.8 similar. With a
        containment, no bucket counts as hot.
    now_rank, now_of, now_least: now is the ``now_rank``-th latest of the last ``now_of`` times,
        once there are ``now_least``. It never goes back.

    Raises ValueError unless 1 <= now_rank <= now_least <= now_of, and now_least <= 63.
    """

    threshold: float
    absorb: float = 0.95
    capacity: int = 32
    max_matches: int = 64
    window_ms: int | None = None
    same_id: SameId = "duplicate"
    containment: float | None = None
    containment_error: float = MOST_ERROR
    bands: int = 0
    rows: int = 0
    crowded: int = 8
    now_rank: int = 16
    now_of: int = 64
    now_least: int = 32

    def __post_init__(self) -> None:
        if not 1 <= self.now_rank <= self.now_least <= min(self.now_of, _MOST_MARKED):
            numbers = f"now_rank {self.now_rank}, now_least {self.now_least}, now_of {self.now_of}"
            raise ValueError(f"got {numbers}: takes 1 <= now_rank <= now_least <= now_of, 63")


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
    times: int64[n], ms, or `NO_TIME`.
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


def comparisons(batches: Iterable[Fingerprints], rules: BucketRules) -> int:
    """Return how many comparisons with candidates an empty index makes for documents in order.

    It judges all of them, with one shard that has all columns. Blank texts are left out. This
    depends on the seed as well: texts from one mould share a band together or not at all, so no
    formula that knows only their similarities can tell.

    batches: fingerprints with the same parameters.
    rules: the rules of the index, whose window doesn't count: all documents have one time.
    """
    index = None
    for prints in batches:
        if index is None:
            alone = replace(rules, window_ms=None)
            index = MemoryIndex(alone, prints.keys.shape[1], prints.sketches.shape[1])
        index.judge(prints.keys, prints.sketches, prints.shingle_counts, prints.blank)
    return index.compared if index is not None else 0
