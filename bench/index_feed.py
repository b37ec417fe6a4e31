"""Feed one index with synthetic documents, and print its cost at checkpoints as lines of JSON.

python -m bench.index_feed neardup|datasketch DOCUMENTS DIRECTORY [--shards N] [--window N]

neardup may have several shards. With a window, it forgets a document after so many others, and each
window is a checkpoint.

A process of its own, so that its memory is that of the index. malloc and the collection of garbage
are set as in a worker, which gives free memory back once a minute.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path

from datasketch import MinHash, MinHashLSH

from bench.index_costs import Index, fed
from bench.index_shards import Shards
from bench.synthetic_frames import BANDS, ROWS, SLOTS, synthetic_batch
from lsh.index import DocumentBatch
from worker.process.heap import collecting, limit, relax

CHECKPOINTS = (200_000, 500_000, 1_000_000, 2_000_000, 5_000_000, 10_000_000, 20_000_000)


def main() -> None:
    """Feed the index that the arguments name."""
    limit()
    relax()
    parser = argparse.ArgumentParser(prog="python -m bench.index_feed")
    parser.add_argument("kind", choices=("neardup", "datasketch"))
    parser.add_argument("documents", type=int)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--shards", type=int, default=1)
    parser.add_argument("--window", type=int)
    given = parser.parse_args()
    directory, window = given.directory, given.window
    index = _datasketch()
    if given.kind == "neardup":
        index = Shards(directory, shards=given.shards, window=window)
    with collecting():
        for checkpoint in fed(index, synthetic_batch, _due(given.documents, window), directory):
            print(json.dumps(asdict(checkpoint)), flush=True)


def _datasketch() -> Index:
    """Make a `MinHashLSH` in memory with the same bands; candidates are not verified."""
    lsh = MinHashLSH(num_perm=SLOTS, params=(BANDS, ROWS))
    empty = MinHash(num_perm=SLOTS)

    def index(batch: DocumentBatch) -> int:
        found = 0
        values = batch.sketches.astype(empty.hashvalues.dtype)
        for ident, hashes in zip(batch.ids, values, strict=True):
            signature = MinHash(
                num_perm=SLOTS,
                hashvalues=hashes,
                permutations=empty.permutations,
                scheme=empty.scheme,
            )
            found += bool(lsh.query(signature))
            lsh.insert(ident, signature, check_duplication=False)
        return found

    return index


def _due(documents: int, window: int | None) -> list[int]:
    """Return after how many documents to measure: with a window, each time it has passed."""
    some = CHECKPOINTS if window is None else range(window, documents, window)
    return sorted({*(count for count in some if count < documents), documents})


if __name__ == "__main__":
    main()
