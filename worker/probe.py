"""Named points at which tests can observe a run, or stop it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Literal, Protocol

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
``poll``         the member polls for records
``look up``      the member looks up the group's committed offsets
``adopt``        the stage takes on exactly its current partitions
``seek``         a partition is sought to another offset
``resume``       partitions are resumed
``renew``        a new producer ends the old one's open transaction
``open``         a shard's files are opened
``write``        a burst's changes go into a shard's memory, and a flush begins if it is due
``flush``        a shard's memory is written to files, or that begins
``checkpoint``   a shard's files are hard-linked, to be shipped
``close``        a shard's files are closed
``put aside``    a shard's unusable files are moved away
``fetch``        a snapshot is fetched, next to the files that it may replace
``exchange``     a fetched snapshot replaces the existing files, and is opened
``ship``         a snapshot is shipped, older ones are deleted, and the log is trimmed
``trim``         the log before the oldest snapshot is deleted
===============  ==========================================================================

The names say what happens, whichever code does it. The bus has its own points within a
transaction; see `worker.bus.memory.Faults`.
"""


class Files(Protocol):
    """A shard's open files."""

    path: Path

    @property
    def writing(self) -> bool:
        """Return whether they are being written in the background."""


class Probe:
    """Observes what one stage does; each method may be overridden.

    An exception from `before` or `after` ends the step, as an error of the step itself would. So
    a test simulates the death of a process with an exception that no code catches. With
    ``background`` stages, several threads call.
    """

    def before(self, point: Point) -> None:
        """Handle a point before its step."""

    def after(self, point: Point) -> None:
        """Handle a point after its step, unless the step has failed."""

    def opened(self, files: Files) -> None:
        """Handle a shard's files that were just opened."""

    def closed(self, files: Files) -> None:
        """Handle a shard's files that were just closed."""


UNWATCHED: Final = Probe()
"""For runs that nothing observes."""


@contextmanager
def probing(probe: Probe, point: Point) -> Iterator[None]:
    """Notify a probe of a point before the block, and after it unless it raises."""
    probe.before(point)
    yield
    probe.after(point)
