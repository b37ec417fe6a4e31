"""Documents into a log: written, waited for, and given up with the run that they are for."""

from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from threading import Event
from time import monotonic, time
from typing import Final

from confluent_kafka import KafkaError, Message, Producer

from worker.bus import Outgoing, Record

FLUSH_SECONDS: Final = 60.0
LOOK_SECONDS: Final = 0.5
"""How long nobody sees that the run has been given up."""


def written(
    producer: Producer, records: Iterable[Outgoing], over: Event | None = None
) -> list[Record]:
    """Write records, and wait until the log has them; return them with their offsets.

    Their times are set here: the answer to a batch that is sent again, since the first
    answer was lost, has but one for all, the batch's latest.

    Once ``over`` is set, nothing is waited for, and what was not written by then never is.

    Raises:
        AssertionError: the log doesn't take them, or they were given up.
    """
    over = over or Event()
    found: dict[int, Record] = {}

    def done(
        number: int, given: Outgoing, stamp: int, error: KafkaError | None, message: Message
    ) -> None:
        if over.is_set():
            return  # What is purged has an error, which nobody asks for any more.
        assert error is None, error
        partition, offset = message.partition(), message.offset()
        assert partition is not None
        assert offset is not None
        found[number] = Record(
            given.topic, partition, offset, stamp, given.key, given.value, given.headers
        )

    for number, record in enumerate(records):
        stamp = record.timestamp or int(time() * 1000)
        _enqueue(producer, record, stamp, partial(done, number, record, stamp), over)
    _flush(producer, over)
    return [found[number] for number in sorted(found)]


def _enqueue(
    producer: Producer, record: Outgoing, stamp: int, done: partial[None], over: Event
) -> None:
    while not over.is_set():
        with suppress(BufferError):
            producer.produce(
                record.topic,
                value=record.value,
                partition=-1 if record.partition is None else record.partition,
                key=record.key,
                headers=list(record.headers),
                timestamp=stamp,
                on_delivery=done,
            )
            break
        producer.poll(0.1)
    producer.poll(0)


def _flush(producer: Producer, over: Event) -> None:
    deadline = monotonic() + FLUSH_SECONDS
    while left := producer.flush(LOOK_SECONDS):
        if over.is_set():
            producer.purge()  # Else the end of this process could wait for them.
            producer.flush(LOOK_SECONDS)
            raise AssertionError(f"given up with the run: {left} records that no log has taken")
        assert monotonic() < deadline, f"no log has taken {left} records in {FLUSH_SECONDS:.0f} s"
