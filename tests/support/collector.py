"""A reader of one partition that keeps what it reads: the log may forget it meanwhile."""

from threading import Event, Thread
from time import monotonic
from typing import Final, Self

from confluent_kafka import Consumer, KafkaError, KafkaException
from confluent_kafka import TopicPartition as Place

from tests.support.audit import record_of
from tests.support.clients import close
from worker.bus import Record, TopicPartition
from worker.closing import Closing

POLL_SECONDS: Final = 0.2
END_SECONDS: Final = 60.0


class Collector(Closing):
    """Reads a partition's committed records as they are written. Use as a context manager.

    A record that the log deletes before it is read is an error, told by `records`.
    """

    def __init__(self, bootstrap: str, partition: TopicPartition) -> None:
        """Read from the partition's first record on."""
        self._partition = partition
        self._records: list[Record] = []
        self._position = 0
        self._failure: KafkaError | None = None
        self._over = Event()
        config = {
            "bootstrap.servers": bootstrap,
            "group.id": f"{partition.topic}.collector",
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            "fetch.message.max.bytes": 16 << 20,
            "log_level": 0,
        }
        self._reader = Consumer({**config, "isolation.level": "read_committed"})
        self._ends = Consumer({**config, "isolation.level": "read_uncommitted"})
        self._reader.assign([Place(*partition, 0)])
        self._thread = Thread(target=self._run, name="collector", daemon=True)

    def _run(self) -> None:
        while not self._over.is_set() and self._failure is None:
            for message in self._reader.consume(1_000, POLL_SECONDS):
                error = message.error()
                if error is None:
                    record = record_of(message)
                    # librdkafka may deliver an offset again when a broker comes back.
                    if not self._records or record.offset > self._records[-1].offset:
                        self._records.append(record)
                elif error.fatal() or error.code() == KafkaError._AUTO_OFFSET_RESET:
                    self._failure = error
            place = self._reader.position([Place(*self._partition)])[0]
            self._position = max(self._position, place.offset)

    def records(self) -> list[Record]:
        """Return all that there ever was, read to the end of the log.

        Raises:
            AssertionError: something was deleted before it was read.
            TimeoutError: the end can't be reached.
        """
        deadline = monotonic() + END_SECONDS
        _, end = self._ends.get_watermark_offsets(Place(*self._partition), END_SECONDS)
        while self._position < end and self._failure is None:
            if monotonic() > deadline:
                raise TimeoutError(
                    f"{self._partition} is read to {self._position}, and ends at {end}"
                )
            self._over.wait(POLL_SECONDS)
        assert self._failure is None, (
            f"{self._partition} was not read to its end: {KafkaException(self._failure)}"
        )
        return list(self._records)

    def __enter__(self) -> Self:
        """Begin."""
        self._thread.start()
        return self

    def close(self) -> None:
        """End."""
        self._over.set()
        self._thread.join()
        close(self._reader)
        close(self._ends)
