"""The transactional producer of a stage's seat."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from time import monotonic, sleep
from types import MappingProxyType
from typing import NamedTuple, TypeAlias, TypeVar, cast

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, ThrottleEvent
from confluent_kafka import TopicPartition as KafkaPartition

from worker.bus import (
    Aborted,
    AnyOutgoing,
    BusError,
    Fenced,
    OutcomeUnknown,
    Refused,
    TopicPartition,
)
from worker.bus.kafka.client_reports import LogListener, ProducerQueue
from worker.bus.kafka.config import KafkaOptions
from worker.bus.kafka.delivery import Delivered
from worker.bus.kafka.error_codes import Means, means
from worker.bus.kafka.errors import cause, consequence, retrying

_log = logging.getLogger(__name__)

T = TypeVar("T")

Headers: TypeAlias = Sequence[list[tuple[str, str | bytes | None]]]
"""What the client takes."""

_PRODUCERS = 3
"""How many producers share the time of a renewal: one may lose all its brokers, as
`worker.bus.kafka.client_reports` says, and then waits for nothing."""
_QUOTA_SECONDS = 15.0
"""How long a quota counts as applied. Brokers compare it with the mean of 11 s by default
(quota.window.num): for as long, they may let pass whatever comes, and then delay it again."""
_GRACE_SECONDS = 2.0


class GroupOffsets(NamedTuple):
    """Offsets to commit for the group of a consumer.

    ``notes`` has their metadata, and ``epochs`` the leader epochs that are known.
    """

    consumer: Consumer
    offsets: Mapping[TopicPartition, int]
    notes: Mapping[TopicPartition, str]
    epochs: Mapping[TopicPartition, int] = MappingProxyType({})


def transactional_id(group: str, instance: str) -> str:
    """Return the transactional id of a group's member."""
    return f"{group}.{instance}"


