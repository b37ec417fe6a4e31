"""What an application publishes while it is measured: each verdict, and when it became readable."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final, NamedTuple

from confluent_kafka import Consumer, Message
from confluent_kafka import TopicPartition as KafkaPartition

from bench.cluster import DOCUMENTS, PARTITIONS
from bench.processes import Program
from localkafka.broker import KafkaCluster
from worker.closing import Closing
from worker.settings.model import Settings
from worker.wire.headers import MATCHES, SEQUENCE, SOURCE

_MOST_SECONDS: Final = 1_800.0
_DRAIN_SECONDS: Final = 60.0
_LATE_SECONDS: Final = 5.0
_AT_ONCE: Final = 2_000


def verdicts_reader(bootstrap: str, settings: Settings) -> Consumer:
    """Return a consumer of all that is committed on *unique* and *duplicate*, from the start."""
    topology = settings.topology(PARTITIONS)
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "verdicts-reader",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "fetch.queue.backoff.ms": 5,
        }
    )
    consumer.assign(
        [
            KafkaPartition(topic, number, 0)
            for topic in (topology.unique, topology.duplicate)
            for number in range(PARTITIONS)
        ]
    )
    return consumer


class Verdict(NamedTuple):
    """What was published of a document: ``matches`` are JSON, and empty if it is unique."""

    number: int
    sequence: int
    matches: bytes
    sent: float
    """Seconds since the epoch, as is ``read``."""
    read: float

    @property
    def wait(self) -> float:
        """Return how many seconds it took to publish it."""
        return self.read - self.sent


class Reader(Closing):
    """Notes every verdict that becomes readable.

    Attributes:
        verdicts: of each document, the first one.
        seen: by place in the documents, how often it was published.
    """

    def __init__(self, kafka: KafkaCluster, settings: Settings) -> None:
        """Begin at the start of the outputs of an application with these settings."""
        self._consumer = verdicts_reader(kafka.bootstrap, settings)
        self.verdicts: list[Verdict] = []
        self.seen: dict[bytes, int] = {}

    def listen(self, seconds: float, programs: Sequence[Program]) -> None:
        """Read for so long."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self._read(programs)

    def until(self, command: Program, programs: Sequence[Program]) -> None:
        """Read until a command has ended."""
        deadline = time.monotonic() + _MOST_SECONDS
        while not command.ended():
            self._read(programs)
            if time.monotonic() > deadline:
                raise SystemExit(f"not done within {_MOST_SECONDS:.0f} s:\n{command.said()}")
        command.wait()

    def drain(self, programs: Sequence[Program]) -> set[bytes]:
        """Read until all is published, or nothing has come for long; return what was written."""
        places = [KafkaPartition(DOCUMENTS, number) for number in range(PARTITIONS)]
        ends = [self._consumer.get_watermark_offsets(place, 30)[1] for place in places]
        quiet = time.monotonic()
        while len(self.seen) < sum(ends) and time.monotonic() - quiet < _DRAIN_SECONDS:
            if self._read(programs):
                quiet = time.monotonic()
        self.listen(_LATE_SECONDS, programs)  # What is doubled would come late.
        return {
            f"{DOCUMENTS}-{number}-{offset}".encode()
            for number, end in enumerate(ends)
            for offset in range(end)
        }

    def _read(self, programs: Sequence[Program]) -> int:
        messages = self._consumer.consume(_AT_ONCE, 0.1)
        for program in programs:
            program.check()
        now = time.time()
        for message in messages:
            if message.error() is None:
                self._note(message, now)
        return len(messages)

    def _note(self, message: Message, now: float) -> None:
        headers = dict(message.headers() or [])
        place = _bytes(headers[SOURCE])
        self.seen[place] = self.seen.get(place, 0) + 1
        if self.seen[place] == 1:
            self.verdicts.append(
                Verdict(
                    int((message.key() or b"").rpartition(b"-")[2]),
                    int(_bytes(headers[SEQUENCE])),
                    _bytes(headers.get(MATCHES)),
                    message.timestamp()[1] / 1000,
                    now,
                )
            )

    def close(self) -> None:
        """Let go of the broker."""
        self._consumer.close()


def _bytes(value: str | bytes | None) -> bytes:
    return value.encode() if isinstance(value, str) else value or b""
