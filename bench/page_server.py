"""A server with the page, beside all stages, about an index of synthetic documents, in one process.

python -m bench.page_server DOCUMENTS DIRECTORY

The process feeds two documents of 2 MB, *long* and *long again*, and prints a line of JSON with its
port. Then it answers each line of its input with one: ``{"rate": 200, "seconds": 5}`` feeds
documents, as many as it can if the rate is null; ``{"id": "x"}`` feeds one that is a duplicate, and
tells when it was committed.
"""

from __future__ import annotations

import json
import shutil
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from itertools import count, cycle
from pathlib import Path
from typing import Any, TypeVar

from bench.query import texts
from bench.query_server import BANDS, FRAME, ROWS, Frames, fill
from bench.synthetic_frames import SLOTS
from worker.app import Application, Environment
from worker.bus import Outgoing
from worker.bus.memory.bus import MemoryBus
from worker.metrics.metrics import Metrics
from worker.offline.embedded import Embedded, create_topics
from worker.process.heap import collecting, limit, relax
from worker.serve.server import answering
from worker.serve.service import TURN_SECONDS, QueryService
from worker.settings.model import Settings
from worker.settings.sections import ServeSection

T = TypeVar("T")

_LONG = "x" * 1_999_000
_TEXTS = 20_000
_AT_ONCE = 200


class _Site:
    """All stages and the server's copies on one log, which belongs to one thread."""

    def __init__(self, documents: int, directory: Path, service: QueryService) -> None:
        settings = service_settings()
        self._topology = topology = settings.topology(1)
        self.bus = MemoryBus()
        first = {topology.fingerprints: -(-documents // FRAME), topology.documents: documents}
        create_topics(self.bus, topology, first_offsets=first)
        copies = Application(
            settings, topology, self.bus, directory / "server", environment=Environment(groups=True)
        )
        fill(copies, Frames(topology, documents), documents)
        shutil.copytree(directory / "server", directory / "worker")
        self._stages = Embedded(settings, topology, self.bus, directory / "worker")
        self._following = service.begin(copies)
        self._ids, self._texts = count(), cycle(texts(_TEXTS))
        for _ in range(4):
            self._following.step()

    def feed(self, documents: list[tuple[str, str]]) -> float:
        """Filter documents, and let the copies follow; return when they were committed."""
        for ident, text in documents:
            value = json.dumps({"id": ident, "text": text}).encode()
            self.bus.append(Outgoing(self._topology.documents, 0, None, value))
        self._stages.run_until_idle()
        committed = time.time()
        while any((self._following.reached().behind or {0: 0}).values()):
            self._following.step()
        return committed

    def some(self, wanted: int) -> list[tuple[str, str]]:
        """Return documents, of which about half are duplicates."""
        return [(f"d{next(self._ids)}", next(self._texts)) for _ in range(wanted)]

    def owners(self) -> dict[int, str]:
        """Return who owns the shard."""
        return {0: "this process"}

    def close(self) -> None:
        """Close the stages; the service closes the copies."""
        self._stages.close()


def service_settings() -> Settings:
    """Return the settings of everything here."""
    return Settings.model_validate(
        {
            "limits": {"record_bytes": 5_000_000},
            "index": {"shards": 1},
            "similarity": {"bands": BANDS, "rows": ROWS, "slots": SLOTS},
        }
    )


def main() -> None:
    """Make the index, serve, and do what is asked until the input ends."""
    limit()
    documents, directory = int(sys.argv[1]), Path(sys.argv[2])
    with ExitStack() as stack:
        thread = stack.enter_context(ThreadPoolExecutor(1, thread_name_prefix="log"))

        def on_thread(call: Callable[[], T]) -> T:
            return thread.submit(call).result()

        service = QueryService(service_settings(), Metrics(), threading.Event())
        site = on_thread(partial(_Site, documents, directory, service))
        stack.callback(lambda: on_thread(site.close))
        stack.enter_context(service)
        service.show(site.bus, site.owners, lambda _name: thread)
        relax()
        sys.setswitchinterval(TURN_SECONDS)
        stack.enter_context(collecting())
        port = stack.enter_context(
            answering(
                ServeSection(port=0),
                service.query,
                service.most_bytes,
                groups=service.groups,
                desk=service.desk,
            )
        )
        on_thread(lambda: site.feed([("long", _LONG), ("long again", _LONG + " ")]))
        print(json.dumps({"port": port}), flush=True)
        for line in sys.stdin:
            print(json.dumps(_done(json.loads(line), site, on_thread)), flush=True)


def _done(asked: dict[str, Any], site: _Site, on_thread: Callable[..., Any]) -> dict[str, float]:
    """Do what a line asks for, and return what it took."""
    if "id" in asked:
        text = site.some(1)[0][1]
        on_thread(lambda: site.feed([("first of " + asked["id"], text)]))
        return {"committed": on_thread(lambda: site.feed([(asked["id"], text)]))}
    began = time.perf_counter()
    fed, rate, until = 0, asked["rate"], began + asked["seconds"]
    while time.perf_counter() < until:
        some = site.some(_AT_ONCE if rate is None else max(1, rate // 20))
        on_thread(partial(site.feed, some))
        fed += len(some)
        if rate is not None:
            time.sleep(max(0.0, began + fed / rate - time.perf_counter()))
    return {"documents": fed, "seconds": time.perf_counter() - began}


if __name__ == "__main__":
    main()
