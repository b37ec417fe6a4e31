"""How much work an index has with documents, counted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lsh.index.batch import DocumentBatch
from lsh.index.decide import decide
from lsh.index.memory import MemoryIndex

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lsh.fingerprint import Fingerprints
    from lsh.index.rules import BucketRules

__all__ = ["comparisons"]


def comparisons(batches: Iterable[Fingerprints], rules: BucketRules) -> int:
    """Return how many comparisons with candidates an empty index makes for documents in order.

    It judges all of them, with one shard that has all columns. Blank texts are left out. This
    depends on the seed as well: texts from one mould share a band together or not at all, so no
    formula that knows only their similarities can tell.

    batches: fingerprints with the same parameters.
    rules: the rules of the index, whose window doesn't count: all documents have one time.
    """
    index, first, total = MemoryIndex(), 0, 0
    for prints in batches:
        rows = np.flatnonzero(~prints.blank)
        numbers = np.arange(first, first + len(rows))
        batch = DocumentBatch(
            sequences=numbers.astype(np.uint64),
            times=np.zeros(len(rows), np.int64),
            ids=[b"%d" % number for number in numbers.tolist()],
            shingles=prints.shingle_counts[rows],
            columns=range(prints.keys.shape[1]),
            keys=np.ascontiguousarray(prints.keys[rows].T),
            sketches=prints.sketches[rows],
        )
        decision = decide(index, batch, rules)
        index.apply(decision)
        total += decision.candidates
        first += len(rows)
    return total
