"""A run before it counts: what the open run becomes is put into a write that nobody reads yet."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from rocksdict import WriteBatch

from worker.index.filter_parts import filled
from worker.index.keyspace import filter_key, page_key
from worker.index.open_run import OpenRun
from worker.index.run_filters import zeroed
from worker.index.run_layout import RunShape, packed_pages

__all__ = ["Draft", "drafted"]


class Draft(NamedTuple):
    """A run whose pages are in a write: its number, how many cells it has, and its filter."""

    number: int
    cells: int
    words: npt.NDArray[np.uint64]


def drafted(  # noqa: PLR0913 -- where it goes, and what it is made of
    batch: WriteBatch,
    run: OpenRun,
    give_way: Callable[[], None],
    *,
    number: int,
    columns: int,
    shape: RunShape,
) -> Draft:
    """Put the pages of what an open run becomes, and its filter, into a write.

    ``number`` is the new run's, and ``columns`` is how many columns it has. ``give_way`` is called
    between steps of a few ms.
    """
    count = 0
    words = zeroed(columns * shape.words)
    pages = range(shape.pages)
    give_way()
    for slot, cells in enumerate(run.columns()):
        for page, packed in packed_pages(cells.hashes, cells.documents, shape, pages):
            batch.put(page_key(number, slot, page), packed)
        first = slot * shape.words
        part = filled(cells.hashes, shape, pages)
        words[first : first + shape.words] = part
        batch.put(filter_key(number, slot, 0), part.tobytes())
        count += len(cells.hashes)
        give_way()
    return Draft(number, count, words)
