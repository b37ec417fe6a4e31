"""Synthetic floods of one kind, as an index shard sees them: keys and sketches, without texts."""

from __future__ import annotations

from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bench.index_costs import Maker
from bench.synthetic_frames import SLOTS, batch_of, fractions, sketches_of
from lsh.index import DocumentBatch

_TEMPLATE_SHARE = 0.9
"""Of the slots of a variant. So two variants of a template are 0.81 alike."""
_FIRST_TEMPLATE = 1 << 40
"""Templates are texts of their own, which aren't in the index before."""
_PURPOSE = 8


def _unique(first: int, count: int) -> DocumentBatch:
    numbers = _numbers(first, count)
    return batch_of(numbers, sketches_of(numbers), numbers)


def _copies(first: int, count: int) -> DocumentBatch:
    numbers = _numbers(first, count)
    texts = np.full_like(numbers, _FIRST_TEMPLATE)
    return batch_of(numbers, sketches_of(texts), texts)


def _variants(templates: int, first: int, count: int) -> DocumentBatch:
    numbers = _numbers(first, count)
    shared = sketches_of(np.uint64(_FIRST_TEMPLATE) + numbers % np.uint64(templates))
    kept = fractions(numbers, SLOTS, _PURPOSE) < _TEMPLATE_SHARE
    return batch_of(numbers, np.where(kept, shared, sketches_of(numbers)), numbers)


def _numbers(first: int, count: int) -> NDArray[np.uint64]:
    return np.arange(first, first + count, dtype=np.uint64)


FLOODS: Final[dict[str, Maker]] = {
    "unique": _unique,
    "copies": _copies,
    "variants": partial(_variants, 1),
    "templates": partial(_variants, 1_000),
}
"""New documents, to compare with; copies of one text; variants of one template, which has most of
what they are; variants of a thousand templates in turns."""