class TransactionalProducer:
    """One librdkafka producer with a stable transactional id, and its successors.

    librdkafka doesn't implement KIP-890: an EndTxn request that arrives late can end the next
    transaction. So the producer is replaced after every transaction whose end was disturbed: by
    an error, a timeout, or a lost connection, even if success was reported in the end. Its
    successor has a higher epoch, under which the broker accepts no late request.
    """

    def __init__(  # noqa: PLR0913 -- what it is, and who hears of it
        self,
        options: KafkaOptions,
        transactional_id: str,
        probe: str,
        *,
        compress: bool = True,
        troubled: Callable[[str], None] = lambda _what: None,
        queue: ProducerQueue | None = None,
    ) -> None:
        """Prepare; `renew` connects, by looking up the topic ``probe``.

        ``troubled`` is called on trouble with brokers. ``queue`` is told what is produced.
        """
        self._queue = queue or ProducerQueue()
        self._compress = compress
        self._probe = probe
        self._options = options
        self._id = transactional_id
        self._producer: Producer | None = None
        self._disturbed: str | None = None
        self._troubled = troubled
        self._delivered = Delivered(())
        self._ending = False
        self._throttled_at: float | None = None
        self._settling = Settling()

    @property
    def throttled(self) -> bool:
        """Return whether brokers have lately delayed what it writes, because of a quota."""
        at = self._throttled_at
        return at is not None and monotonic() - at < _QUOTA_SECONDS

    def settle(self, timeout: float) -> None:
        """Wait up to ``timeout`` seconds until another transaction can begin."""
        self._settling.wait(timeout)

    @property
    def ready(self) -> bool:
        """Return whether there is a producer."""
        return self._producer is not None

    def renew(self) -> None:
        """Create a new producer under the same id, which ends the old one's open transaction.

        Raises:
            BusError: not done within `KafkaOptions.renewal_timeout_seconds`.
        """
        self.close()
        deadline = monotonic() + self._options.renewal_timeout_seconds
        share = self._options.renewal_timeout_seconds / _PRODUCERS
        while True:
            config = self._options.producer_config(self._id, compress=self._compress)
            listener = LogListener(config["logger"], troubled=self._on_log)
            producer = Producer(
                {
                    **config,
                    "error_cb": self._on_error,
                    "throttle_cb": self._on_throttle,
                    "logger": listener,
                }
            )
            failure = self._failure_to_begin(producer, min(deadline, monotonic() + share))
            if failure is None:
                break
            _drop(producer)
            if monotonic() > deadline or not _may_pass(failure):
                raise self._unable(failure) from failure
            _log.info("producer %s: %s; retrying", self._id, failure)
        self._producer = producer
        self._settling.anew()
        producer.poll(0)  # Trouble that was logged so far doesn't concern later transactions.
        self._disturbed = None

    def _unable(self, failure: Exception) -> BusError:
        """Return the error of a producer that could not begin, with a remedy if it is known."""
        doing = f"producer {self._id} could not begin"
        if isinstance(failure, KafkaException):
            known = consequence(cause(failure), doing)
            if isinstance(known, BusError):
                return known
        return BusError(f"{doing} within {self._options.renewal_timeout_seconds:.0f} s: {failure}")

    def _failure_to_begin(self, producer: Producer, deadline: float) -> Exception | None:
        try:
            # Without a connection librdkafka looks for its coordinator only every 500 ms. Its
            # first connection is to a bootstrap server, and closes once the brokers are known.
            for _ in range(2):
                producer.list_topics(self._probe, timeout=max(0.1, deadline - monotonic()))
            retrying(
                producer.init_transactions, deadline - monotonic(), f"producer {self._id}: begin"
            )
        except (KafkaException, OutcomeUnknown) as error:
            return error
        return None

    def _on_error(self, error: KafkaError) -> None:
        if means(error, Means.DISTURBING):
            self._on_log(error.str())

    def _on_throttle(self, event: ThrottleEvent) -> None:
        if event.throttle_time > 0:  # The first that is not delayed any more is told of, too.
            self._throttled_at = monotonic()

    def _on_log(self, what: str) -> None:
        self._disturbed = what
        self._troubled(what)

    def _undisturbed(self, *, alone: bool) -> Producer:
        """Return the producer, or its successor if its last transaction was aborted.

        It is also replaced if there was trouble since then: librdkafka's knowledge of the
        coordinators is then stale, and it may hang. A producer that writes ``alone`` is never
        replaced unasked: another may have held the name in between, and there is no group
        generation to reveal that.
        """
        if self._producer is not None:
            self._producer.poll(0)
            if self._disturbed is not None and alone:
                raise Aborted(f"producer {self._id} is not used any more: {self._disturbed}")
            if self._disturbed is not None:
                self.renew()
        if self._producer is None:
            msg = f"producer {self._id} is not started"
            raise OutcomeUnknown(msg)
        self._disturbed = None
        return self._producer

    def commit(
        self,
        records: Iterable[AnyOutgoing],
        own: GroupOffsets | None = None,
        *,
        beside: Sequence[GroupOffsets] = (),
    ) -> Delivered:
        """Write and commit in one transaction; return where the records were written.

        It raises what `Member.commit` does. ``own`` are offsets of the member's group; without
        them, it raises what `LogWriter.commit` does. ``beside`` are offsets of groups to which
        the producer doesn't belong.
        """
        alone = own is None
        self.drop()
        producer = self._undisturbed(alone=alone)
        self._delivered = delivered = Delivered(list(records))
        self._queue.hear(delivered.batches)
        timeout = self._options.commit_timeout_seconds
        self._settling.begin()
        try:
            producer.begin_transaction()
            self._produce(producer, delivered)
            if own is not None:
                began = monotonic()
                self._send_offsets(producer, own)
                self._settling.took(monotonic() - began)
            for one in beside:
                self._send_offsets(producer, one)
            self._ending = True
            within(lambda: producer.commit_transaction(timeout), timeout, "commit")
            self._settling.ended()
        except KafkaException as error:
            # Don't bind the result to a name: a frame that holds the exception that it raises is
            # a cycle, which keeps the producer's threads and connections until garbage collection.
            raise self._ended(producer, cause(error), alone=alone) from error
        producer.poll(0)
        if self._disturbed is not None:
            msg = f"committed, but with trouble during the commit: {self._disturbed}"
            raise OutcomeUnknown(msg)
        self.drop()
        return delivered

    def drop(self) -> None:
        """Drop the last transaction."""
        self._delivered = Delivered(())
        self._ending = False

    @property
    def doubtful(self) -> Delivered | None:
        """Return the delivery reports of the last transaction, if it may have been committed.

        None if it did not come to that.
        """
        return self._delivered if self._ending else None

    def _send_offsets(self, producer: Producer, of: GroupOffsets) -> None:
        positions = [
            KafkaPartition(
                *partition, at, of.notes.get(partition, ""), of.epochs.get(partition, -1)
            )
            for partition, at in of.offsets.items()
        ]
        metadata = of.consumer.consumer_group_metadata()
        retrying(
            lambda left: within(
                lambda: producer.send_offsets_to_transaction(positions, metadata, left),
                left,
                "offsets",
            ),
            # After this time the coordinator has aborted the transaction anyway.
            self._options.transaction_timeout_ms / 1_000,
            "offsets",
        )

    def _produce(self, producer: Producer, delivered: Delivered) -> None:
        produce = producer.produce
        for batch, reports in delivered.reports():
            topic, partition, keys, values, headers, timestamps = batch
            number = -1 if partition is None else partition
            columns = zip(keys, values, cast("Headers", headers), timestamps, reports, strict=False)
            for key, value, own, timestamp, report in columns:  # A hot path.
                while True:
                    try:
                        stamp = timestamp or 0
                        produce(topic, value, key, number, report, None, stamp, own or None)
                        break
                    except BufferError:
                        if not len(producer):  # Its queue is empty, and has no room for this.
                            error = KafkaError(KafkaError.MSG_SIZE_TOO_LARGE)
                            delivered.refuse(topic, key, value, error)
                            raise KafkaException(error) from None
                        producer.poll(0.05)

    def _ended(self, producer: Producer, error: KafkaError, *, alone: bool) -> Exception:
        """Abort if the error requires it; return the exception to raise."""
        error = _revealed(producer, error)
        # A broker that refuses one of the topics doesn't say which.
        topics = " or ".join(self._delivered.topics)
        of_topic = error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
        right = f"Write on topic {topics}" if of_topic else ""
        outcome = consequence(error, f"transaction of {self._id}", alone=alone, right=right)
        # After a refused record librdkafka raises the epoch itself, and a request that is still
        # in flight with the old one looks fenced. A writer has no group to ask, and reads on.
        # The commit has served the delivery reports; poll() would raise the fatal error again.
        refused = self._delivered.refused
        by_itself = alone and bool(refused)
        if isinstance(outcome, Fenced) and by_itself:
            return OutcomeUnknown(f"{outcome}, after a record was refused")
        if not isinstance(outcome, Aborted) and not means(error, Means.REFUSED):
            return outcome
        try:
            retrying(
                lambda left: within(lambda: producer.abort_transaction(left), left, "abort"),
                self._options.commit_timeout_seconds,
                "abort",
            )
        except KafkaException as second:
            after = consequence(cause(second), f"{outcome}; and its abort", alone=alone)
            fenced = isinstance(after, Fenced) and not by_itself
            return after if fenced else OutcomeUnknown(str(after))
        producer.poll(0)
        if self._disturbed is not None:
            return OutcomeUnknown(
                f"{outcome}; aborted, but with trouble during the abort: {self._disturbed}"
            )
        # A request of this transaction may still be in flight, and the broker could take it for
        # one of the next transaction. So the next one gets another epoch.
        self._disturbed = "the last transaction was aborted"
        if refused:
            which = self._delivered.refusals()
            return Refused(str(outcome), which, next(iter(refused.values())))
        return outcome

    def close(self) -> None:
        """Drop the producer and its queued records; its open transaction times out."""
        if self._producer is not None:
            _drop(self._producer)
            self._producer = None


