"""Which cells of a batch can be judged together, although each depends on earlier ones.

What becomes of a document in a bucket depends on the earlier documents that change the bucket, or
a finer one on its way, and on nothing else. Who changes one is known only once it is judged. So
several cells of a run are judged together as if none of them changed anything. Those up to the
first one that is disturbed stand, and the others are judged again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lsh.index.buckets import spread
from lsh.ordered import first_of_each

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lsh.index.cells import Cells
    from lsh.index.walk import Ends

__all__ = ["Rounds", "disturbed"]

_GROWTH = 32


class Rounds:
    """The cells of some runs, in the order in which they are judged: `chosen`, then `judged`.

    Of each run, one cell is judged first. Then more and more of them are judged together, as long
    as that goes well.
    """

    def __init__(self, cells: Cells, runs: NDArray[np.int64]) -> None:
        """Take the runs whose cells are judged: int64[k], ascending."""
        self._rows = cells.rows
        self._runs = runs
        self._next, self._left = cells.starts[runs], cells.sizes[runs]
        self._most = np.ones(len(runs), np.int64)
        self._tried = np.zeros(len(runs), np.int64)

    def __bool__(self) -> bool:
        """Return whether some are left."""
        return bool(len(self._runs))

    def chosen(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the documents and the runs of the cells to judge: int64[c] each, run by run."""
        self._tried = np.minimum(self._left, self._most)
        return self._rows[spread(self._next, self._tried)], np.repeat(self._runs, self._tried)

    def judged(self, again: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Take which of the chosen cells are disturbed; return which stand: bool[c] each."""
        ends = np.cumsum(self._tried)
        places = np.where(again, np.arange(len(again)), len(again))
        first = np.minimum.reduceat(places, ends - self._tried) if len(places) else ends
        good = np.minimum(first - (ends - self._tried), self._tried)
        stands = np.arange(len(again)) < np.repeat(ends - self._tried + good, self._tried)
        self._next, self._left = self._next + good, self._left - good
        whole = good == self._tried
        self._most = np.where(whole, _GROWTH * self._most, np.maximum(1, good))
        left = self._left > 0
        self._runs, self._next, self._left, self._most = (
            part[left] for part in (self._runs, self._next, self._left, self._most)
        )
        return stands


def disturbed(
    ends: Ends, inserted: NDArray[np.bool_], renewed: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Return which cells come to a bucket that an earlier one of the same run changes: bool[c].

    ends: where they end if no document changes anything. inserted, renewed: bool[c], in which of
    them the document is inserted, or renews an entry.
    """
    found = np.zeros(len(inserted), np.bool_)
    changing = inserted | renewed
    if not changing.any():
        return found
    level, cells = np.nonzero(ends.path.T >= 0)
    # Renewals, and notes that there are finer buckets, matter to those that have missed an entry
    # on their way: for these, a bucket has another number.
    numbers = 2 * ends.path.T[level, cells]
    missed = ends.missed[cells]
    adds = inserted[cells] & (level == ends.level[cells])
    notes = changing[cells]
    visitors = np.concatenate((cells, cells[missed]))
    visited = np.concatenate((numbers, numbers[missed] + 1))
    changers = np.concatenate((cells[adds], cells[notes]))
    changed = np.concatenate((numbers[adds], numbers[notes] + 1))
    order = np.lexsort((changers, changed))
    changers, changed = changers[order], changed[order]
    first = first_of_each(changed)
    changers, changed = changers[first], changed[first]
    at = np.minimum(np.searchsorted(changed, visited), len(changed) - 1)
    found[visitors[(changed[at] == visited) & (visitors > changers[at])]] = True
    return found
