"""The lag of stages: the records between a group's offsets and the ends of its logs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Executor
from contextlib import ExitStack, closing
from time import monotonic, time
from typing import NamedTuple

from worker.bus import LogReader, OffsetOutOfRange, PartitionUnreadable, Record, TopicPartition
from worker.closing import Closing
from worker.topology import STAGES, Topology

_OLDEST_SECONDS = 3.0
_OLDEST_PARTITIONS = 32
_NOTHING = -1
_WAIT_SECONDS = 0.1
_RECORDS = 50
_BYTES = 64 << 10
SMALL_FETCHES: dict[str, int] = {
    "fetch.wait.max.ms": 100,
    "fetch.message.max.bytes": _BYTES,
    "queued.min.messages": 1,
    "queued.max.messages.kbytes": 1 << 10,
}
"""The fetch settings for a `LagMeter`'s reader, which needs one record of each partition."""

Span = tuple[int, int]
"""A committed offset, and the end of the log."""
Ranges = Callable[[Collection[TopicPartition]], Mapping[TopicPartition, tuple[int, int]]]
"""Returns the start of some logs, and the end of their committed records."""


class Lag(NamedTuple):
    """A stage's lag: the number of records, and the age of the oldest unread one in seconds."""

    records: int
    seconds: float | None


class LagMeter:
    """Counts the records that a stage hasn't read, and finds the time of the oldest.

    A log that is written in transactions ends with a marker, which is never delivered. Only a
    fetch can distinguish a marker from an unread record.
    """

    def __init__(self, reader: LogReader) -> None:
        """Take a reader of the stage's logs, for the exclusive use of this meter."""
        self._reader = reader
        self._known: dict[tuple[TopicPartition, int, int], int] = {}

    def measure(self, spans: dict[TopicPartition, Span]) -> Lag:
        """Return the stage's lag.

        Raises:
            BusError: the logs can't be read.
        """
        behind = {partition: end - at for partition, (at, end) in spans.items() if end > at}
        most = sorted(behind, key=lambda partition: -behind[partition])[:_OLDEST_PARTITIONS]
        self._look({partition: spans[partition] for partition in most})
        stamps = {partition: stamp for (partition, _, _), stamp in self._known.items()}
        for partition, stamp in stamps.items():
            if stamp == _NOTHING:
                behind[partition] = 0
        times = [stamp for stamp in stamps.values() if stamp != _NOTHING]
        seconds = max(0.0, time() - min(times) / 1000) if times else None
        return Lag(sum(behind.values()), seconds)

    def _look(self, spans: dict[TopicPartition, Span]) -> None:
        """Find the timestamp of each partition's next record, or that there is none."""
        before, self._known = self._known, {}
        unknown = {}
        for partition, (at, end) in spans.items():
            found = next((s for (p, o, _), s in before.items() if (p, o) == (partition, at)), None)
            if found is None or (found == _NOTHING and (partition, at, end) not in before):
                unknown[partition] = (at, end)
                self._reader.start(partition, at)
            else:
                self._known[partition, at, end] = found
        deadline = monotonic() + _OLDEST_SECONDS
        while unknown and monotonic() < deadline:
            for record in self._next(unknown):
                partition = TopicPartition(record.topic, record.partition)
                self._settle(unknown, partition, record.timestamp)
            for partition, (_, end) in list(unknown.items()):
                if (self._reader.position(partition) or 0) >= end:
                    self._settle(unknown, partition, _NOTHING)
        for partition in unknown:
            self._reader.stop(partition)

    def _next(self, unknown: dict[TopicPartition, Span]) -> list[Record]:
        """Return some records; stop an unreadable partition, whose timestamp stays unknown."""
        try:
            return list(self._reader.read(_RECORDS, _BYTES, _WAIT_SECONDS))
        except (OffsetOutOfRange, PartitionUnreadable) as error:
            unknown.pop(error.partition, None)
            self._reader.stop(error.partition)
            return []

    def _settle(
        self, unknown: dict[TopicPartition, Span], partition: TopicPartition, stamp: int
    ) -> None:
        if partition in unknown:
            self._known[partition, *unknown.pop(partition)] = stamp
            self._reader.stop(partition)


class Look(NamedTuple):
    """The groups of all stages at one moment, by stage.

    Attributes:
        committed: the offsets that each group has committed.
        read: the position in each log; if several shards read one, that of the slowest.
        lag: the lag.
    """

    committed: dict[str, dict[TopicPartition, int]]
    read: dict[str, dict[TopicPartition, int]]
    lag: dict[str, Lag]


class StageLags(Closing):
    """Measures the lag of all stages, with a reader for each. Belongs to one thread."""

    def __init__(
        self, topology: Topology, connect: Callable[[str, Collection[str]], LogReader]
    ) -> None:
        """Take where to look; ``connect`` returns a reader of some topics in a group's name."""
        self._topology = topology
        self._inputs = {stage: _inputs_of(topology, stage) for stage in STAGES}
        with ExitStack() as stack:
            self._readers = {
                stage: stack.enter_context(
                    closing(connect(topology.group(stage), self._logs(stage)))
                )
                for stage in STAGES
            }
            self._meters = {stage: LagMeter(reader) for stage, reader in self._readers.items()}
            self._open = stack.pop_all()

    def _logs(self, stage: str) -> set[str]:
        log_of = self._topology.log_of
        return {log_of(TopicPartition(topic, 0)).topic for topic in self._inputs[stage]}

    def look(self, ranges: Ranges, pool: Executor | None = None) -> Look:
        """Return the present state; the threads of a ``pool`` measure the stages at once.

        Raises:
            BusError: the groups or the logs can't be read.
        """
        committed = {stage: self._committed(stage) for stage in reversed(STAGES)}
        read = {stage: self._read(committed[stage]) for stage in STAGES}
        found = ranges({place for stage in STAGES for place in read[stage]})
        spans = [
            {
                place: (max(found[place][0], at), found[place][1])
                for place, at in read[stage].items()
            }
            for stage in STAGES
        ]
        measures = [self._meters[stage].measure for stage in STAGES]
        each = map if pool is None else pool.map
        lags = each(lambda measure, span: measure(span), measures, spans)
        return Look(committed, read, dict(zip(STAGES, lags, strict=True)))

    def _committed(self, stage: str) -> dict[TopicPartition, int]:
        counts = self._inputs[stage].items()
        places = [TopicPartition(topic, n) for topic, count in counts for n in range(count)]
        found = self._readers[stage].committed(places)
        return {place: at or 0 for place, at in found.items()}

    def _read(self, committed: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        found: dict[TopicPartition, int] = {}
        for place, at in committed.items():
            log = self._topology.log_of(place)
            found[log] = min(at, found.get(log, at))
        return found

    def close(self) -> None:
        """Close the readers."""
        self._open.close()


def _inputs_of(topology: Topology, stage: str) -> dict[str, int]:
    """Return the inputs that count as a stage's lag; of route's, only the documents."""
    return {
        topic: partitions
        for topic, partitions in topology.inputs(stage).items()
        if stage != "route" or topic == topology.documents
    }
