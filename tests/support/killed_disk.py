"""What the death of a process leaves on its disk."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path
from time import monotonic, sleep
from typing import Final

from worker.probe import Files

SETTLE_SECONDS: Final = 20.0


def settle(opened: Iterable[Files]) -> None:
    """Wait until nothing is written in the background: a flush that began has then ended.

    Raises:
        TimeoutError: it doesn't end.
    """
    for files in opened:
        deadline = monotonic() + SETTLE_SECONDS
        while files.writing:
            if monotonic() > deadline:
                raise TimeoutError(f"{files.path} still flushes or compacts")
            sleep(0.0005)


def left_by_kill(state: Path, to: Path) -> None:
    """Copy the files of RocksDBs that are open, as SIGKILL would leave them.

    What the kernel was given survives a process: the files, as they are. What is lost is
    in the process: with no write-ahead log, all that has not been flushed. Locks end with
    it, too. Nothing may be written meanwhile (see `settle`).
    """
    if state.exists():
        shutil.copytree(state, to, ignore=shutil.ignore_patterns("LOCK", "LOG*"))
    else:
        to.mkdir(parents=True)