def _revealed(producer: Producer, error: KafkaError) -> KafkaError:
    """Return why a producer is unusable, if the error only says that it is.

    `produce` does so once librdkafka has met a fatal error by itself. The next event has the cause.
    """
    if not means(error, Means.FATAL):
        return error
    try:
        producer.poll(0)
    except KafkaException as reason:
        return cause(reason)
    return error


def _drop(producer: Producer) -> None:
    """Purge a producer's queue, so that its destruction doesn't wait for delivery.

    Don't call this while an exception is being handled: confluent_kafka 2.16 never frees a
    KafkaError that it has raised. That error keeps the exception being handled at the time, whose
    traceback holds the producer.
    """
    with suppress(KafkaException):  # A fenced producer raises only that.
        producer.purge()
        producer.poll(0)


def _may_pass(error: Exception) -> bool:
    if not isinstance(error, KafkaException):
        return True
    found = cause(error)
    if found.retriable() or means(found, Means.AWAY):
        return True
    return not (found.fatal() or isinstance(consequence(found, ""), BusError))


def within(call: Callable[[], T], seconds: float, doing: str) -> T:
    """Call in a separate thread, and stop waiting 2 s after ``seconds``.

    Seen with librdkafka 2.16: when the only broker crashed and came back,
    send_offsets_to_transaction with a timeout of 10 s did not return in 300 s. The call is
    left behind, with the client in which it hangs.

    Raises:
        OutcomeUnknown: the call has not returned in time.
    """
    done: Future[T] = Future()
    threading.Thread(target=_run, args=(call, done), name=doing, daemon=True).start()
    try:
        return done.result(seconds + _GRACE_SECONDS)
    except TimeoutError:
        raise OutcomeUnknown(f"{doing}: no answer within {seconds:.0f} s") from None
    finally:
        # The future holds the raised exception, whose traceback holds this frame: a cycle. It
        # would keep the called client and its threads alive until the garbage collector runs.
        del done


