"""Reads a Kafka cluster outside a group."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from time import monotonic, sleep
from typing import TypeVar, cast

from confluent_kafka import Consumer, KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as KafkaPartition

from worker.bus import (
    BusError,
    Claim,
    LogTruncated,
    OffsetOutOfRange,
    PartitionUnreadable,
    Record,
    TopicPartition,
    Unanswered,
)
from worker.bus.kafka.client_reports import (
    FORGOTTEN,
    KnownBrokers,
    LogListener,
    Queues,
    reaches_brokers,
    telling,
)
from worker.bus.kafka.config import KafkaOptions
from worker.bus.kafka.error_codes import Means, means
from worker.bus.kafka.errors import asking, cause, damage, passes, refusal, truncation
from worker.bus.kafka.log_watcher import Watched, Watcher
from worker.bus.kafka.messages import burst, record_of

_log = logging.getLogger(__name__)

T = TypeVar("T")

_CLOSE_SECONDS = 5.0
_PAUSE_SECONDS = 0.001


class KafkaReader:
    """See `worker.bus.port.LogReader`.

    A consumer with the group's id that never subscribes: it can look up the group's offsets, and
    its partitions are assigned manually.
    """

    def __init__(  # noqa: PLR0913 -- the parts of a reader
        self,
        options: KafkaOptions,
        group: str,
        watched: Watched,
        watcher: Watcher,
        *,
        single: bool = False,
        queues: Queues | None = None,
    ) -> None:
        """Prepare to read the watched topics; ``queues`` are told of what was fetched.

        ``single``: fetch one batch at a time, and the next one soon after that was read.
        """
        self._options = options
        self._single = single
        self._group = group
        self._watched = watched
        self._identities, self._ends = watched
        self._watcher = watcher
        self._positions: dict[tuple[str, int], int] = {}
        self._epochs: dict[tuple[str, int], int] = {}
        self._claims: dict[tuple[str, int], Claim] = {}
        self._contradicted: LogTruncated | None = None
        self._errors: dict[tuple[str, int], Message] = {}
        self._ended: dict[tuple[str, int], int] = {}
        self._error: KafkaError | None = None
        self._queues = queues
        self._queue = None if queues is None else queues.consumer()
        self._consumer = self._connect()
        watcher.watch(watched)

    def _connect(self) -> Consumer:
        config = self._options.reader_config(self._group, single=self._single)
        self._brokers = KnownBrokers()
        if self._queue is not None:  # Then it is read now and then, and hears its statistics.
            config = telling(config, self._brokers.hear, self._queue.hear)
        listener = LogListener(config["logger"], informed=self._identities.hear)
        return Consumer({**config, "enable.partition.eof": True, "logger": listener})

    def _connect_anew(self) -> None:
        """Go on with another client where this one is."""
        _log.warning(FORGOTTEN, self._group)
        for topic, number in self._positions:
            partition = TopicPartition(topic, number)
            self._positions[partition] = self.position(partition) or 0
            self.epoch(partition)
        self._close_consumer()
        self._errors.clear()
        self._ended.clear()
        self._consumer = self._connect()
        partitions = [
            KafkaPartition(*partition, offset, "", self._epochs.get(partition, -1))
            for partition, offset in self._positions.items()
        ]
        if partitions:
            self._consumer.incremental_assign(partitions)

    def start(self, partition: TopicPartition, offset: int, claim: Claim | None = None) -> None:
        """See the port."""
        self._identities.know(partition.topic)
        runs = partition in self._positions
        self._epochs.pop(partition, None)
        self._claims.pop(partition, None)
        if self._contradicted is not None and self._contradicted.partition == partition:
            self._contradicted = None
        if claim is not None and claim.offset == offset:
            self._epochs[partition] = claim.epoch  # librdkafka compares it with the log's.
        elif claim is not None:
            self._claims[partition] = claim
        self._errors.pop(partition, None)
        self._ended.pop(partition, None)
        try:
            # A seek does not end the time for which the next batch is left alone.
            if not runs or self._single or not self._seek(partition, offset):
                self._restart(partition, offset, runs=runs)
        except KafkaException as error:
            raise self._failed(error) from error
        self._positions[partition] = offset

    def _seek(self, partition: TopicPartition, offset: int) -> bool:
        """Seek a running partition, which is cheap; return whether that worked.

        librdkafka is already fetching it, so no thread has to be woken. A partition that
        librdkafka has stopped, as it does on an offset out of range, can't be sought.
        """
        try:
            self._consumer.seek(self._placed(partition, offset))
        except KafkaException as error:
            if not means(cause(error), Means.STOPPED):
                raise
            return False
        return True

    def _placed(self, partition: TopicPartition, offset: int) -> KafkaPartition:
        return KafkaPartition(*partition, offset, "", self._epochs.get(partition, -1))

    def _restart(self, partition: TopicPartition, offset: int, *, runs: bool) -> None:
        """Assign a partition to librdkafka again."""
        place = self._placed(partition, offset)
        if runs:
            self._consumer.incremental_unassign([place])
        self._consumer.incremental_assign([place])
        # librdkafka reports the old position until its own thread has stopped the old fetch.
        deadline = monotonic() + self._options.request_timeout_seconds
        claimed = partition in self._epochs
        # It compares leader epochs on a seek, and not on an assignment whose leader it knows.
        while self._passed(partition) >= 0 or (claimed and not self._seek(partition, offset)):
            if monotonic() > deadline:
                msg = f"{partition.topic}[{partition.partition}]: librdkafka does not release it"
                raise BusError(msg)
            sleep(_PAUSE_SECONDS)

    def stop(self, partition: TopicPartition) -> None:
        """See the port."""
        self._errors.pop(partition, None)
        self._ended.pop(partition, None)
        self._watch_end(partition, None)
        self._epochs.pop(partition, None)
        self._claims.pop(partition, None)
        if self._positions.pop(partition, None) is None:
            return
        try:
            self._consumer.incremental_unassign([KafkaPartition(*partition)])
        except KafkaException as error:
            raise self._failed(error) from error

    def read(self, limit: int, max_bytes: int, timeout: float) -> list[Record]:
        """See the port."""
        self._identities.check()
        if self._brokers.lost:
            self._connect_anew()
        self._raise_kept()
        found = burst(self._consume, self._sift, limit, max_bytes, timeout)
        records = list(map(record_of, found))
        if self._claims:
            self._check_claims(records)
        self._positions.update(
            {(found.topic, found.partition): found.offset + 1 for found in records}
        )
        if not records:
            self._raise_kept()
        return records

    def _check_claims(self, records: Iterable[Record]) -> None:
        """Raise, now and later, if the log contradicts a claim; forget those that it confirms."""
        if self._contradicted is not None:
            raise self._contradicted
        for record in records:
            partition = TopicPartition(record.topic, record.partition)
            claim = self._claims.get(partition)
            if claim is not None and record.offset >= claim.offset:
                del self._claims[partition]
            elif claim is not None and record.leader_epoch > claim.epoch:
                self._contradicted = LogTruncated(partition, claim, record.offset)
                raise self._contradicted

    def _consume(self, limit: int, wait: float) -> list[Message]:
        try:
            messages = self._consumer.consume(limit, wait)
        except KafkaException as error:
            raise self._failed(error) from error
        self._identities.check()
        return messages

    def _sift(self, messages: list[Message]) -> list[Message]:
        """Return those to deliver; keep the errors.

        A record that follows an error is left out: librdkafka continues after records whose
        checksum is wrong. So is a record from before the partition was restarted.
        """
        delivered = []
        for message in messages:
            if message.error() is not None:
                self._keep(message)
                continue
            partition = (message.topic() or "", message.partition() or 0)
            offset = message.offset() or 0
            position = self._positions.get(partition)
            if position is not None and offset >= position and partition not in self._errors:
                delivered.append(message)
        return delivered

    def _keep(self, message: Message) -> None:
        """Keep an error until everything that was read before it has been delivered."""
        partition = TopicPartition(message.topic() or "", message.partition() or 0)
        wrong = cast("KafkaError", message.error())
        if means(wrong, Means.END):
            self._ended[partition] = message.offset() or 0
            return
        if passes(wrong):
            return
        if partition in self._positions:
            self._errors.setdefault(partition, message)
        elif not partition.topic:  # Errors of stopped partitions are ignored.
            self._error = self._error or wrong

    def _raise_kept(self) -> None:
        """Raise one of the kept errors, if there are any."""
        if self._error is not None:
            wrong, self._error = self._error, None
            group = f"group {self._group}"
            raise refusal(wrong, group, f"Describe on {group}")
        for (topic, partition), message in list(self._errors.items()):
            place = TopicPartition(topic, partition)
            wrong = cast("KafkaError", message.error())
            truncated = truncation(wrong, place)
            if truncated is not None:
                raise truncated
            if means(wrong, Means.OUT_OF_RANGE):
                self._out_of_range(place, message.offset())
            else:
                # An error is at the start of its batch, in which the position may lie.
                position = max(self._positions[place], message.offset() or 0)
                if means(wrong, Means.DENIED):
                    raise refusal(wrong, f"group {self._group}", f"Read on topic {topic}")
                raise damage(wrong, place, position, self._options.unpacked) or PartitionUnreadable(
                    place, position, wrong.str()
                )

    def _out_of_range(self, partition: TopicPartition, refused: int | None) -> None:
        """Raise if the position is out of range; ignore the refusal of an earlier offset.

        librdkafka does not version this error, so it may come after the partition was started
        elsewhere. librdkafka has then stopped the partition, so this restarts it.
        """
        position = self._positions[partition]
        low, high = self.watermarks(partition)
        if refused == position or not low <= position <= high:
            raise OffsetOutOfRange(partition, position, low, high)
        epoch = self.epoch(partition)
        self.start(partition, position, None if epoch is None else Claim(position, epoch))

    def position(self, partition: TopicPartition) -> int | None:
        """See the port."""
        own = self._positions.get(partition)
        # After an error, librdkafka's own position is past records that were not delivered.
        if own is None or partition in self._errors:
            return own
        return max(own, self._passed(partition), self._ended.get(partition, 0))

    def _passed(self, partition: TopicPartition) -> int:
        """Return librdkafka's own position; negative if it has delivered nothing since the start.

        It passes markers and aborted records in log order.
        """
        (place,) = self._consumer.position([KafkaPartition(*partition)])
        return place.offset

    def epoch(self, partition: TopicPartition) -> int | None:
        """See the port."""
        (found,) = self._consumer.position([KafkaPartition(*partition)])
        if found.leader_epoch is not None and partition in self._positions:
            known = self._epochs.get(partition, -1)
            self._epochs[partition] = max(found.leader_epoch, known)
        return self._epochs.get(partition)

    def end(self, partition: TopicPartition) -> int | None:
        """See the port."""
        position = self.position(partition)
        if position is None:
            self._watch_end(partition, 0)
            return self._ends.found.get(partition)
        # The cached watermark also counts records of open transactions. The end-of-partition event
        # is about committed records, and comes once: until a record comes, the end stays there.
        if self._ended.get(partition) == position:
            self._watch_end(partition, None)
            return position
        if self._passed(partition) >= 0:
            self._watch_end(partition, None)
            _, high = self._consumer.get_watermark_offsets(KafkaPartition(*partition), cached=True)
            return max(high, position)
        self._watch_end(partition, position)
        return self._ends.found.get(partition)

    def _watch_end(self, partition: TopicPartition, position: int | None) -> None:
        """Ask the watcher for a partition's end; with None, stop asking."""
        wanted = self._ends.wanted
        if wanted.get(partition) != position:
            others = {place: at for place, at in wanted.items() if place != partition}
            self._ends.wanted = others if position is None else {**others, partition: position}

    def committed(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int | None]:
        """See the port."""
        asked = [KafkaPartition(*partition) for partition in partitions]
        found = self._asking(lambda left: self._consumer.committed(asked, left))
        offsets = {}
        for place in found:
            if place.error is not None:
                raise BusError(f"group {self._group}: {place.error.str()}")
            offset = place.offset if place.offset >= 0 else None
            offsets[TopicPartition(place.topic, place.partition)] = offset
        return offsets

    def watermarks(self, partition: TopicPartition) -> tuple[int, int]:
        """See the port."""
        low, high = self._asking(
            lambda left: self._consumer.get_watermark_offsets(
                KafkaPartition(*partition), left, cached=False
            )
        )
        return low, high

    def _asking(self, call: Callable[[float], T]) -> T:
        """Ask, and in the second half of the time with another client if this one is cut off."""
        half, doing = self._options.request_timeout_seconds / 2, f"group {self._group}"
        with suppress(Unanswered):
            return asking(call, half, doing)
        if not reaches_brokers(self._consumer, min(self._identities.topics)):
            self._connect_anew()
        return asking(call, half, doing)

    def _failed(self, error: KafkaException) -> BusError:
        return BusError(f"group {self._group}: {cause(error).str()}")

    def close(self) -> None:
        """See the port."""
        self._watcher.leave(self._watched)
        if self._queues is not None:
            self._queues.leave(self._queue)
        self._close_consumer()

    def _close_consumer(self) -> None:
        """Close with a deadline: a librdkafka consumer's close may hang if its brokers do."""
        closing = threading.Thread(target=self._consumer.close, daemon=True)
        closing.start()
        closing.join(_CLOSE_SECONDS)
