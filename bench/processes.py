"""The measured programs: start, watch and stop them, and get their resource usage."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from worker.closing import Closing

_STOP_SECONDS = 40.0
_ROOT = Path(__file__).parent.parent
_MAXRSS_UNIT = 1 if sys.platform == "darwin" else 1024
_NOT_INHERITED = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


@dataclass(frozen=True, slots=True)
class Usage:
    """The CPU seconds, peak memory in bytes, and exit status of a program."""

    cpu_seconds: float
    peak_bytes: int
    status: int


class Program(Closing):
    """A Python module in a separate process."""

    def __init__(
        self, arguments: Sequence[str], environment: Mapping[str, str] | None = None
    ) -> None:
        """Start ``python -m`` with these arguments."""
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 -- lives as long as the program
        inherited = {
            name: value
            for name, value in os.environ.items()
            if name not in _NOT_INHERITED
            and (not name.startswith("NEARDUP_") or name.startswith("NEARDUP_BENCH_"))
        }
        inherited["PYTHONPATH"] = str(_ROOT)
        self._name = " ".join(arguments[:3])
        self.started = time.time()
        self._process = subprocess.Popen(  # noqa: S603 -- our own program
            [sys.executable, "-m", *arguments],
            env={**inherited, **(environment or {})},
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=subprocess.STDOUT,
        )
        self.usage: Usage | None = None

    def cpu_seconds(self) -> float:
        """Return the CPU time that it has taken until now."""
        times = psutil.Process(self._process.pid).cpu_times()
        return float(times.user + times.system)

    def check(self) -> None:
        """Check that the program is still running.

        Raises:
            SystemExit: it has exited; the message has the end of its output.
        """
        if self.usage is None and self.ended():
            raise SystemExit(f"{self._name} exited unexpectedly:\n{self.said()}")

    def ended(self) -> bool:
        """Return whether the program has exited."""
        return self.usage is not None or self._reap(os.WNOHANG)

    def wait(self) -> Usage:
        """Wait until the program exits, and return its usage.

        Raises:
            SystemExit: it failed; the message has the end of its output.
        """
        if self.usage is None:
            self._reap(0)
        assert self.usage is not None  # noqa: S101 -- reaped
        if self.usage.status:
            raise SystemExit(f"{self._name} failed:\n{self.said()}")
        return self.usage

    def stop(self) -> Usage:
        """Send SIGTERM, and SIGKILL after 40 s; return the usage."""
        if self.usage is None:
            self._process.send_signal(signal.SIGTERM)
            deadline = time.monotonic() + _STOP_SECONDS
            while not self._reap(os.WNOHANG):
                if time.monotonic() > deadline:
                    self._process.kill()
                    self._reap(0)
                    break
                time.sleep(0.02)
        assert self.usage is not None  # noqa: S101 -- reaped
        return self.usage

    def kill(self) -> None:
        """Send SIGKILL, like a crash."""
        self._process.kill()
        self._reap(0)

    def said(self) -> str:
        """Return the end of its output."""
        self._log.seek(0)
        return self._log.read().decode(errors="replace")[-3_000:]

    def _reap(self, options: int) -> bool:
        found, status, used = os.wait4(self._process.pid, options)
        if not found:
            return False
        self._process.returncode = os.waitstatus_to_exitcode(status)
        self.usage = Usage(
            used.ru_utime + used.ru_stime,
            used.ru_maxrss * _MAXRSS_UNIT,
            self._process.returncode,
        )
        return True

    def close(self) -> None:
        """Stop the program."""
        self.stop()
        self._log.close()
