"""Feed an index with a flood after other documents, and print the costs of both as lines of JSON.

python -m bench.flood_feed KIND BEFORE DOCUMENTS DIRECTORY

A process of its own, so that its memory is that of the index. malloc and the collection of garbage
are set as in a worker.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path

from bench.index_costs import fed
from bench.index_shards import Shards
from bench.synthetic_floods import FLOODS
from bench.synthetic_frames import synthetic_batch
from lsh.index import DocumentBatch
from worker.process.heap import collecting, limit, relax


def main() -> None:
    """Feed one shard with all bands. What is on disk is measured once everything is there."""
    limit()
    relax()
    kind, *counts, directory = sys.argv[1:]
    before, documents = map(int, counts)
    path = Path(directory)
    index = Shards(path)

    def make(first: int, count: int) -> DocumentBatch:
        return (synthetic_batch if first < before else FLOODS[kind])(first, count)

    with collecting():
        for checkpoint in fed(index, make, [before, before + documents], path, index.settle):
            print(json.dumps(asdict(checkpoint)), flush=True)


if __name__ == "__main__":
    main()
