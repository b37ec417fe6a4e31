"""What is decided about a batch: its matches, and the changes to the index."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from lsh.index.buckets import Buckets
from lsh.index.clock import Clock, Dated
from lsh.index.layout import BucketKeys

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from lsh.index.batch import Match
    from lsh.index.layout import Renewals
    from lsh.index.verdicts import Verdict

__all__ = ["Decision", "NewCells"]


class NewCells(NamedTuple):
    """The cells of c buckets that didn't exist: each is one document's key in a column.

    keys: the keys of the buckets, sorted by column in the order of the batch, then ascending.
    documents: int64[c], the number of the first document in each bucket.
    """

    keys: BucketKeys
    documents: NDArray[np.int64]


@dataclass(slots=True)
class Decision:
    """The result of judging a batch: its matches, and the changes to the index.

    matches: the matches of each document that has any, best first, by row of the batch,
        ascending.
    dates: as of when the documents count, and the clock after them.
    cells: the new buckets.
    changed: the keys of the buckets whose content isn't one new cell. They replace earlier ones.
    buckets: the content of each changed bucket, by its place in ``changed``.
    records: the records of the documents that a bucket or a verdict now names, or whose id is
        remembered, in the order of their numbers, which follow those in the index.
    renewals: all renewals of each document that has a new one, by number.
    verdicts: the verdicts of new documents that have matches, by number, if they are kept.
    columns: the columns of the batch.
    forgotten: the numbers of the documents whose record goes, ascending.
    candidates: how many comparisons with candidates were made.
    absorbed: how many cells were not inserted because an entry stands for them.
    covered: how many of these are less similar to it than `BucketRules.absorb`, in crowded buckets.
    divided: how many buckets were full, and have finer ones from now on.
    dropped: how many entries were removed from the finest buckets, which were full.
    repeated: how many documents were ignored because they were sent again.
    """

    matches: Mapping[int, list[Match]]
    dates: Dated
    cells: NewCells
    changed: BucketKeys
    buckets: Buckets
    records: list[bytes]
    renewals: dict[int, Renewals] = field(default_factory=dict)
    verdicts: dict[int, Verdict] = field(default_factory=dict)
    columns: Sequence[int] = ()
    forgotten: list[int] = field(default_factory=list)
    candidates: int = 0
    absorbed: int = 0
    covered: int = 0
    divided: int = 0
    dropped: int = 0
    repeated: int = 0

    @classmethod
    def nothing(cls, clock: Clock | None = None) -> Decision:
        """Return the decision about no documents."""
        cells = NewCells(BucketKeys.none(), np.empty(0, np.int64))
        return cls({}, Dated.nothing(clock), cells, BucketKeys.none(), Buckets.of({}), [])
