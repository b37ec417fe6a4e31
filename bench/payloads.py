"""CPU from payload to frame: what *fingerprint* computes for each document, without Kafka.

    python -m bench payloads

Bursts of JSON payloads go through the stage: it reads fields, signs texts, sums payloads and packs
frames. The measure is CPU time of the process, divided by the documents.

NEARDUP_BENCH_DATA may name a folder of `*.jsonl.gz` files, as for `bench.fingerprint`, whose
objects have an `id` and a `text`. They are taken as they are, and again with texts of 100
characters. Without it, payloads are generated.
"""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

from bench.fingerprint import documents, seconds
from bench.report import Figures, Target, show
from lsh import Fingerprinter, Parameters
from worker.bus import Record, RecordBatch, TopicPartition
from worker.formats.base import DocumentOptions
from worker.formats.json import JsonFormat
from worker.stages.fingerprint import Fingerprint
from worker.stages.reject_limit import RejectLimit
from worker.topology import Topology
from worker.wire import Layout

DOCUMENTS = 20_000
BURST = 2_000
TURNS = 9
SHORT = 100  # characters
LIMIT = 5.0  # µs, of payloads of about 860 bytes
LIMIT_SHORT = 2.5
PARTITION = TopicPartition("documents", 0)


def run(*, quick: bool = False) -> list[Target]:
    """Measure whole and short texts in turns, print the medians, and return the targets."""
    count = BURST if quick else DOCUMENTS
    whole = _payloads(count)
    kinds = {"whole texts": whole, f"texts of {SHORT} characters": [_cut(one) for one in whole]}
    fingerprinter = Fingerprinter(Parameters())
    taken: dict[str, list[float]] = {name: [] for name in kinds}
    for turn in range((3 if quick else TURNS) + 1):
        for name, payloads in kinds.items():
            each = _seconds(fingerprinter, payloads) / len(payloads) * 1e6
            if turn:  # The first turn is a warm-up.
                taken[name].append(each)
    sizes = {name: sum(map(len, some)) // len(some) for name, some in kinds.items()}
    figures = [
        Figures(f"{name}, {sizes[name]:,} bytes", values, ".2f") for name, values in taken.items()
    ]
    show(f"CPU µs from payload to frame, bursts of {BURST:,}, one core", figures)
    return [
        Target(f"µs from payload to frame, {one.name}", one.median, limit, at_least=False)
        for one, limit in zip(figures, (LIMIT, LIMIT_SHORT), strict=True)
    ]


def _payloads(count: int) -> list[bytes]:
    folder = os.environ.get("NEARDUP_BENCH_DATA")
    if not folder:
        return [_payload(f"doc-{at}", text[:800]) for at, text in enumerate(documents(count))]
    found: list[bytes] = []
    for path in sorted(Path(folder).glob("**/*.jsonl.gz")):
        with gzip.open(path) as lines:
            found += [line.rstrip(b"\n") for line in lines if json.loads(line)["text"].strip()]
    return [found[at % len(found)] for at in range(count)]


def _cut(payload: bytes) -> bytes:
    document = json.loads(payload)
    return _payload(document["id"], document["text"].strip()[:SHORT])


def _payload(ident: str, text: str) -> bytes:
    return json.dumps({"id": ident, "text": text}).encode()


def _seconds(fingerprinter: Fingerprinter, payloads: list[bytes]) -> float:
    """Return the CPU time of a stage that reads these payloads."""
    layout = Layout.of("bench", 1, 1, fingerprinter.parameters)
    stage = Fingerprint(
        Topology("bench", "documents", "unique", "duplicate", "rejected", layout),
        reader=JsonFormat(DocumentOptions()),
        fingerprinter=fingerprinter,
        reject_limit=RejectLimit(share=1),
    )
    stage.adopt({PARTITION: 0}, lambda _: (0, len(payloads)))
    records = [
        Record(*PARTITION, offset, 1_700_000_000_000 + offset, None, payload)
        for offset, payload in enumerate(payloads)
    ]
    bursts = [RecordBatch.of(records[at : at + BURST]) for at in range(0, len(records), BURST)]
    return seconds(lambda: [stage.process(burst) for burst in bursts])


if __name__ == "__main__":
    run()
