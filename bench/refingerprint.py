"""The processor time that new fingerprints take, as a share of that of the first ones.

    python -m bench.refingerprint

The stages *fingerprint* and *refingerprint* read the same documents, with the same parameters, each
in its loop and in turns, on the in-process log: all that a worker does apart from the broker's
client. NEARDUP_BENCH_DATA is as in `bench.corpus`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from bench.corpus import source, texts
from bench.report import Figures, show
from lsh import Fingerprinter, Parameters
from worker.bus import Outgoing, TopicPartition
from worker.bus.memory.bus import MemoryBus
from worker.formats.base import DocumentOptions
from worker.formats.json import JsonFormat
from worker.loop.loop import Loop
from worker.stages.fingerprint import Fingerprint
from worker.stages.refingerprint import Refingerprint
from worker.stages.reject_limit import RejectLimit
from worker.topology import Topology
from worker.wire.codec import decode
from worker.wire.fingerprints import FingerprintFrame
from worker.wire.frame import Layout

DOCUMENTS: Final = 20_000
PARTITIONS: Final = 4
TURNS: Final = 5
_IDLE_STEPS: Final = 3
"""An input that was paused is read only in the step after the one that has resumed it."""


def run() -> None:
    """Measure in turns, and print the medians."""
    payloads = [
        json.dumps({"id": f"d{number}", "text": text}).encode()
        for number, text in enumerate(texts(DOCUMENTS))
    ]
    pairs = [_turn(payloads) for _ in range(TURNS + 1)][1:]  # The first turn is a warm-up.
    size = sum(map(len, payloads)) / len(payloads)
    show(
        f"{len(payloads):,} documents of {size:,.0f} bytes on average ({source()})",
        [
            Figures("fingerprint, µs a document", [first for first, _ in pairs], ".1f"),
            Figures("refingerprint, µs a document", [again for _, again in pairs], ".1f"),
            Figures("ratio, turn by turn", [again / first for first, again in pairs], ".2f"),
        ],
    )


def _turn(payloads: Sequence[bytes]) -> tuple[float, float]:
    """Return the processor time of both stages, in microseconds a document."""
    layout = Layout("first", PARTITIONS, 1, Parameters())
    earlier = Topology("app", "documents", "unique", "duplicate", "rejected", layout)
    later = replace(earlier, generation=1, log=1, layout=replace(layout, id="again"))
    bus = _bus(earlier, later, payloads)
    reader, fingerprinter = JsonFormat(DocumentOptions()), Fingerprinter(Parameters())
    first = Fingerprint(
        earlier, reader=reader, fingerprinter=fingerprinter, reject_limit=RejectLimit(share=1)
    )
    again = Refingerprint(
        earlier,
        later,
        documents=lambda: bus.log_reader("again", [earlier.documents]),
        reader=reader,
        fingerprinter=fingerprinter,
        future_allowance_ms=60_000,
    )
    spent = [
        _spent(Loop(stage, bus.join(stage.name, [topic], "worker")))
        for stage, topic in ((first, earlier.documents), (again, earlier.fingerprints))
    ]
    for one in (earlier, later):
        log = bus.read(one.fingerprints, 0, 0, len(payloads))
        frames = [decode(FingerprintFrame, record.value, one.layout.id) for record in log]
        if sum(len(frame.offsets) for frame in frames) != len(payloads):
            raise SystemExit(f"{one.fingerprints} lacks documents")
    return spent[0] * 1e6 / len(payloads), spent[1] * 1e6 / len(payloads)


def _bus(earlier: Topology, later: Topology, payloads: Sequence[bytes]) -> MemoryBus:
    bus = MemoryBus()
    bus.create_topic(earlier.documents, PARTITIONS)
    bus.create_topic(earlier.rejected, 1)
    for one in (earlier, later):
        bus.create_topic(one.fingerprints, 1, log_append_time=True)
    bus.append_many(
        Outgoing(earlier.documents, number % PARTITIONS, None, payload)
        for number, payload in enumerate(payloads)
    )
    documents = [TopicPartition(earlier.documents, number) for number in range(PARTITIONS)]
    bus.commit_offsets("fingerprint", dict.fromkeys(documents, 0))
    bus.commit_offsets("refingerprint", {earlier.order: 0})
    return bus


def _spent(loop: Loop) -> float:
    """Return the processor time in seconds until a stage has read all there is."""
    loop.step(0.0)
    start = time.process_time()
    idle = 0
    while idle < _IDLE_STEPS:
        loop.step(0.0)
        idle = 0 if loop.busy else idle + 1
    return time.process_time() - start


if __name__ == "__main__":
    run()
