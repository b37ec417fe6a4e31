"""Ends a worker that takes too much memory, as the kernel does in a cgroup with a limit."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from tests.support.worker_process import WorkerProcess

_LOOK_SECONDS: Final = 0.005
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")


class LittleMemory:
    """Use as a context manager: kills a worker whose resident memory exceeds a limit, in bytes.

    Attributes:
        kills: how often it has done so.
        most: the most that the worker has had, in bytes.
    """

    def __init__(self, worker: WorkerProcess, limit: int, restart: Callable[[], None]) -> None:
        """Take the worker, and what starts it again whenever it was killed."""
        self._restart = restart
        self._worker = worker
        self._limit = limit
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self.kills = 0
        self.most = 0

    def _watch(self) -> None:
        while not self._over.wait(_LOOK_SECONDS):
            process = self._worker.process
            if process is None or process.returncode is not None:
                continue
            try:
                fields = Path(f"/proc/{process.pid}/statm").read_text(encoding="ascii").split()
            except OSError:
                continue
            taken = int(fields[1]) * _PAGE
            self.most = max(self.most, taken)
            if taken > self._limit and process.poll() is None:
                process.send_signal(signal.SIGKILL)
                process.wait()
                self.kills += 1
                self._restart()

    def __enter__(self) -> Self:
        """Begin to watch."""
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End it."""
        self._over.set()
        self._thread.join()
