"""Keep groups of synthetic documents in one process, and print what that took.

python -m bench.group_store_parts GROUPS DIRECTORY

Each third document matches one of the last few thousand, and so do further ones by chance. The
output is one line of JSON; ``bytes`` is the most that the process took beyond what it had at first.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from random import Random
from time import perf_counter

import numpy as np

from lsh.index import BucketRules
from worker.groups.joining import Kept
from worker.groups.matches import Found
from worker.groups.store import GroupStore, Terms
from worker.process.heap import limit, relax, resident_bytes
from worker.stages.order import Placed
from worker.wire.fingerprints import FingerprintFrame
from worker.wire.frame import POSITION_BITS
from worker.wire.ids import Ids

_FRAME = 1_000
_NOW_MS = 1_767_225_600_000
_RECENT = 20_000
_LISTINGS = 5


def main() -> None:
    """Make as many groups as the arguments say."""
    limit()
    relax()
    wanted, directory = int(sys.argv[1]), Path(sys.argv[2])
    chance = Random(0)
    terms = Terms(BucketRules(0.8), Kept(30 * 86_400_000, None), {}, 86_400.0)
    before = most = resident_bytes() or 0
    seconds = 0.0
    offset = 0
    with GroupStore(directory / "groups", 1, terms) as store:
        while store.progress.groups < wanted:
            frame, found = _frame(offset, chance)
            began = perf_counter()
            store.note(0, [frame], [found])
            seconds += perf_counter() - began
            most = max(most, resident_bytes() or 0)
            offset += 1
        listings = {sort: [_listing(store, sort) for _ in range(_LISTINGS)] for sort in _SORTS}
        most = max(most, resident_bytes() or 0)
    disk = sum(path.stat().st_size for path in (directory / "groups").iterdir())
    facts = {"documents": offset * _FRAME, "bytes": most - before, "seconds": seconds, "disk": disk}
    print(json.dumps({**facts, **listings}))


_SORTS = ("size", "growth")


def _listing(store: GroupStore, sort: str) -> float:
    began = perf_counter()
    found, _ = store.read(lambda reader: reader.listed("size" if sort == "size" else "growth", 100))
    if not found:
        raise SystemExit("there are no groups")
    return perf_counter() - began


def _id(number: int) -> bytes:
    return b"document-%010d" % number


def _frame(offset: int, chance: Random) -> tuple[Placed, Found]:
    """Return a frame of documents, of which some match earlier ones; a second of the log each."""
    first = offset * _FRAME
    times = np.full(_FRAME, _NOW_MS + 1_000 * offset)
    empty = np.empty(0, np.uint32)
    frame = FingerprintFrame(
        layout="",
        partition=0,
        start=first,
        end=first + _FRAME,
        offsets=np.arange(_FRAME, dtype=np.uint32),
        times=times,
        checksums=np.empty(0, np.uint64),
        ids=Ids.pack([_id(first + row) for row in range(_FRAME)]),
        shingles=empty,
        texts=np.empty(0, np.uint64),
        sketches=np.empty((0, 0), np.uint8),
        accounted=empty,
    )
    found: Found = []
    for row in range(0, _FRAME, 3):
        number = first + row
        if number:
            earlier = chance.randrange(max(0, number - _RECENT), number)
            sequence = (earlier // _FRAME << POSITION_BITS) + earlier % _FRAME
            found.append((row, [(-0.9, sequence, _id(earlier))]))
    return Placed(frame, offset, offset, times, 0), found


if __name__ == "__main__":
    main()
