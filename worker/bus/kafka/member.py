"""A stage's seat in a consumer group on Kafka."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Mapping
from contextlib import suppress
from time import monotonic
from typing import cast

from confluent_kafka import Consumer, KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as KafkaPartition

from worker.bus.kafka.assignment import Assignment
from worker.bus.kafka.burst import burst
from worker.bus.kafka.config import KafkaOptions
from worker.bus.kafka.errors import (
    PASSING,
    cause,
    consequence,
    damage,
    fatal,
    passes,
    retrying,
    underlying,
)
from worker.bus.kafka.listener import LogListener
from worker.bus.kafka.pending import PendingErrors
from worker.bus.kafka.producer import TransactionalProducer, transactional_id
from worker.bus.kafka.records import record_of
from worker.bus.kafka.watcher import Watched, Watcher
from worker.bus.port import (
    Aborted,
    BusError,
    Fenced,
    OffsetOutOfRange,
    OutcomeUnknown,
    Outgoing,
    Polled,
    Record,
    TopicPartition,
)
from worker.closing import Closing

__all__ = ["KafkaMember"]

_log = logging.getLogger(__name__)

_HEARD_EVENTS = 100_000
_CLOSE_SECONDS = 5.0
_RECENT_SECONDS = 60.0
_UNASSIGNED_SECONDS = 10.0
_UNSEATED_WAIT_SECONDS = 0.02
_HARMLESS = ("nodename change", "_DESTROY", "Local: Broker handle destroyed")
"""Why librdkafka itself ends a connection: its coordinator is elsewhere; the client is closed."""


class KafkaMember(Closing):
    """See `worker.bus.port.Member`."""

    def __init__(  # noqa: PLR0913 -- what a seat is made of
        self,
        options: KafkaOptions,
        group: str,
        instance: str,
        watched: Watched,
        watcher: Watcher,
        *,
        compress: bool = True,
    ) -> None:
        """Subscribe to what is watched; the group is joined by the first polls.

        Not to the topic whose offsets are committed for the others.
        """
        self._options = options
        self._group = group
        self._identities = watched.identities
        self._topics = sorted(self._identities.topics.difference((self._identities.of,)))
        self._instance = instance
        self._watched = watched
        self._watcher = watcher
        self._producer = TransactionalProducer(
            options,
            transactional_id(group, instance),
            self._topics[0],
            compress=compress,
            troubled=self._on_log,
        )
        self._assignment = Assignment(group, watched.ends, eager=self._eager)
        self._member_id = ""
        self._errors = PendingErrors()
        self._unreleased_since: float | None = None
        self._troubled_at: float | None = None
        self._told = False
        self._consumer = self._subscribe()
        watcher.watch(watched)

    def _subscribe(self) -> Consumer:
        config = self._options.consuming(self._group, self._instance)
        self._subscribed_at = monotonic()
        listener = LogListener(
            config["logger"], troubled=self._on_log, informed=self._identities.hear
        )
        consumer = Consumer({**config, "error_cb": self._on_error, "logger": listener})
        self._assignment.subscribe(consumer, self._topics)
        return consumer

    def _on_error(self, error: KafkaError) -> None:
        if error.code() in PASSING:
            self._troubled_at = monotonic()

    def _on_log(self, what: str) -> None:
        if not any(harmless in what for harmless in _HARMLESS):
            self._troubled_at = monotonic()

    @property
    def _eager(self) -> bool:
        return self._options.protocol == "classic"

    def poll(self, limit: int, max_bytes: int, timeout: float) -> Polled:
        """See the port."""
        self._identities.check()
        for message in self._errors.take():
            self._judge(cast("KafkaError", message.error()), message)
        # librdkafka waits to the end, though what comes is an assignment, and no records.
        wait = min(timeout, _UNSEATED_WAIT_SECONDS) if self._assignment.revoked else timeout
        records = burst(self._consume, self._sift, limit, max_bytes, wait)
        if self._assignment.changed:
            return self._report()
        if self._assignment.revoked:
            return self._unassigned()
        self._assignment.advance(
            {TopicPartition(found.topic, found.partition): found.offset + 1 for found in records}
        )
        return Polled(records)

    def _unassigned(self) -> Polled:
        """Say once that there is nothing to do: under KIP-848 nobody calls a member to say so."""
        waited = monotonic() - max(self._subscribed_at, self._troubled_at or 0)
        if self._eager or self._told or waited < _UNASSIGNED_SECONDS:
            return Polled(())
        self._told = True
        return Polled((), frozenset())

    def _report(self) -> Polled:
        """Hand out the new assignment, with a producer that has ended its ghost's transaction.

        Whoever has nothing to do needs none: it would keep its threads and connections.
        """
        assigned = self._assignment.take()
        self._told = True
        self._unreleased_since = None
        self._errors.clear()
        self._member_id = self._consumer.memberid() or ""
        if not assigned:
            self._producer.close()
        elif not self._producer.ready:
            self._producer.renew()
        return Polled((), assigned)

    def _consume(self, limit: int, wait: float) -> list[Message]:
        """Take messages; none once a topic or the assignment is not what it was."""
        try:
            messages = self._consumer.consume(limit, wait)
        except KafkaException as error:
            self._judge(cause(error), None)
            messages = []
        self._identities.check()
        return [] if self._assignment.changed else messages

    def _sift(self, messages: list[Message]) -> list[Record]:
        """Return the records that may be handed out; keep what is wrong.

        It is judged by a later poll: to raise now would lose the records before it.
        """
        broken = self._errors.broken
        records = []
        for message in messages:
            if message.error() is not None:
                self._errors.add(message)
            elif not broken or (message.topic(), message.partition()) not in broken:
                records.append(record_of(message))
        return records

    def _judge(self, error: KafkaError, message: Message | None) -> None:
        """Let pass what will pass; raise the rest."""
        code = underlying(error)
        if message is not None and message.topic():
            partition = TopicPartition(message.topic() or "", message.partition() or 0)
            offset = message.offset() or 0
            damaged = damage(error, partition, offset)
            if damaged is not None:
                raise damaged
            if code == KafkaError._AUTO_OFFSET_RESET:  # noqa: SLF001 -- librdkafka's own code
                self._out_of_range(partition, offset)
                return
        if code == KafkaError.UNRELEASED_INSTANCE_ID:
            self._await_release(error)
        elif code == KafkaError.FENCED_INSTANCE_ID and self._by_itself():
            self._rejoin()
        elif code == KafkaError.FENCED_INSTANCE_ID or error.fatal():
            raise fatal(error, self._group)
        elif passes(error):
            _log.info("group %s: %s", self._group, error.str())
        else:
            raise consequence(error, f"group {self._group}")

    def _out_of_range(self, partition: TopicPartition, refused: int) -> None:
        """Raise, unless the refused offset is not the one that is wanted.

        librdkafka may have asked for the offset of a new assignment before the partition was
        paused, and a log that has been trimmed has that no more. It says so later, perhaps after
        the partition was sought elsewhere, and may have stopped it.
        """
        position = self._assignment.position(partition)
        if position is None:
            return
        low, high = self.watermarks(partition)
        if not low <= position <= high:
            raise OffsetOutOfRange(partition, position, low, high)
        if refused == position:
            msg = (
                f"{partition.topic}[{partition.partition}]: the broker had no offset {position},"
                f" and has it now: its log is [{low}, {high}). The log has lost its end and grown"
                " again, so other records may stand there than those that were read before. See"
                " docs/runbook.md, 'A log that lost its end'"
            )
            raise BusError(msg)
        self._assignment.restart({partition})

    def _await_release(self, error: KafkaError) -> None:
        """Rejoin: under KIP-848 a killed member's seat is free only when its session ends."""
        now = monotonic()
        if self._unreleased_since is None:
            self._unreleased_since = now
            _log.info("group %s: the seat of %s is taken; waiting", self._group, self._instance)
        elif now - self._unreleased_since > 2 * self._options.request_timeout_seconds:
            raise fatal(error, self._group)
        threading.Event().wait(1.0)
        self._rejoin()

    def _by_itself(self) -> bool:
        """Tell whether this member may have been fenced by its own earlier request to join.

        When a broker dies, the answer to such a request may be lost with it: the group knows
        the member under a name that it was never told, and takes it for another's. So each
        trouble with brokers is good for one more attempt. Of two workers under one name, both
        may make one; then the older ends.
        """
        troubled, self._troubled_at = self._troubled_at, None
        recent = troubled is not None and monotonic() - troubled < _RECENT_SECONDS
        if recent:
            _log.warning(
                "group %s: fenced after trouble with brokers, most likely by this member's own"
                " request; joining again",
                self._group,
            )
        return recent

    def _rejoin(self) -> None:
        self._close_consumer()
        self._errors.clear()
        self._consumer = self._subscribe()

    @property
    def seated(self) -> bool:
        """See the port."""
        return not self._assignment.revoked

    def commit(self, records: Iterable[Outgoing], offsets: Mapping[TopicPartition, int]) -> None:
        """See the port."""
        self._identities.check()
        # Without a member id the broker might take the offsets for those of a stand-alone
        # consumer, and check no generation.
        if self._assignment.revoked or self._consumer.memberid() != self._member_id:
            msg = "the group has taken this member's partitions away"
            raise Aborted(msg)
        fenced = self._committed(records, offsets)
        # Not where it is caught, and without it: a KafkaError that is raised there would keep it
        # for good, and a frame that it has passed, if it were named there, until the collector
        # comes by; with both clients.
        if fenced is None:
            return
        self._hear()
        if not self._by_itself():
            raise Fenced(fenced)
        self._rejoin()
        raise OutcomeUnknown(fenced)

    def _committed(
        self, records: Iterable[Outgoing], offsets: Mapping[TopicPartition, int]
    ) -> str | None:
        """Commit, unless the member is fenced; then say how."""
        try:
            notes = {topic: self._identities.metadata(topic) for topic, _ in offsets}
            self._producer.commit(records, offsets, self._consumer, notes)
        except Fenced as error:
            return str(error)
        return None

    def _hear(self) -> None:
        """Take in what librdkafka has to tell by now; what it has fetched, nobody wants any more.

        A member that learns from a commit that it is fenced has not heard yet what came before.
        """
        with suppress(KafkaException):  # That it is fenced, most likely.
            self._consumer.consume(_HEARD_EVENTS, 0)

    def renew(self) -> None:
        """See the port."""
        self._producer.renew()

    def committed(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int | None]:
        """See the port."""
        asked = [KafkaPartition(*partition) for partition in partitions]
        self._identities.ask({place.topic for place in asked})

        def ask(left: float) -> list[KafkaPartition]:
            found = self._consumer.committed(asked, left)
            for partition in found:
                if partition.error is not None:
                    raise KafkaException(partition.error)
            return found

        try:
            seconds = self._options.request_timeout_seconds
            found = retrying(ask, seconds, "committed offsets", asking=True)
        except KafkaException as error:
            msg = f"group {self._group}: no committed offsets: {cause(error).str()}"
            raise BusError(msg) from error
        for place in found:
            self._identities.check_offset(place.topic, place.metadata)
        offsets = {
            TopicPartition(f.topic, f.partition): f.offset if f.offset >= 0 else None for f in found
        }
        if self._identities.of is None:
            self._assignment.note_committed(offsets)
        return offsets

    def positions(self) -> dict[TopicPartition, int]:
        """See the port."""
        # librdkafka's own is past records that were not handed out, where an error came first.
        stopped = self._errors.places
        found = self._assignment.positions()
        return {place: offset for place, offset in found.items() if place not in stopped}

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """See the port; what has just been taken away is left alone."""
        self._assignment.seek(partition, offset)

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        """See the port."""
        self._assignment.pause(partitions)

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        """See the port."""
        self._assignment.resume(partitions)

    def watermarks(self, partition: TopicPartition) -> tuple[int, int]:
        """See the port."""
        seconds = self._options.request_timeout_seconds
        try:
            low, high = retrying(
                lambda left: self._consumer.get_watermark_offsets(
                    KafkaPartition(*partition), left, cached=False
                ),
                seconds,
                "watermarks",
                asking=True,
            )
        except KafkaException as error:
            msg = f"{partition.topic}[{partition.partition}]: no watermarks: {cause(error).str()}"
            raise BusError(msg) from error
        return low, high

    def lag(self) -> dict[TopicPartition, int]:
        """See the port."""
        return self._assignment.lag()

    def close(self, *, leave: bool = False) -> None:
        """See the port; a static member that leaves for good is let go by its session's end."""
        del leave
        self._watcher.leave(self._watched)
        self._producer.close()
        self._close_consumer()

    def _close_consumer(self) -> None:
        """Close with a deadline: a librdkafka consumer's close may hang with its brokers."""
        closing = threading.Thread(target=self._consumer.close, daemon=True)
        closing.start()
        closing.join(_CLOSE_SECONDS)
        if closing.is_alive():
            _log.warning("group %s: the consumer did not close in time; left behind", self._group)
