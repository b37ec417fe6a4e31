"""The workers of a run, and their supervisor: what ends by itself is started again."""

import re
import signal
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from threading import RLock
from time import monotonic
from typing import Final

from localkafka.broker import wait_until
from tests.support.application import ApplicationUnderTest
from tests.support.worker_process import WorkerProcess

ALL_STAGES: Final = "fingerprint,index,route"
BACK_OFF_SECONDS: Final = 1.0
READY_SECONDS: Final = 60.0
MOST_UNEXPECTED: Final = 12
"""After so many ends that nobody expected, a run is given up."""

_NUMBER: Final = re.compile(r"\b[0-9a-f]{6,}\b|\d+")
_ROLLED_BACK: Final = "transaction rolled back"
_UNKNOWN: Final = "outcome of the transaction unknown"


@dataclass(frozen=True)
class Restart:
    """A worker that ended without having been told to."""

    at: float
    """Seconds, of the monotonic clock."""
    worker: str
    status: int
    why: str
    """The last thing that it said."""

    @property
    def kind(self) -> str:
        """Tell it from ends for another reason: status and words, without their numbers."""
        return f"status {self.status}, {_NUMBER.sub('#', self.why)}"


class Supervisor:
    """Which workers ought to run, by name; safe to be used from several threads."""

    def __init__(
        self,
        application: ApplicationUnderTest,
        stages: Mapping[str, str],
        unexpected: Callable[[Iterable[Restart]], list[Restart]] = list,
    ) -> None:
        """Take the stages of each worker (unnamed: all), and what tells which ends are wrong."""
        self._application = application
        self._unexpected = unexpected
        self._stages = dict(stages)
        self._wanted: set[str] = set()
        self._again: dict[str, float] = {}
        self._lock = RLock()
        self._alone = False
        self.restarts: list[Restart] = []

    @property
    def names(self) -> list[str]:
        """Name the workers that ought to run."""
        with self._lock:
            return sorted(self._wanted)

    def worker(self, name: str) -> WorkerProcess:
        """Give a worker's process."""
        with self._lock:
            return self._application.worker(name)

    def start(self, *names: str) -> None:
        """Have workers run from now on."""
        with self._lock:
            for name in names:
                self._wanted.add(name)
                if not self._application.worker(name).running:
                    self._launch(name)

    def _launch(self, name: str) -> None:
        stages = self._stages.get(name, ALL_STAGES)
        self._application.start(name, arguments=("--stages", stages, "--http", "127.0.0.1:0"))

    def leave_alone(self) -> None:
        """Start nobody again from now on; ends are still noted, once each."""
        with self._lock:
            self._alone = True

    def running(self) -> list[str]:
        """Name the workers that run."""
        with self._lock:
            return [name for name in self.names if self._application.worker(name).running]

    def refused(self, name: str, seconds: float) -> Restart:
        """Start a worker that must end by itself; return how it did. It stays away.

        Raises:
            TimeoutError: it runs after so many seconds; it has been killed then.
        """
        with self._lock:
            self._launch(name)
            worker = self._application.worker(name)
        try:
            wait_until(lambda: not worker.running, seconds, f"{name} to be refused")
        except TimeoutError:
            worker.kill()
            raise
        with self._lock:
            self.restarts.append(_ended(name, worker))
            return self.restarts[-1]

    def kill(self, name: str) -> None:
        """End a worker between any two instructions; it stays away until `start`."""
        with self._lock:
            self._wanted.discard(name)
            worker = self._application.worker(name)
            if worker.running:
                worker.kill()

    def stop(self, name: str) -> int:
        """Tell a worker to finish; give its status. It stays away until `start`."""
        with self._lock:
            self._wanted.discard(name)
            worker = self._application.worker(name)
        return worker.stop()

    def pause(self, name: str) -> None:
        """Freeze a worker (SIGSTOP)."""
        self.worker(name).signal(signal.SIGSTOP)

    def resume(self, name: str) -> None:
        """Let a frozen worker go on."""
        self.worker(name).signal(signal.SIGCONT)

    def await_ready(self, name: str) -> None:
        """Wait until a worker's stages have their seats, and its shards answer."""
        try:
            wait_until(lambda: self.worker(name).ready(), READY_SECONDS, f"{name} to be ready")
        except TimeoutError as error:
            raise TimeoutError(f"{error}: {self.worker(name).readiness()}") from None

    def supervise(self) -> None:
        """Start again, a second later, whoever has ended by itself.

        Raises:
            AssertionError: workers end again and again, and shouldn't.
        """
        now = monotonic()
        wrong = len(self._unexpected(self.restarts))
        assert wrong <= MOST_UNEXPECTED, f"given up: workers ended {wrong} times by themselves"
        with self._lock:
            for name in sorted(self._wanted):
                worker = self._application.worker(name)
                if worker.running:
                    continue
                if name not in self._again:
                    self.restarts.append(_ended(name, worker))
                    self._again[name] = now + BACK_OFF_SECONDS
                elif now >= self._again[name] and not self._alone:
                    del self._again[name]
                    self._launch(name)

    def troubles(self) -> Counter[str]:
        """Count transactions that were ``aborted``, or whose end was ``unknown``, by the logs."""
        counts: Counter[str] = Counter()
        with self._lock:
            workers = list(self._application.workers.values())
        for worker in workers:
            said = worker.output()
            counts["aborted"] += said.count(_ROLLED_BACK)
            counts["unknown"] += said.count(_UNKNOWN)
        return counts


def _ended(name: str, worker: WorkerProcess) -> Restart:
    assert worker.process is not None
    status = worker.process.poll()
    assert status is not None
    return Restart(monotonic(), name, status, _last_words(worker))


def _last_words(worker: WorkerProcess) -> str:
    lines = [line for line in worker.current().splitlines() if line.strip()]
    errors = [line for line in lines if " ERROR " in line or line.startswith("neardup: ")]
    return (errors or lines or ["nothing"])[-1]
