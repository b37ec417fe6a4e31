"""Where a worker can be struck, and with what."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

__all__ = ["DONE", "Fault", "Point", "Strike"]

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
