"""The ends of logs that are not being fetched, and logs that have lost theirs.

A consumer learns a log's end from its fetches. For a partition that is paused, or was never
fetched, it learns nothing, so a `Surveyor` asks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from time import monotonic
from typing import NamedTuple

from confluent_kafka import Consumer, IsolationLevel, KafkaException
from confluent_kafka import TopicPartition as KafkaPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._listoffsets import OffsetSpec  # mypy wants it from its source

from worker.bus import Claim, LogTruncated, TopicPartition, Unanswered
from worker.bus.kafka.config import KafkaOptions
from worker.bus.kafka.error_codes import Means, means
from worker.bus.kafka.errors import passes, refusal, truncation
from worker.bus.kafka.groups import group_client

_LATEST = OffsetSpec.latest()  # type: ignore[no-untyped-call] # confluent-kafka has no types for it
_MARKERS = 100
"""How many offsets at a log's end are checked for holding only markers and aborted records."""
_LOOK_SECONDS = 2.0


class Span(NamedTuple):
    """The range from the next offset to read to the log's end."""

    position: int
    end: int


class Ends:
    """The ends that a member wants, and those that were found; each is replaced as a whole.

    Attributes:
        wanted: by partition, the next offset to read.
        found: by partition, the end of the committed records. If only transaction markers are
            left to read, this is the wanted offset.
        spans: the spans that the last look found.
        empty: the spans in which a look has found only markers.
    """

    def __init__(self) -> None:
        """Begin with nothing wanted."""
        self.wanted: Mapping[TopicPartition, int] = {}
        self.found: Mapping[TopicPartition, int] = {}
        self.spans: Mapping[TopicPartition, Span] = {}
        self.empty: Mapping[TopicPartition, Span] = {}


class Surveyor:
    """Asks the brokers for the ends of logs."""

    def __init__(self, options: KafkaOptions, admin: Callable[[], AdminClient]) -> None:
        """Take the options of a consumer; ``admin`` returns the admin client to ask now."""
        self._options = options
        self._admin = admin

    def look(self, ends: Ends, seconds: float) -> None:
        """Find the wanted ends; a partition without an answer keeps its earlier one."""
        wanted = ends.wanted
        latest = self._latest(wanted, seconds)
        spans = {
            partition: Span(at, latest[partition])
            for partition, at in wanted.items()
            if partition in latest
        }
        empty = {
            partition: span
            for partition, span in ends.empty.items()
            if spans.get(partition) == span
        }
        quiet = {
            partition: span
            for partition, span in spans.items()
            if 0 < span.end - span.position <= _MARKERS
            and ends.spans.get(partition) == span
            and partition not in empty
        }
        empty.update({partition: quiet[partition] for partition in self._without_records(quiet)})
        found = {partition: end for partition, end in ends.found.items() if partition in wanted}
        for partition, span in spans.items():
            found[partition] = span.position if partition in empty else span.end
        ends.spans, ends.empty, ends.found = spans, empty, found

    def _latest(
        self, wanted: Mapping[TopicPartition, int], seconds: float
    ) -> dict[TopicPartition, int]:
        if not wanted:
            return {}
        admin = self._admin()
        asked = admin.list_offsets(
            dict.fromkeys((KafkaPartition(*partition) for partition in wanted), _LATEST),
            isolation_level=IsolationLevel.READ_COMMITTED,
            request_timeout=seconds,
        )
        latest = {}
        failed = False
        for partition, future in asked.items():
            try:
                offset = int(future.result(seconds + 1).offset)
            except (KafkaException, TimeoutError):
                failed = True
                continue
            if offset >= 0:
                latest[TopicPartition(partition.topic, partition.partition)] = offset
        if failed:  # Otherwise librdkafka keeps asking a leader that is gone.
            admin.list_topics(timeout=seconds)
        return latest

    def _without_records(self, spans: Mapping[TopicPartition, Span]) -> set[TopicPartition]:
        """Return the partitions in which only markers are left to read.

        A marker takes an offset as a record does, so only a fetch can tell.
        """
        if not spans:
            return set()
        config = {
            **self._options.reader_config("ends"),
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 100,
            "queued.min.messages": 1,
            "queued.max.messages.kbytes": 1 << 10,
        }
        left = dict(spans)
        empty = set()
        with closing(Consumer(config)) as consumer:
            consumer.assign(
                [KafkaPartition(*partition, s.position) for partition, s in spans.items()]
            )
            deadline = monotonic() + _LOOK_SECONDS
            while left and monotonic() < deadline:
                for message in consumer.consume(50, 0.1):
                    partition = TopicPartition(message.topic() or "", message.partition() or 0)
                    error = message.error()
                    ended = error is not None and means(error, Means.END)
                    if left.pop(partition, None) is not None and ended:
                        empty.add(partition)
        return empty


_WAIT_SECONDS = 0.1
_FETCH: Mapping[str, object] = {
    "enable.partition.eof": True,
    "fetch.message.max.bytes": 1,  # One batch of each log, if it is not its end.
    "fetch.wait.max.ms": 10,
}


def truncated_logs(
    options: KafkaOptions, group: str, claims: Mapping[TopicPartition, Claim], seconds: float
) -> dict[TopicPartition, LogTruncated]:
    """Return the logs that contradict what is claimed of them.

    librdkafka compares the leader epochs before it fetches, with the right to describe the topic.
    So a record, the end of the log or a missing right to read mean that a log does not contradict.
    ``group`` only names the client.

    Raises:
        Unanswered: no answer about one of them in time.
        BusError: the brokers refuse.
    """
    found: dict[TopicPartition, LogTruncated] = {}
    left = set(claims)
    deadline = monotonic() + seconds
    with group_client(options, group, **_FETCH) as consumer:
        consumer.assign(
            [
                KafkaPartition(*partition, claim.offset, "", claim.epoch)
                for partition, claim in claims.items()
            ]
        )
        while left:
            if monotonic() > deadline:
                topic, number = min(left)
                raise Unanswered(
                    f"{topic}[{number}] ({len(left)} of {len(claims)} logs): its leader did not"
                    f" compare leader epochs within {seconds:.0f} s"
                )
            for message in consumer.consume(len(claims), _WAIT_SECONDS):
                partition = TopicPartition(message.topic() or "", message.partition() or 0)
                error = message.error()
                if error is not None and not partition.topic and not passes(error):
                    raise refusal(error, f"group {group}", f"Describe on group {group}")
                if partition not in left or (
                    error is not None and passes(error) and not means(error, Means.END)
                ):
                    continue
                left.remove(partition)
                consumer.incremental_unassign([KafkaPartition(*partition)])
                truncated = None if error is None else truncation(error, partition)
                if truncated is not None:
                    found[partition] = truncated
    return found
