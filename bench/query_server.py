"""A server of queries on an index of synthetic documents that goes on growing, in its own process.

python -m bench.query_server DOCUMENTS RATE SECONDS DIRECTORY

Among the synthetic documents are `TEXTS` texts, which queries may ask about. Once the index is
made, the process prints a line of JSON with its port, then feeds RATE documents a second, in frames
of 50 ms, for SECONDS at most. They are made before, because others make them where there is Kafka.
When standard input ends, it prints a line with its costs.
"""

from __future__ import annotations

import json
import resource
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import numpy as np

from bench.corpus import short_texts
from bench.synthetic_frames import SLOTS, synthetic_batch
from lsh import Fingerprinter
from worker.app import Application, Environment
from worker.bus import Outgoing
from worker.bus.memory.bus import MemoryBus
from worker.metrics.metrics import Metrics
from worker.offline.embedded import create_topics
from worker.process.heap import collecting, limit, relax
from worker.serve.queries import Respond, Said
from worker.serve.server import answering
from worker.serve.service import TURN_SECONDS, QueryService
from worker.serve.shard_lock import ShardLock
from worker.settings.model import Settings
from worker.settings.sections import ServeSection
from worker.stages.order import Documents, Placed
from worker.topology import Topology
from worker.wire.codec import encode
from worker.wire.fingerprints import FingerprintFrame
from worker.wire.ids import Ids

TEXTS = 20_000
FRAME = 2_000
BANDS, ROWS = 18, 7
_FRAMES_A_SECOND = 20


class _Held(ShardLock):
    """A shard's lock that notes how long the main thread, which applies frames, holds it."""

    def __init__(self) -> None:
        super().__init__()
        self.longest_seconds = 0.0
        self._began = 0.0

    def __enter__(self) -> None:
        super().__enter__()
        self._began = time.thread_time()

    def __exit__(self, *_: object) -> None:
        seconds = time.thread_time() - self._began
        self.longest_seconds = max(self.longest_seconds, seconds)
        super().__exit__()


class Frames:
    """Frames of synthetic documents, one after the other, with texts among them."""

    def __init__(self, topology: Topology, documents: int) -> None:
        """Take how many documents there will be, among which the texts are."""
        self._layout = topology.layout
        self._every = max(1, documents // TEXTS)
        self._texts = short_texts(TEXTS)
        self._fingerprinter = Fingerprinter(topology.layout.parameters)
        self.made = 0

    def next(self, count: int) -> FingerprintFrame:
        """Return a frame of ``count`` documents."""
        first = self.made
        batch = synthetic_batch(first, count)
        self.made += count
        exact, sketches = batch.keys[-1], batch.sketches
        rows = [row for row in range(count) if (first + row) % self._every == 0]
        texts = [text for _, text in zip(rows, self._texts, strict=False)]
        prints = self._fingerprinter.fingerprint(texts)
        rows = rows[: len(texts)]
        exact[rows] = prints.keys[:, -1]
        sketches[rows] = prints.sketches
        return FingerprintFrame(
            layout=self._layout.id,
            partition=0,
            start=first,
            end=first + count,
            offsets=np.arange(count, dtype=np.uint32),
            times=batch.times,
            checksums=np.zeros(count, np.uint64),
            ids=Ids.pack(batch.ids),
            shingles=batch.shingles,
            texts=exact,
            sketches=sketches,
            accounted=np.empty(0, np.uint32),
        )


def main() -> None:
    """Make the index, and serve."""
    limit()
    documents, rate, seconds = map(int, sys.argv[1:4])
    directory = Path(sys.argv[4])
    similarity = {"bands": BANDS, "rows": ROWS, "slots": SLOTS}
    sections = {"index": {"shards": 1}, "similarity": similarity}
    settings = Settings.model_validate(sections)
    topology = settings.topology(1)
    frames = Frames(topology, documents)
    bus = MemoryBus()
    create_topics(bus, topology, first_offsets={topology.fingerprints: -(-documents // FRAME)})
    metrics, stopping = Metrics(), threading.Event()
    application = Application(settings, topology, bus, directory, environment=Environment(metrics))
    fill(application, frames, documents)
    size = rate // _FRAMES_A_SECOND
    to_come = [encode(frames.next(size)) for _ in range(seconds * _FRAMES_A_SECOND)]
    with ExitStack() as stack:
        service = stack.enter_context(QueryService(settings, metrics, stopping))
        locks: list[_Held] = []

        def lock() -> _Held:
            locks.append(_Held())
            return locks[-1]

        following = service.begin(application, lock=lock)
        for _ in range(3):
            following.step()
        (held,) = locks
        held.longest_seconds = 0.0
        relax()
        stack.enter_context(collecting())
        sys.setswitchinterval(TURN_SECONDS)
        costs: list[tuple[float, float]] = []
        server = answering(ServeSection(port=0), _timed(service.query, costs), service.most_bytes)
        port = stack.enter_context(server)
        threading.Thread(target=_wait, args=(stopping,), daemon=True).start()
        print(json.dumps({"port": port}), flush=True)
        began, cpu = time.perf_counter(), time.process_time()
        fed, worst = 0, 0.0
        for frame in to_come:
            bus.append(Outgoing(topology.fingerprints, 0, None, frame))
            at = time.thread_time()
            following.step()
            worst = max(worst, time.thread_time() - at)
            bus.trim(*topology.order, bus.end_offset(*topology.order) - 1)
            fed += 1
            due = began + fed / _FRAMES_A_SECOND
            if stopping.wait(max(0.0, due - time.perf_counter())):
                break
        fed_seconds = time.perf_counter() - began
        stopping.wait()
        took = time.perf_counter() - began
        print(
            json.dumps(
                {
                    "seconds": took,
                    "cpu": time.process_time() - cpu,
                    "fed": fed * size,
                    "fed_seconds": fed_seconds,
                    "worst_step": worst,
                    "worst_hold": held.longest_seconds,
                    "queries": costs,
                    "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
                }
            ),
            flush=True,
        )


def fill(application: Application, frames: Frames, documents: int) -> None:
    """Make the index, as a replay would."""
    store, judge = application.directories.open(0), application.judge()
    while frames.made < documents:
        frame = frames.next(min(FRAME, documents - frames.made))
        at = store.offset
        placed = Placed(frame, at, at, frame.times, 0)
        judge.replay(0, store, Documents([placed]))
    store.close()


def _timed(respond: Respond, costs: list[tuple[float, float]]) -> Respond:
    """Return a function that also notes the CPU of each query, in seconds.

    That of the thread that answers, of which those that are answered together have equal shares,
    and that of the main thread meanwhile, which applies frames.
    """
    applying = time.pthread_getcpuclockid(threading.get_ident())

    def timed(bodies: Sequence[bytes]) -> Sequence[Said]:
        began, before = time.thread_time(), time.clock_gettime(applying)
        answers = respond(bodies)
        own = (time.thread_time() - began) / len(bodies)
        costs.extend([(own, time.clock_gettime(applying) - before)] * len(bodies))
        return answers

    return timed


def _wait(stopping: threading.Event) -> None:
    sys.stdin.read()
    stopping.set()


if __name__ == "__main__":
    main()
