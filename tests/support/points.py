"""Where a worker can be struck, and with what."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, Literal, NamedTuple

DONE: Final = " done"
"""Ends the name of the point after a call; the point before it has the call's own name."""

Fault = Literal[
    "aborted",
    "unknown",
    "torn, no offsets",
    "torn, only offsets",
    "torn, every other",
    "dies",
    "dies, disk lost",
    "dies, away",
    "replaced",
    "evicted",
]
"""
====================  ===============================================================
``aborted``           the transaction is rolled back
``unknown``           nobody knows how the transaction ended; see the bus's faults
``torn, …``           the transaction commits in a part of its partitions, and is rolled
                      back in the others; nobody knows how it ended
``dies``              the process is killed, and a new one starts at once
``dies, disk lost``   the same, with an empty state directory
``dies, away``        killed; its session times out, others go on, then it comes back
``replaced``          it stalls; one of its name starts elsewhere, with a copy of its
                      disk, and all others go on; then it wakes up: a zombie
``evicted``           it stalls until its session has timed out, and all others go on;
                      then it wakes up
====================  ===============================================================
"""


class Point(NamedTuple):
    """A place in the life of a worker's stage, by name: ``commit``, or ``write done``."""

    worker: str
    stage: str
    name: str


class Strike(NamedTuple):
    """A fault the ``nth`` time, from now on, that somebody arrives at a point.

    ``then`` is armed once this one has been dealt.
    """

    point: Point
    nth: int
    fault: Fault
    then: Strike | None = None


def can_befall(name: str, fault: Fault) -> bool:
    """Tell whether a fault can befall a call, or what follows it, by the name of the point."""
    if fault == "aborted":
        return name in {"begin", "produce", "offsets", "commit"}
    if fault == "unknown":
        return name in {"commit", "commit" + DONE}
    return name == "commit" or not fault.startswith("torn")


def strikes(
    trace: Sequence[Point], stage: str, name: str, fault: Fault, quarters: Sequence[int]
) -> Iterator[Strike]:
    """Yield strikes at the first arrival of some quarters of all arrivals at a stage's point."""
    points = [point for point in trace if (point.stage, point.name) == (stage, name)]
    for place in {len(points) * part // 4 for part in quarters if points}:
        yield Strike(points[place], 1 + points[:place].count(points[place]), fault)
