"""A stage's seat in a consumer group on Kafka."""

from __future__ import annotations

import logging
import secrets
import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import count
from operator import methodcaller
from time import monotonic
from typing import TypeVar, cast

from confluent_kafka import Consumer, KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as KafkaPartition

from worker.bus import (
    Aborted,
    AnyOutgoing,
    BusError,
    Claim,
    Effect,
    Fenced,
    LogReader,
    OffsetOutOfRange,
    OutcomeUnknown,
    Polled,
    TopicPartition,
    Unanswered,
    claimed,
)
from worker.bus.kafka.assignment import Assignment
from worker.bus.kafka.client_reports import (
    FORGOTTEN,
    KnownBrokers,
    LogListener,
    Queues,
    reaches_brokers,
    telling,
)
from worker.bus.kafka.config import KafkaOptions
from worker.bus.kafka.error_codes import Means, means, underlying
from worker.bus.kafka.errors import (
    PendingErrors,
    asking,
    cause,
    damage,
    fatal,
    passes,
    refusal,
    truncation,
)
from worker.bus.kafka.groups import LONGEST_SESSION_SECONDS
from worker.bus.kafka.identities import offset_in, transaction_in
from worker.bus.kafka.log_watcher import Watched, Watcher
from worker.bus.kafka.messages import batches_of, burst
from worker.bus.kafka.producer import GroupOffsets, TransactionalProducer, transactional_id
from worker.bus.records import NO_EPOCHS

_log = logging.getLogger(__name__)

T = TypeVar("T")

_error = methodcaller("error")

_DRAINED_EVENTS = 100_000
_CLOSE_SECONDS = 5.0
_RECENT_SECONDS = 60.0
_UNASSIGNED_SECONDS = 10.0
_UNSEATED_WAIT_SECONDS = 0.02
_HARMLESS = ("nodename change", "_DESTROY", "Local: Broker handle destroyed")
"""Why librdkafka itself closes a connection: the coordinator has moved; the client is closed."""


