"""``neardup demo --page``: the page of ``neardup serve`` on the bundled samples, without Kafka.

All stages run on the in-process log, which belongs to one thread. Most samples are there at once,
with times as if they had come over the last hours; the others come one by one, so that the page has
something to follow.
"""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from importlib.resources import as_file, files
from pathlib import Path
from time import time
from typing import TypeVar

import typer

from worker.app import Application
from worker.bus import Outgoing
from worker.bus.memory.bus import MemoryBus
from worker.files.inputs import Inputs
from worker.metrics.metrics import Metrics
from worker.offline.embedded import Embedded, create_topics
from worker.offline.filter import offline_settings
from worker.probes.server import url
from worker.process.signals import stopping_on_signals
from worker.serve.server import answering
from worker.serve.service import QueryService
from worker.settings.model import Settings
from worker.settings.sections import ServeSection

T = TypeVar("T")

_APP = "demo"
_TURN_SECONDS = 0.25
_LATER = 400
"""How many samples come one by one."""
_MOST_AT_ONCE = 500
_SPREAD_MS = 20 * 3_600_000


def show_page() -> None:
    """Serve the page about the samples on any free port until Ctrl-C."""
    given = offline_settings()
    serve = ServeSection(port=0)
    settings = given.model_copy(update={"app": _APP, "serve": serve})
    stopping = threading.Event()
    with stopping_on_signals(stopping.set):
        typer.echo("Filtering the bundled samples.")
        values = samples(settings)
        with page_of(settings, values[:-_LATER], values[-_LATER:], stopping) as address:
            typer.echo(f"The page is on {address}/ until you press Ctrl-C.")
            stopping.wait()


def samples(settings: Settings) -> list[bytes]:
    """Return the bundled samples, as they would be on the topic of the documents."""
    with (
        as_file(files("worker") / "samples") as folder,
        Inputs(sorted(folder.glob("*.jsonl.gz")), settings.documents) as inputs,
    ):
        chunks = inputs.chunks(settings.limits.record_bytes)
        return [line.value for chunk in chunks for line in chunk if line.complete]


@contextmanager
def page_of(
    settings: Settings,
    values: Sequence[bytes],
    later: Iterable[bytes | None],
    stopping: threading.Event,
) -> Iterator[str]:
    """Filter documents on an in-process log, and yield the address of the page about them.

    Those that come ``later`` are fed in turns; None is a turn without one.
    """
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        thread = stack.enter_context(ThreadPoolExecutor(1, thread_name_prefix="log"))

        def on_thread(call: Callable[[], T]) -> T:
            return thread.submit(call).result()

        service = QueryService(settings, Metrics(), stopping)
        site = on_thread(lambda: _Site(settings, directory, service))
        stack.callback(lambda: on_thread(site.close))
        began = int(time() * 1_000) - _SPREAD_MS
        times = [began + _SPREAD_MS * at // len(values) for at in range(len(values))]
        for first in range(0, len(values), _MOST_AT_ONCE):
            some = slice(first, first + _MOST_AT_ONCE)
            on_thread(partial(site.feed, values[some], times[some]))
        stack.enter_context(service)
        service.show(site.bus, site.owners, lambda _name: thread)
        ended = threading.Event()

        def live() -> None:
            left = iter(later)
            while not ended.wait(_TURN_SECONDS):
                value = next(left, None)
                some = [] if value is None else [value]
                on_thread(partial(site.feed, some, [None] * len(some)))

        lives = threading.Thread(target=live, name="live", daemon=True)
        lives.start()
        stack.callback(lives.join)
        stack.callback(ended.set)
        at = settings.serve
        served = answering(
            at,
            service.query,
            service.most_bytes,
            app=settings.app,
            groups=service.groups,
            desk=service.desk,
        )
        port = stack.enter_context(served)
        yield url(at.host, port)


class _Site:
    """An application, and the server's copies of its shards; belongs to one thread."""

    def __init__(self, settings: Settings, directory: Path, service: QueryService) -> None:
        self._topology = settings.topology(2)
        self.bus = MemoryBus()
        create_topics(self.bus, self._topology)
        self._embedded = Embedded(settings, self._topology, self.bus, directory / "worker")
        copies = Application(settings, self._topology, self.bus, directory / "server")
        self._following = service.begin(copies)
        self._fed = 0

    def feed(self, values: Sequence[bytes], times: Sequence[int | None]) -> None:
        """Have documents judged, and the copies follow. ``times`` in ms, or None: now."""
        for value, at in zip(values, times, strict=True):
            partition = self._fed % self._topology.layout.partitions
            self.bus.append(Outgoing(self._topology.documents, partition, None, value, (), at))
            self._fed += 1
        self._embedded.run_until_idle()
        while not self._following.reached().behind or any(
            self._following.reached().behind.values()
        ):
            self._following.step()
        self._following.step()

    def owners(self) -> dict[int, str]:
        """Return who owns which shard: this process has all."""
        return dict.fromkeys(range(self._topology.layout.shards), "this process")

    def close(self) -> None:
        """Close the stages; the service closes the copies."""
        self._embedded.close()
