"""Feed one index with documents, then with a flood, and print the costs of each as lines of JSON.

python -m bench.flood_feed unique|copies|variants|templates DOCUMENTS DIRECTORY

As many documents come first as the flood has. A process of its own, as `bench.index_feed` is.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path

import numpy as np

from bench.index_feed import fed, neardup
from bench.synthetic_frames import SLOTS, batch_of, fractions, synthetic_batch, words
from lsh.index import DocumentBatch
from worker.process.gc import relax
from worker.process.malloc import limit

__all__ = ["KINDS", "SHARE", "TEMPLATES"]

KINDS = ("unique", "copies", "variants", "templates")
SHARE = 0.9
"""Of a variant's sketch, what is the template's."""
TEMPLATES = 1_000
_FIRST_TEMPLATE = 1 << 40
_PURPOSE = 9


def main() -> None:
    """Feed the index, as the arguments say."""
    limit()
    relax()
    kind, documents, directory = sys.argv[1:]
    count = int(documents)

    def made(first: int, size: int) -> DocumentBatch:
        if first < count:
            return synthetic_batch(first, min(size, count - first))
        return _flood(kind, first, size)

    path = Path(directory)
    for checkpoint in fed(neardup(path), [count, 2 * count], path, made):
        print(json.dumps(asdict(checkpoint)), flush=True)


def _flood(kind: str, first: int, count: int) -> DocumentBatch:
    """Return documents of a flood, or new ones."""
    numbers = np.arange(first, first + count, dtype=np.uint64)
    own = words(numbers, SLOTS // 8, 1).view(np.uint8)
    if kind == "unique":
        return batch_of(numbers, own, numbers)
    several = np.uint64(TEMPLATES if kind == "templates" else 1)
    templates = np.uint64(_FIRST_TEMPLATE) + numbers % several
    shared = words(templates, SLOTS // 8, 1).view(np.uint8)
    if kind == "copies":
        return batch_of(numbers, shared, templates)
    kept = fractions(numbers, SLOTS, _PURPOSE) < SHARE
    return batch_of(numbers, np.where(kept, shared, own), numbers)


if __name__ == "__main__":
    main()
