"""CPU from payload to frame: what *fingerprint* computes for each document, without Kafka.

    python -m bench payloads

Bursts of payloads go through the stage: it reads fields, signs texts, sums payloads and packs
frames. The measure is CPU time of the process, divided by the documents. The same documents are
JSON, Avro and Protobuf with a schema that a registry has; these have ten more fields each, which
nobody needs.

NEARDUP_BENCH_DATA may name a folder of `*.jsonl.gz` files, as for `bench.fingerprint`, whose
objects have an `id` and a `text`. They are taken as they are, and again with texts of 100
characters. Without it, payloads are generated.
"""

from __future__ import annotations

import gzip
import json
import os
from base64 import b64encode
from io import BytesIO
from pathlib import Path
from typing import Final

from fastavro import parse_schema, schemaless_writer
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

from bench.fingerprint import documents, seconds
from bench.report import Figures, Target, show
from lsh import Fingerprinter, Parameters
from worker.bus import Record, RecordBatch, TopicPartition
from worker.formats.base import DocumentFormat, DocumentOptions
from worker.formats.json import JsonFormat
from worker.formats.registry.client import Fetched
from worker.formats.registry.documents import RegistryFormat
from worker.stages.fingerprint import Fingerprint
from worker.stages.reject_limit import RejectLimit
from worker.topology import Topology
from worker.wire.frame import Layout

DOCUMENTS = 20_000
BURST = 2_000
TURNS = 9
SHORT = 100  # characters
LIMIT = 5.0  # µs, of payloads of about 860 bytes
LIMIT_SHORT = 2.5
PARTITION = TopicPartition("documents", 0)
MORE: Final = {f"field{number}": f"what field {number} has" for number in range(10)}
"""What else a document has, in all formats that are compared."""
AVRO: Final = {
    "type": "record",
    "name": "Document",
    "fields": [{"name": name, "type": "string"} for name in ("id", *MORE, "text")],
}


def run(*, quick: bool = False) -> list[Target]:
    """Measure whole and short texts in turns, print the medians, and return the targets."""
    count = BURST if quick else DOCUMENTS
    whole = _payloads(count)
    kinds = {"whole texts": whole, f"texts of {SHORT} characters": [_cut(one) for one in whole]}
    kinds |= in_formats(whole, 1, 2)
    fingerprinter = Fingerprinter(Parameters())
    taken: dict[str, list[float]] = {name: [] for name in kinds}
    for turn in range((3 if quick else TURNS) + 1):
        for name, some in kinds.items():
            schemas = name in {"Avro", "Protobuf"}
            each = _seconds(fingerprinter, some, _reader(schemas=schemas)) / len(some) * 1e6
            if turn:  # The first turn is a warm-up.
                taken[name].append(each)
    sizes = {name: sum(map(len, some)) // len(some) for name, some in kinds.items()}
    figures = [
        Figures(f"{name}, {sizes[name]:,} bytes", values, ".2f") for name, values in taken.items()
    ]
    show(f"CPU µs from payload to frame, bursts of {BURST:,}, one core", figures)
    return [
        Target(f"µs from payload to frame, {one.name}", one.median, limit, at_least=False)
        for one, limit in zip(figures, (LIMIT, LIMIT_SHORT), strict=False)
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


def in_formats(payloads: list[bytes], avro_id: int, protobuf_id: int) -> dict[str, list[bytes]]:
    """Return the documents in payloads, with more fields, in each of the formats to compare.

    The ids are those of `AVRO` and `protobuf_file` in the registry.
    """
    documents = [json.loads(one) | MORE for one in payloads]
    schema, message = parse_schema(AVRO), GetMessageClass(_pool().FindMessageTypeByName("Document"))

    def avro(document: dict[str, str]) -> bytes:
        out = BytesIO()
        schemaless_writer(out, schema, document)
        return _mark(avro_id) + out.getvalue()

    return {
        "JSON": [json.dumps(one).encode() for one in documents],
        "Avro": list(map(avro, documents)),
        "Protobuf": [
            _mark(protobuf_id) + b"\0" + message(**one).SerializeToString() for one in documents
        ],
    }


def _mark(schema: int) -> bytes:
    return b"\0" + schema.to_bytes(4)


def protobuf_file() -> FileDescriptorProto:
    """Return the file with the message that the documents in Protobuf are."""
    file = FileDescriptorProto(name="document.proto", syntax="proto3")
    message = file.message_type.add(name="Document")
    for number, name in enumerate(("id", *MORE, "text"), 1):
        message.field.add(
            name=name,
            number=number,
            type=FieldDescriptorProto.TYPE_STRING,
            label=FieldDescriptorProto.LABEL_OPTIONAL,
        )
    return file


def _pool() -> DescriptorPool:
    pool = DescriptorPool()
    pool.Add(protobuf_file())
    return pool


def _reader(*, schemas: bool) -> DocumentFormat:
    if not schemas:
        return JsonFormat(DocumentOptions())
    known: dict[int | str, Fetched] = {
        1: Fetched("AVRO", json.dumps(AVRO), []),
        2: Fetched("PROTOBUF", b64encode(protobuf_file().SerializeToString()).decode(), []),
    }
    return RegistryFormat(DocumentOptions(), None, lambda idents: [known[one] for one in idents])


def _seconds(fingerprinter: Fingerprinter, payloads: list[bytes], reader: DocumentFormat) -> float:
    """Return the CPU time of a stage that reads these payloads."""
    layout = Layout.of("bench", 1, 1, fingerprinter.parameters)
    stage = Fingerprint(
        Topology("bench", "documents", "unique", "duplicate", "rejected", layout),
        reader=reader,
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
