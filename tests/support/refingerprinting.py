"""An earlier log of frames on the in-process bus, and the stage that makes a new one from it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import takewhile
from typing import NamedTuple

from lsh import Fingerprinter, Parameters
from tests.support.notes import KeptNotes
from tests.support.stages import process
from worker.bus import Outgoing, Record, TopicPartition
from worker.bus.memory.bus import MemoryBus
from worker.corrections.request import Request, encoded
from worker.formats.base import DocumentOptions
from worker.formats.json import JsonFormat
from worker.loop.loop import Loop
from worker.loop.options import LoopOptions
from worker.metrics import table
from worker.metrics.metrics import Metrics
from worker.stages.fingerprint import Fingerprint
from worker.stages.refingerprint import Refingerprint
from worker.stages.reject_limit import RejectLimit
from worker.topology import Topology
from worker.wire.codec import HandOver, decode, hand_over
from worker.wire.fingerprints import FingerprintFrame
from worker.wire.frame import Layout
from worker.wire.headers import CORRECTION

START = 1_700_000_000_000
ALLOWANCE = 60_000
EARLIER = Parameters()
NEW = Parameters(shingle="word", shingle_size=1, slots=32, bands=4, rows=8, strip_html=True)


class Judged(NamedTuple):
    """A document in a frame, apart from the time."""

    offset: int
    checksum: int
    ident: bytes
    shingles: int
    text: int
    sketch: bytes


class Replaced(NamedTuple):
    """A frame of the earlier log, and the frames that replace it, until the next one begins."""

    record: Record
    earlier: FingerprintFrame
    frames: list[FingerprintFrame]


class TwoLogs:
    """Documents, the log of their fingerprints, and the log that replaces it.

    Attributes:
        sent: all documents that were ever written.
        notes: what the stage has noted of the documents that it reads.
        refingerprint: the loop of the stage in its present life.
    """

    def __init__(
        self,
        partitions: int = 1,
        *,
        batch: int = 1_000,
        frame_bytes: tuple[int, int] = (900_000, 900_000),
        buffer_bytes: int = 1 << 20,
        limits: DocumentOptions | None = None,
        fingerprinter: Fingerprinter | None = None,
    ) -> None:
        """Take the size limits of frames in the earlier log and in the new one.

        ``limits`` and ``fingerprinter`` are for the new log. By default documents are read as for
        the earlier one, and signed by the parameters `NEW`.
        """
        self.now = START
        self._seconds = 0.0
        earlier, new = (
            Layout(name, partitions, 1, parameters)
            for name, parameters in (("earlier", EARLIER), ("new", NEW))
        )
        names = ("documents", "unique", "duplicate", "rejected")
        self.source = Topology("app", *names, earlier)
        self.target = replace(self.source, app="app.g1", layout=new, generation=1)
        self.bus = MemoryBus(clock=lambda: self.now)
        self.bus.create_topic("documents", partitions)
        self.bus.create_topic("rejected", 1)
        for one in (self.source, self.target):
            self.bus.create_topic(one.fingerprints, 1, log_append_time=True)
        documents = [TopicPartition("documents", number) for number in range(partitions)]
        self.bus.commit_offsets("app.fingerprint", dict.fromkeys(documents, 0))
        self.bus.commit_offsets("app.g1.refingerprint", {self.source.order: 0})
        self._batch = batch
        self._frame_bytes = frame_bytes
        self._buffer_bytes = buffer_bytes
        self._fingerprinter = fingerprinter or Fingerprinter(NEW)
        self.notes = KeptNotes()
        self._format = JsonFormat(limits or DocumentOptions())
        self.sent: list[Record] = []
        self.metrics = Metrics()
        self._fingerprint = self._seat(self._first(), "app.fingerprint", self.source.documents)
        self.refingerprint = self.restart()

    def _first(self) -> Fingerprint:
        return Fingerprint(
            self.source,
            reader=JsonFormat(DocumentOptions()),
            fingerprinter=Fingerprinter(EARLIER),
            reject_limit=RejectLimit(share=1),
            frame_bytes=self._frame_bytes[0],
        )

    def _seat(self, stage: Fingerprint | Refingerprint, group: str, topic: str) -> Loop:
        member = self.bus.join(group, [topic], "w")
        options = LoopOptions(max_records=self._batch, settle_seconds=0.0, retry_seconds=1e9)
        return Loop(stage, member, options=options, clock=self._clock)

    def _clock(self) -> float:
        self._seconds += 0.3
        return self._seconds

    def restart(self) -> Loop:
        """Replace the stage without closing it, as after a death."""
        bus, documents = self.bus, self.source.documents
        self.stage = Refingerprint(
            self.source,
            self.target,
            documents=lambda: bus.log_reader("app.g1.refingerprint", [documents]),
            reader=self._format,
            fingerprinter=self._fingerprinter,
            future_allowance_ms=ALLOWANCE,
            frame_bytes=self._frame_bytes[1],
            buffer_bytes=self._buffer_bytes,
            deaths=self.notes.documents(),
            metrics=self.metrics,
        )
        self.refingerprint = self._seat(
            self.stage, "app.g1.refingerprint", self.source.fingerprints
        )
        return self.refingerprint

    def counts(self) -> dict[str, float]:
        """Return how many documents were committed, by what came of them."""
        found = self.metrics.numbers(table.REWRITING_DOCUMENTS)
        return {outcome: count for (outcome,), count in found.items() if count}

    def send(self, partition: int, value: bytes | None, **more: object) -> None:
        """Write a document or a tombstone."""
        out = Outgoing("documents", partition, b"key", value, **more)  # type: ignore[arg-type]
        place, offset = self.bus.append(out)
        (record,) = self.bus.read(*place, offset, 1)
        self.sent.append(record)

    def text(self, text: str, partition: int = 0, **more: object) -> None:
        """Write a document with a text."""
        self.send(partition, json.dumps({"text": text}).encode(), **more)

    def correct(self, request: Request) -> None:
        """Write a correction."""
        self.send(0, None, headers=((CORRECTION, encoded(request)),))

    def sign(self) -> None:
        """Let *fingerprint* read all there is, also its quiet ends."""
        _run(self._fingerprint)

    def renew(self) -> None:
        """Let *refingerprint* read all there is."""
        _run(self.refingerprint)

    def hand_over(self, generation: int = 1) -> None:
        """Write a hand-over to the earlier log."""
        value = HandOver("earlier", generation).encode()
        self.bus.append(Outgoing(self.source.fingerprints, 0, None, value))

    def committed(self) -> int | None:
        """Give the offset of *refingerprint* in the earlier log."""
        return self.bus.committed("app.g1.refingerprint")[self.source.order]

    def frames(self, topology: Topology) -> list[tuple[Record, FingerprintFrame]]:
        """Give the frames of a log."""
        layout = topology.layout.id
        log = self.bus.read(topology.fingerprints, 0, 0, 1 << 30)
        return [
            (record, decode(FingerprintFrame, record.value, layout))
            for record in log
            if hand_over(record.value, layout) is None
        ]

    def replaced(self) -> Iterator[Replaced]:
        """Give each frame of the earlier log before the hand-over, with those that replace it."""
        left = [frame for _, frame in self.frames(self.target)]
        log = self.bus.read(self.source.fingerprints, 0, 0, 1 << 30)
        for record in takewhile(lambda one: hand_over(one.value, "earlier") != 1, log):
            if hand_over(record.value, "earlier") is not None:
                continue
            earlier = decode(FingerprintFrame, record.value, "earlier")
            frames = [left.pop(0)]
            while frames[-1].end < earlier.end:
                frames.append(left.pop(0))
            yield Replaced(record, earlier, frames)
        assert not left

    def expected(self) -> dict[tuple[int, int], Judged]:
        """Give what *fingerprint* makes of all documents with the new parameters, by place."""
        stage = Fingerprint(
            self.target,
            reader=self._format,
            fingerprinter=Fingerprinter(NEW),
            reject_limit=RejectLimit(share=1),
        )
        stage.adopt({TopicPartition(one.topic, one.partition): 0 for one in self.sent}, _nothing)
        burst = process(stage, self.sent)
        found: dict[tuple[int, int], Judged] = {}
        for out in burst.records:
            if out.topic == self.target.fingerprints:
                frame = decode(FingerprintFrame, out.value, "new")
                found |= {(frame.partition, one.offset): one for one in judged(frame)}
        return found


def judged(frame: FingerprintFrame) -> list[Judged]:
    """Give the documents of a frame."""
    return [
        Judged(
            frame.start + int(offset),
            int(frame.checksums[row]),
            ident,
            int(frame.shingles[row]),
            int(frame.texts[row]),
            frame.sketches[row].tobytes(),
        )
        for row, (offset, ident) in enumerate(zip(frame.offsets, frame.ids.unpack(), strict=True))
    ]


def _nothing(partition: TopicPartition) -> tuple[int, int]:
    raise AssertionError(partition)


def _run(loop: Loop) -> None:
    """Step until nothing has happened for so long that quiet inputs are settled."""
    quiet = 0
    while quiet < 15:
        moved = loop.step(0.0)
        quiet = 0 if moved or loop.busy else quiet + 1
