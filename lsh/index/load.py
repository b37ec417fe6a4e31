"""How much work an index has with documents, counted."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from lsh._core import MemoryIndex

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
    index = None
    for prints in batches:
        if index is None:
            alone = replace(rules, window_ms=None)
            index = MemoryIndex(alone, prints.keys.shape[1], prints.sketches.shape[1])
        index.judge(prints.keys, prints.sketches, prints.shingle_counts, prints.blank)
    return index.compared if index is not None else 0