class KafkaMember:
    """See `worker.bus.port.Member`."""

    def __init__(  # noqa: PLR0913 -- the parts of a seat
        self,
        options: KafkaOptions,
        group: str,
        instance: str,
        watched: Watched,
        watcher: Watcher,
        *,
        reader: Callable[[Collection[str]], LogReader],
        session: Callable[[str], float | None],
        compress: bool = True,
        queues: Queues | None = None,
    ) -> None:
        """Subscribe to the watched topics; the first polls join the group.

        The topic whose offsets are committed for the others (``of``) is not subscribed to.
        ``reader`` opens a reader of some topics, outside the group. ``session`` returns how long a
        session of a group is, in seconds, if the brokers tell. ``queues`` are told of what
        was fetched and produced.
        """
        self._queues = queues
        self._fetched = None if queues is None else queues.consumer()
        self._produced = None if queues is None else queues.producer()
        self._reader = reader
        self._session = session
        self._transactions = (f"{secrets.token_hex(4)}-{number}" for number in count(1))
        self._transaction = ""
        self._offsets: Mapping[TopicPartition, int] = {}
        self._claims: dict[TopicPartition, Claim] = {}
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
            queue=self._produced,
        )
        self._assignment = Assignment(group, watched.ends, eager=self._eager)
        self._member_id = ""
        self._errors = PendingErrors()
        self._unreleased_since: float | None = None
        self._patience = 0.0
        self._troubled_at: float | None = None
        self._consumer = self._subscribe()
        watcher.watch(watched)

    def _subscribe(self) -> Consumer:
        self._reported = False
        self._awaited_since: float | None = None
        config = self._options.member_config(self._group, self._instance)
        self._brokers = KnownBrokers()
        hear = [self._brokers.hear] + ([] if self._fetched is None else [self._fetched.hear])
        config = telling(config, *hear)
        self._subscribed_at = monotonic()
        listener = LogListener(
            config["logger"], troubled=self._on_log, informed=self._identities.hear
        )
        consumer = Consumer({**config, "error_cb": self._on_error, "logger": listener})
        self._assignment.subscribe(consumer, self._topics)
        return consumer

    def _on_error(self, error: KafkaError) -> None:
        if means(error, Means.PASSING):
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
            self._handle_error(cast("KafkaError", message.error()), message)
        if self._brokers.lost:
            self._connect_anew()
        elif self._overdue():
            _log.warning("group %s: no assignment came; joining with another client", self._group)
            self._rejoin()
        # librdkafka waits for the whole timeout, even if an assignment arrives.
        wait = min(timeout, _UNSEATED_WAIT_SECONDS) if self._assignment.revoked else timeout
        messages = burst(self._consume, self._sift, limit, max_bytes, wait)
        if self._assignment.changed and self._assignment.asking:
            self._assignment.resume_topics()
            return Polled(())
        if self._assignment.outdated:
            self._ask_anew()
            return Polled(())
        if self._assignment.changed:
            return self._report()
        if self._assignment.revoked:
            return self._unassigned()
        batches = batches_of(messages)
        self._assignment.advance({batch.place: batch.end for batch in batches})
        return Polled(batches)

    def _ask_anew(self) -> None:
        """Ask for another assignment, unless the topics themselves are uneven.

        They are while somebody adds partitions to one of them.
        """
        if not self._assignment.strange and self._uneven():
            self._assignment.accept()
            return
        _log.info("group %s: asking for another assignment", self._group)
        self._assignment.ask()

    def _uneven(self) -> bool:
        """Return whether the topics have different numbers of partitions, as far as known."""
        seconds = self._options.request_timeout_seconds / len(self._topics)
        try:
            known = [self._consumer.list_topics(one, seconds).topics for one in self._topics]
        except KafkaException as error:
            _log.info("group %s: %s", self._group, cause(error).str())
            return False
        found = [one for topics in known for one in topics.values() if one.error is None]
        return len({len(one.partitions) for one in found}) > 1

    def _unassigned(self) -> Polled:
        """Report an empty assignment once: under KIP-848 no callback does."""
        since = self._subscribed_at, self._troubled_at or 0, self._assignment.lost_at or 0
        waited = monotonic() - max(since)
        if self._eager or self._reported or waited < _UNASSIGNED_SECONDS:
            return Polled(())
        self._reported = True
        return Polled((), frozenset())

    def _report(self) -> Polled:
        """Return the new assignment, after a new producer has ended its predecessor's transaction.

        A member without partitions needs no producer: it would keep its threads and connections.
        """
        assigned = self._assignment.take()
        self._reported = not self._assignment.revoked
        self._unreleased_since = None
        self._errors.sought()
        self._member_id = self._consumer.memberid() or ""
        if not assigned:
            self._producer.close()
        elif not self._producer.ready:
            self._producer.renew()
        return Polled((), assigned)

    def _consume(self, limit: int, wait: float) -> list[Message]:
        """Return messages; once the assignment has changed, only errors of the whole client."""
        try:
            messages = self._consumer.consume(limit, wait)
        except KafkaException as error:
            self._handle_error(cause(error), None)
            messages = []
        self._identities.check()
        if self._assignment.changed:
            # librdkafka reports a fatal error once, often right after the loss of the partitions.
            return [found for found in messages if found.error() is not None and not found.topic()]
        return messages

    def _sift(self, messages: list[Message]) -> list[Message]:
        """Return those that may be delivered; keep the errors.

        A later poll handles them: raising now would lose the records before them.
        """
        broken = self._errors.broken
        if not broken and not any(map(_error, messages)):
            return messages
        delivered = []
        for message in messages:
            if message.error() is not None:
                self._errors.add(message)
            elif (message.topic(), message.partition()) not in broken:
                delivered.append(message)
        return delivered

    def _handle_error(self, error: KafkaError, message: Message | None) -> None:
        """Ignore an error that passes by itself; recover from or raise any other."""
        found = underlying(error)
        if message is not None and message.topic():
            partition = TopicPartition(message.topic() or "", message.partition() or 0)
            offset = message.offset() or 0
            # An error is at the start of its batch, in which the position may lie.
            at = max(offset, self._assignment.position(partition) or 0)
            damaged = damage(error, partition, at, self._options.unpacked)
            if damaged is not None:
                raise damaged
            if Means.OUT_OF_RANGE in found:
                self._out_of_range(error, partition, offset)
                return
        if Means.UNRELEASED in found:
            self._await_release(error)
        elif Means.EVICTED in found and self._fenced_by_itself():
            self._rejoin()
        elif Means.DENIED in found:
            topic = None if message is None else message.topic()
            what = f"topic {topic}" if topic else f"group {self._group}"
            raise refusal(error, f"group {self._group}", f"Read on {what}")
        elif Means.EVICTED in found or error.fatal():
            raise fatal(error, self._group)
        elif passes(error):
            _log.info("group %s: %s", self._group, error.str())
        else:
            raise refusal(error, f"group {self._group}")

    def _out_of_range(self, error: KafkaError, partition: TopicPartition, refused: int) -> None:
        """Raise if the position is out of range; ignore the refusal of an earlier offset.

        librdkafka may have fetched from the offset of a new assignment before the partition was
        paused, and a trimmed log no longer has that offset. The error may come after the partition
        was sought elsewhere. librdkafka may have stopped the partition, so this restarts it.
        """
        position = self._assignment.position(partition)
        if position is None:
            return
        truncated = truncation(error, partition)
        if truncated is not None:
            raise truncated
        low, high = self.watermarks(partition)
        if not low <= position <= high:
            raise OffsetOutOfRange(partition, position, low, high)
        if refused == position:
            msg = (
                f"{partition.topic}[{partition.partition}]: the broker did not have offset"
                f" {position}, and has it now: its log is [{low}, {high}). The log has lost its end"
                " and grown again, so its records may differ from those that were read before. See"
                " the runbook, 'A log that lost its end'"
            )
            raise BusError(msg)
        self._assignment.restart({partition})

    def _await_release(self, error: KafkaError) -> None:
        """Rejoin: under KIP-848 a killed member's seat is free only after its session ends.

        The session begins anew if the coordinator fails over meanwhile.
        """
        now = monotonic()
        if self._unreleased_since is None:
            self._unreleased_since = now
            session = self._session(self._group) or LONGEST_SESSION_SECONDS
            self._patience = 2 * session + self._options.request_timeout_seconds
            _log.info(
                "group %s: the seat of %s is taken; waiting until its session ends, for up to"
                " %.0f s",
                self._group,
                self._instance,
                self._patience,
            )
        elif now - self._unreleased_since > self._patience:
            raise fatal(error, self._group)
        threading.Event().wait(1.0)
        self._rejoin()

    def _fenced_by_itself(self) -> bool:
        """Return whether this member may have been fenced by its own earlier request to join.

        When a broker dies, the answer to such a request may be lost: the group then knows the
        member under an id that it never received, and takes it for another member. So each
        trouble with brokers allows one more attempt. Of two workers under one name, both may
        make an attempt; then the older one ends.
        """
        troubled, self._troubled_at = self._troubled_at, None
        recent = troubled is not None and monotonic() - troubled < _RECENT_SECONDS
        if recent:
            _log.warning(
                "group %s: fenced after trouble with brokers, probably by this member's own"
                " request; joining again",
                self._group,
            )
        return recent

    def _overdue(self) -> bool:
        """Return whether an assignment is missing for twice as long as a rebalance may take.

        The classic protocol always gives one, even if it is empty. librdkafka may wait for ever
        for the coordinator's connection, after its broker listed no brokers.
        """
        if not (self._eager and self._assignment.revoked):
            self._awaited_since = None
            return False
        now = monotonic()
        if self._awaited_since is None:
            self._awaited_since = now
        return now - self._awaited_since > 2 * self._options.max_poll_interval_ms / 1_000

    def _connect_anew(self) -> None:
        _log.warning(FORGOTTEN, self._group)
        self._rejoin()

    def _rejoin(self) -> None:
        self._close_consumer()
        self._errors.clear()
        self._consumer = self._subscribe()

    @property
    def seated(self) -> bool:
        """See the port."""
        return not self._assignment.revoked

    @property
    def waiting(self) -> bool:
        """See the port."""
        return self._assignment.revoked and (self._eager or not self._reported)

    def commit(
        self,
        records: Iterable[AnyOutgoing],
        offsets: Mapping[TopicPartition, int],
        *,
        epochs: Mapping[TopicPartition, int] = NO_EPOCHS,
    ) -> None:
        """See the port."""
        self._identities.check()
        self._producer.drop()
        # Without a member id the broker might take the offsets for those of a stand-alone
        # consumer, and check no generation.
        unseated = self._assignment.revoked or self._consumer.memberid() != self._member_id
        if offsets and unseated:
            msg = "the group has revoked this member's partitions"
            raise Aborted(msg)
        fenced = self._committed(records, offsets, epochs)
        # Fenced is raised here, not in the except block, and without the caught error as context.
        # Otherwise a KafkaError raised there would keep that error, and with it both clients.
        if fenced is None:
            return
        self._drain_events()
        if not self._fenced_by_itself():
            raise Fenced(fenced)
        self._rejoin()
        raise OutcomeUnknown(fenced)

    def _committed(
        self,
        records: Iterable[AnyOutgoing],
        offsets: Mapping[TopicPartition, int],
        epochs: Mapping[TopicPartition, int],
    ) -> str | None:
        """Commit; return the error's text if the member is fenced, else None."""
        self._transaction, self._offsets = next(self._transactions), offsets
        try:
            notes = {
                place: self._identities.metadata(place.topic, at, self._transaction)
                for place, at in offsets.items()
            }
            known = self._epochs(offsets, epochs)
            own = GroupOffsets(self._consumer, offsets, notes, known)
            self._producer.commit(records, own)
        except Fenced as error:
            return str(error)
        self._claims |= claimed({place: (at, known.get(place)) for place, at in offsets.items()})
        return None

    def _epochs(
        self, offsets: Mapping[TopicPartition, int], told: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, int]:
        """Return the leader epochs to commit with offsets; ``told`` are those of other readers.

        None is before what was committed last: what is read anew may still be of earlier leaders.
        It isn't known at an offset that the member hasn't read up to, if nobody has told it.
        """
        own = self._identities.of is None
        found = dict(self._assignment.epochs()) if own else {}
        before = {partition: claim.epoch for partition, claim in self._claims.items()}
        for partition, epoch in (*told.items(), *before.items()):
            found[partition] = max(epoch, found.get(partition, epoch))
        if own:
            read = self._assignment.positions()
            claims = self._claims
            for place in offsets.keys() - told.keys():
                reached = max(read.get(place, 0), claims[place].offset if place in claims else 0)
                if offsets[place] > reached:
                    found.pop(place, None)
        return found

    def _drain_events(self) -> None:
        """Receive librdkafka's pending log lines and errors; drop the fetched records.

        A member that is fenced in a commit has not yet seen what was reported before.
        """
        with suppress(KafkaException):  # Probably that the member is fenced.
            self._consumer.consume(_DRAINED_EVENTS, 0)

    @property
    def throttled(self) -> bool:
        """See the port."""
        return self._producer.throttled

    def settle(self, timeout: float) -> None:
        """See the port."""
        self._producer.settle(timeout)

    def renew(self) -> None:
        """See the port."""
        self._producer.renew()

    def effect(self) -> Effect:
        """See the port."""
        delivered = self._producer.doubtful
        if delivered is None:
            return Effect()
        kept = delivered.kept(self._reader, self._options.request_timeout_seconds)
        return Effect(kept, self._offsets_kept())

    def _offsets_kept(self) -> bool | None:
        """Return whether the last transaction's offsets are committed; None if it had none.

        Raises:
            BusError: another transaction has committed offsets since.
        """
        if not self._offsets:
            return None
        found = self._look_up(self._offsets)
        if all(transaction_in(partition.metadata) == self._transaction for partition in found):
            return True
        offsets = self._offsets
        if all(one.offset >= offsets[TopicPartition(one.topic, one.partition)] for one in found):
            raise BusError(f"group {self._group}: its offsets were committed again since")
        return False

    def committed(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int | None]:
        """See the port."""
        found = self._look_up(partitions)
        for partition in found:
            self._identities.check_offset(partition.topic, partition.metadata)
        self._claims = claimed(
            {
                TopicPartition(partition.topic, partition.partition): (
                    partition.offset,
                    partition.leader_epoch,
                )
                for partition in found
            }
        )
        offsets = {TopicPartition(one.topic, one.partition): offset_in(one) for one in found}
        if self._identities.of is None:
            self._assignment.note_committed(offsets)
        return offsets

    def _look_up(self, partitions: Iterable[TopicPartition]) -> list[KafkaPartition]:
        """Return the group's committed offsets with their metadata."""
        asked = [KafkaPartition(*partition) for partition in partitions]
        self._identities.ask({place.topic for place in asked})

        def ask(left: float) -> list[KafkaPartition]:
            found = self._consumer.committed(asked, left)
            for partition in found:
                if partition.error is not None:
                    raise KafkaException(partition.error)
            return found

        return self._asking(ask, f"group {self._group}: no committed offsets")

    def _asking(self, ask: Callable[[float], T], doing: str) -> T:
        """Ask, and in the second half of the time with another client if this one is cut off."""
        half = self._options.request_timeout_seconds / 2
        with suppress(Unanswered):
            return asking(ask, half, doing)
        # Not while an error is handled: it would keep the old client.
        if not reaches_brokers(self._consumer, self._topics[0]):
            self._connect_anew()
        return asking(ask, half, doing)

    def claims(self) -> dict[TopicPartition, Claim]:
        """See the port."""
        return self._claims

    def positions(self) -> dict[TopicPartition, int]:
        """See the port."""
        # After an error, librdkafka's own position is past records that were not delivered.
        stopped = self._errors.places
        found = self._assignment.positions()
        return {
            partition: offset for partition, offset in found.items() if partition not in stopped
        }

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """See the port; a partition that was just revoked is ignored."""
        self._errors.broken.discard(partition)
        claim = None if self._identities.of is not None else self._claims.get(partition)
        known = claim is not None and claim.offset == offset
        self._assignment.seek(partition, offset, claim.epoch if claim and known else None)

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        """See the port."""
        self._assignment.pause(partitions)

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        """See the port."""
        self._assignment.resume(partitions)

    def watermarks(self, partition: TopicPartition) -> tuple[int, int]:
        """See the port."""
        low, high = self._asking(
            lambda left: self._consumer.get_watermark_offsets(
                KafkaPartition(*partition), left, cached=False
            ),
            f"{partition.topic}[{partition.partition}]: no watermarks",
        )
        return low, high

    def lag(self) -> dict[TopicPartition, int]:
        """See the port."""
        return self._assignment.lag()

    def subscribe(self, topics: Sequence[str]) -> None:
        """See the port. A static member that joined anew would get its earlier assignment."""
        self._identities.depend_on(topics)
        self._topics = sorted(topics)
        self._reported = False
        self._subscribed_at = monotonic()
        self._assignment.change(self._topics)

    def close(self, *, leave: bool = False) -> None:
        """See the port; the group drops a static member only when its session ends."""
        del leave
        self._watcher.leave(self._watched)
        if self._queues is not None:
            self._queues.leave(self._fetched, self._produced)
        self._producer.close()
        self._close_consumer()

    def _close_consumer(self) -> None:
        """Close with a deadline: a librdkafka consumer's close may hang if its brokers do."""
        closing = threading.Thread(target=self._consumer.close, daemon=True)
        closing.start()
        closing.join(_CLOSE_SECONDS)
        if closing.is_alive():
            _log.warning(
                "group %s: the consumer did not close within %.0f s; leaving it behind",
                self._group,
                _CLOSE_SECONDS,
            )