def _run(call: Callable[[], T], done: Future[T]) -> None:
    try:
        done.set_result(call())
    except BaseException as error:  # noqa: BLE001 -- passed on to the caller, where it is raised
        done.set_exception(error)
    finally:
        del done  # as above


_LONGEST = 0.02
"""Seconds. Longer than librdkafka's own pause, the wait would gain nothing."""
_REPEATED = 0.015
"""Seconds. A refused request takes at least as much longer: 20 ms, less a jitter of a fifth."""
_MORE = 0.001
"""Seconds, which a refused request adds to the wait."""
_LESS = 0.999
"""The factor of the wait after a request that was not refused: one in some hundred is."""
_FORGETTING = 1.01
"""The factor by which the quickest request is forgotten: brokers may become slower."""


class Settling:
    """How long to wait before the next transaction, of one producer. Not thread-safe.

    A coordinator answers EndTxn once it has logged the decision. Then it writes a marker to each
    partition of the transaction. Until all are written, it refuses the next transaction with
    CONCURRENT_TRANSACTIONS. librdkafka repeats AddPartitionsToTxn after 20 ms, and AddOffsetsToTxn
    after some 20, 40, 80 … ms (``retry.backoff.ms``): several times what the markers take. A
    producer that waits a little before it begins gets through at once, and what it reads meanwhile
    goes with it.

    Nothing tells when the markers are written, so the wait is learned from how long it takes to add
    offsets: longer by such a pause if the coordinator has refused that.
    """

    def __init__(
        self, clock: Callable[[], float] = monotonic, pause: Callable[[float], None] = sleep
    ) -> None:
        """Begin with the longest wait: only what is not refused shows how quick a request is."""
        self._clock = clock
        self._sleep = pause
        self._pause = _LONGEST
        self._quickest = 0.0
        self._ended: float | None = None
        self._waited = 0.0

    def wait(self, timeout: float = _LONGEST) -> None:
        """Wait up to ``timeout`` seconds until another transaction is probably accepted."""
        if self._ended is None:
            return
        left = min(timeout, self._ended + self._pause - self._clock())
        if left > 0:
            self._sleep(left)

    def begin(self) -> None:
        """Wait for that, and note that a transaction begins."""
        self.wait()
        self._waited = 0.0 if self._ended is None else self._clock() - self._ended

    def ended(self) -> None:
        """Note that a transaction was committed."""
        self._ended = self._clock()

    def anew(self) -> None:
        """Note that there is no transaction that the next one could collide with."""
        self._ended = None

    def took(self, seconds: float) -> None:
        """Learn from how long it took to add offsets to the transaction."""
        if self._ended is None:
            return
        refused = self._quickest > 0 and seconds >= self._quickest + _REPEATED
        self._quickest = min(seconds, self._quickest * _FORGETTING or seconds)
        if refused:
            self._pause = min(_LONGEST, max(self._pause, self._waited) + _MORE)
        elif self._waited < self._pause + _MORE:
            self._pause *= _LESS
