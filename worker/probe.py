"""Where a run can be watched, and stopped: points by name, before and after."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Literal, Protocol

__all__ = ["UNWATCHED", "Files", "Point", "Probe", "probing"]

Point = Literal[
    "poll",
    "look up",
    "adopt",
    "seek",
    "resume",
    "renew",
    "open",
    "write",
    "flush",
    "checkpoint",
    "close",
    "put aside",
    "fetch",
    "exchange",
    "ship",
    "trim",
]
"""
===============  ==========================================================================
``poll``         records are asked for
``look up``      the group is asked for its committed offsets
``adopt``        the stage takes on exactly the partitions that are its own now
``seek``         a partition is read from another offset
``resume``       partitions are read again
``renew``        a new producer ends what the old one had open
``open``         a shard's files are opened
``write``        what a burst changes goes into a shard's memory, and a flush is begun if due
``flush``        what memory holds is written to files, or that is begun
``checkpoint``   a shard's files get a second name, from which they are shipped
``close``        a shard's files are closed
``put aside``    a shard's files that can't be used are moved out of the way
``fetch``        a snapshot is fetched, beside the files that it may replace
``exchange``     a fetched snapshot takes the place of what was there, and is opened
``ship``         a snapshot is shipped, older ones are deleted, and the log is trimmed
``trim``         the log before the oldest snapshot is deleted
===============  ==========================================================================

They name what happens, whatever part of the code does it. Within a transaction the bus has
points of its own; see `worker.bus.memory.Faults`.
"""


class Files(Protocol):
    """A shard's open files."""

    path: Path

    @property
    def writing(self) -> bool:
        """Tell whether they are written in the background."""


class Probe:
    """Is told what one stage does; each method may be overridden.

    What `before` and `after` raise ends what the stage was about to do, or had just done, as
    an error of its own would. So a test plays the death of a process: it raises what no code
    catches. With ``background`` stages, several threads call.
    """

    def before(self, point: Point) -> None:
        """This comes next."""

    def after(self, point: Point) -> None:
        """This has been done; what failed is never told of."""

    def opened(self, files: Files) -> None:
        """These are open from now on."""

    def closed(self, files: Files) -> None:
        """These are closed."""


UNWATCHED: Final = Probe()
"""Of a run that nobody watches."""


@contextmanager
def probing(probe: Probe, point: Point) -> Iterator[None]:
    """Tell a probe of a point before the block, and after it unless it raises."""
    probe.before(point)
    yield
    probe.after(point)
