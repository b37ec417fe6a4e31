"""`neardup reindex --from-documents` at a steady load: what is lost, doubled, wrong, or late.

A feeder process sends a steady stream, and stamps each document when it sends it. Two workers judge
it. After some minutes the command has them make all fingerprints anew, by other parameters. A
`read_committed` consumer in this process notes when each verdict arrives, until half a minute after
the hand-over.

Then all documents are judged twice without Kafka, by one shard and in the order of the published
sequence numbers: by the earlier parameters and by the later ones. What was published has the
earlier log's numbers or the later one's, and so tells which of the two it must be equal to.

    python -m bench.reindex BOOTSTRAP RATE    (the feeder alone, until it is ended)
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Final, NamedTuple

from confluent_kafka import Message
from confluent_kafka import TopicPartition as KafkaPartition

from bench.cluster import (
    DOCUMENTS,
    PARTITIONS,
    application,
    broker,
    feed_steadily,
    numbered,
    verdicts_reader,
)
from bench.cluster import worker as run_worker
from bench.corpus import source, texts
from bench.processes import Program
from bench.report import Target, console
from localkafka.broker import KafkaCluster
from worker.admin import Cluster
from worker.admin.reindex.in_use import planned
from worker.offline.filter import Line, OfflineFilter, offline_settings
from worker.settings import Settings
from worker.wire import POSITION_BITS
from worker.wire.headers import MATCHES, SEQUENCE, SOURCE

__all__ = ["run"]

RATE: Final = 2_000
WAIT_SECONDS: Final = 10.0
SHARDS: Final = 2
LATER: Final[Mapping[str, str]] = {
    "similarity.shingle_size": "4",
    "similarity.slots": "192",
    "similarity.fold_digits": "true",
}
_AFTER_SECONDS: Final = 30.0
_MOST_SECONDS: Final = 1_800.0
_DRAIN_SECONDS: Final = 60.0
_LATE_SECONDS: Final = 5.0
_AT_ONCE: Final = 2_000
_ENDLESS: Final = 1 << 40


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


class Timing(NamedTuple):
    """When the command began, when the first verdict of the new index came, and when it ended."""

    began: float
    first: float
    ended: float


class Plain(NamedTuple):
    """The matches of all documents by the earlier parameters, and by the later ones."""

    earlier: Sequence[bytes]
    later: Sequence[bytes]


def run(*, quick: bool = False, rate: int = RATE) -> list[Target]:
    """Measure, print the figures, and return the targets."""
    before = 20.0 if quick else 180.0
    with (
        broker(lasting=True) as kafka,
        application(kafka, "reindex", SHARDS) as (settings, environment),
        run_worker(environment, "w0") as one,
        run_worker(environment, "w1") as other,
    ):
        reader = _Reader(kafka, settings)
        with closing(reader), Program(["bench.reindex", kafka.bootstrap, str(rate)]) as feeder:
            programs = (one, other, feeder)
            reader.listen(before, programs)
            began = time.time()
            command = ["worker.cli", "reindex", "--from-documents"]
            with Program(command, {**environment, **_environment(LATER)}) as reindex:
                reader.until(reindex, programs)
                ended = time.time()
                console.print(reindex.said().strip(), style="dim", markup=False)
            reader.listen(_AFTER_SECONDS, programs)
            feeder.stop()
            written = reader.drain((one, other))
        plan = planned(Cluster(settings.kafka_options()), settings)
    if plan is None or not plan.current.log:
        raise SystemExit("the new fingerprints aren't in use")
    verdicts = sorted(reader.verdicts, key=lambda one: one.sequence)
    handed_over = plan.current.numbered_from << POSITION_BITS
    earlier = [one for one in verdicts if one.sequence < handed_over]
    later = verdicts[len(earlier) :]
    if not earlier or not later:
        raise SystemExit("one of the two indexes has judged nothing")
    timing = Timing(began, min(one.read for one in later), ended)
    plain = Plain(_plainly({}, verdicts), _plainly(LATER, verdicts))
    return _report(
        rate=rate,
        written=written,
        seen=reader.seen,
        verdicts=verdicts,
        earlier=len(earlier),
        timing=timing,
        plain=plain,
    )


def _environment(chosen: Mapping[str, str]) -> dict[str, str]:
    return {"NEARDUP_" + key.upper().replace(".", "__"): value for key, value in chosen.items()}


class _Reader:
    """Notes every verdict that becomes readable.

    Attributes:
        verdicts: of each document, the first one.
        seen: by place in the documents, how often it was published.
    """

    def __init__(self, kafka: KafkaCluster, settings: Settings) -> None:
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


def _plainly(chosen: Mapping[str, str], order: Sequence[Verdict]) -> list[bytes]:
    """Return the matches of documents in their order, judged by one shard and without Kafka."""
    values = list(numbered(texts(max(one.number for one in order) + 1)))
    found: list[bytes] = []
    with (
        tempfile.TemporaryDirectory(prefix="neardup-bench-") as folder,
        OfflineFilter(offline_settings(None, chosen), Path(folder)) as plain,
    ):
        for first in range(0, len(order), _AT_ONCE):
            some = [values[one.number] for one in order[first : first + _AT_ONCE]]
            verdicts = plain.judge([Line(b"", value, len(value)) for value in some])
            found += [verdict.matches for verdict in verdicts]
    return found


def _report(  # noqa: PLR0913 -- all that was found
    *,
    rate: int,
    written: set[bytes],
    seen: Mapping[bytes, int],
    verdicts: Sequence[Verdict],
    earlier: int,
    timing: Timing,
    plain: Plain,
) -> list[Target]:
    seconds = timing.ended - timing.began
    came = sum(timing.began <= one.sent < timing.ended for one in verdicts) / seconds
    found = sum(bool(one.matches) for one in verdicts)
    console.print(
        f"{len(written):,} documents ({source()}), {found:,} of them duplicates, N = {PARTITIONS},"
        f" P = {SHARDS}, two workers; {earlier:,} judged by the earlier index. The first verdict of"
        f" the new one came {timing.first - timing.began:.0f} s after the command, which ended"
        f" after {seconds:.0f} s"
    )
    for name, waits in _waits(verdicts, timing):
        console.print(f"Longest wait {name}: {max(waits, default=0.0):.2f} s")
    console.print(f"The other parameters find other matches for {_different(*plain):,} documents")
    published = [one.matches for one in verdicts]
    targets = [
        ("documents/s that came while it ran", came, 0.99 * rate, True, ",.0f"),
        ("lost", len(written - seen.keys()), 0, False, ",.0f"),
        ("doubled", sum(seen.values()) - len(seen), 0, False, ",.0f"),
        ("judged otherwise before the hand-over",
         _different(published[:earlier], plain.earlier[:earlier]), 0, False, ",.0f"),
        ("judged otherwise after it",
         _different(published[earlier:], plain.later[earlier:]), 0, False, ",.0f"),
        ("longest wait, s", max(one.wait for one in verdicts if one.sent >= timing.began),
         WAIT_SECONDS, False, ".2f"),
    ]  # fmt: skip
    return [
        Target(f"reindex from documents: {what}", value, limit, at_least=at_least, form=form)
        for what, value, limit, at_least, form in targets
    ]


def _different(some: Sequence[bytes], others: Sequence[bytes]) -> int:
    return sum(one != other for one, other in zip(some, others, strict=True))


def _waits(verdicts: Sequence[Verdict], timing: Timing) -> Iterator[tuple[str, list[float]]]:
    """Yield the waits of documents by when they were sent."""
    bounds = [timing.began - 60, timing.began, timing.first - WAIT_SECONDS, timing.ended, 2e10]
    names = ("in the minute before", "while it was built", "from 10 s before the hand-over on",
             "after the command")  # fmt: skip
    for number, name in enumerate(names):
        low, high = bounds[number : number + 2]
        yield name, [one.wait for one in verdicts if low <= one.sent < high]


if __name__ == "__main__":
    feed_steadily(sys.argv[1], numbered(texts(_ENDLESS)), float(sys.argv[2]))
