"""What workers use, sampled: memory, file handles, threads, disk."""

from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread
from time import monotonic
from typing import Final, Self

import psutil

from chaos.supervisor import Supervisor
from chaos.trends import Trend, trend_of
from tests.support.live_files import live_files
from worker.closing import Closing

LIMITS: Final = {"memory, MB": 0.5, "file handles": 0.2, "threads": 0.1, "disk, MB": 1.0}
"""How much each may rise in a minute."""

STORES: Final = "open stores"
_BY_STORES: Final = {"file handles", "threads"}
"""They follow from how many shards a worker has open: its files, and the clients that it needs."""

INTERVAL_SECONDS: Final = 10.0
WARM_UP: Final = 0.25
"""The share of a series that is left out at its start."""

MEGABYTE: Final = 1 << 20

Series = list[tuple[float, dict[str, float]]]


class Sampler(Closing):
    """Looks at every worker at intervals; a restart begins a new series. A context manager."""

    def __init__(self, supervisor: Supervisor, seconds: float = INTERVAL_SECONDS) -> None:
        """Take whom to look at, and how often."""
        self._crew = supervisor
        self._seconds = seconds
        self.series: dict[tuple[str, int], Series] = {}
        self._over = Event()
        self._thread = Thread(target=self._run, name="samples", daemon=True)

    def _run(self) -> None:
        while not self._over.wait(self._seconds):
            for name in self._crew.names:
                worker = self._crew.worker(name)
                process = worker.process
                if process is None:
                    continue
                with suppress(psutil.NoSuchProcess, psutil.ZombieProcess):
                    taken = _sample(psutil.Process(process.pid), worker.state_from_outside)
                    self.series.setdefault((name, process.pid), []).append((monotonic(), taken))

    def trends(self) -> Iterator[Trend]:
        """Give the trends of all series that are long enough."""
        for (name, _), series in self.series.items():
            yield from trends_of(name, series)

    def __enter__(self) -> Self:
        """Begin."""
        self._thread.start()
        return self

    def close(self) -> None:
        """End."""
        self._over.set()
        self._thread.join()


def trends_of(name: str, series: Series) -> Iterator[Trend]:
    """Give a worker's trends, the warm-up left out, where there are samples enough.

    Handles and threads are compared while as many shards are open as most of the time.
    """
    warm = series[int(len(series) * WARM_UP) :]
    stores = Counter(taken[STORES] for _, taken in warm)
    usual = max(stores, key=stores.__getitem__)
    alike = [(seconds, taken) for seconds, taken in warm if taken[STORES] == usual]
    for what, limit in LIMITS.items():
        some = alike if what in _BY_STORES else warm
        at, values = [seconds for seconds, _ in some], [taken[what] for _, taken in some]
        trend = trend_of(name, what, limit, at, values)
        if trend is not None:
            yield trend


def _sample(process: psutil.Process, state: Path) -> dict[str, float]:
    with process.oneshot():
        return {
            "memory, MB": process.memory_info().rss / MEGABYTE,
            "file handles": float(process.num_fds()),
            "threads": float(process.num_threads()),
            "disk, MB": sum(_sizes(state)) / MEGABYTE,
            STORES: float(sum(Path(one.path).name == "LOCK" for one in process.open_files())),
        }


def _sizes(directory: Path) -> Iterator[int]:
    for path in live_files(directory):
        with suppress(FileNotFoundError):  # RocksDB deletes files all the time.
            yield path.stat().st_size
