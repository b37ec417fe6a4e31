"""The harness around a real Kafka: confluent_kafka for everything but the bus itself."""

import json
from collections.abc import Iterable, Mapping
from typing import Final

from confluent_kafka import (
    TIMESTAMP_NOT_AVAILABLE,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
)
from confluent_kafka import TopicPartition as Place
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.support.bus_harness import Harness, OpenTransaction
from tests.support.bus_seats import until
from worker.bus import Bus, Header, Outgoing, Record, TopicPartition

TIMEOUT_SECONDS: Final = 60.0


def _written(producer: Producer, records: Iterable[Outgoing]) -> list[int]:
    """Write one after the other, so that the log has them in this order; give the offsets."""
    offsets: list[int] = []

    def delivered(error: KafkaError | None, message: Message) -> None:
        assert error is None, error
        offset = message.offset()
        assert offset is not None
        offsets.append(offset)

    for count, record in enumerate(records, 1):
        producer.produce(
            record.topic,
            value=record.value,
            key=record.key,
            partition=-1 if record.partition is None else record.partition,
            timestamp=record.timestamp or 0,
            headers=list(record.headers),
            on_delivery=delivered,
        )
        assert producer.flush(TIMEOUT_SECONDS) == 0
        assert len(offsets) == count
    return offsets


def _headers(message: Message) -> tuple[Header, ...]:
    headers = message.headers() or []
    assert isinstance(headers, list)
    return tuple(
        (name, value.encode() if isinstance(value, str) else value) for name, value in headers
    )


def _record(message: Message) -> Record:
    topic, partition, offset = message.topic(), message.partition(), message.offset()
    assert topic is not None
    assert partition is not None
    assert offset is not None
    kind, timestamp = message.timestamp()
    return Record(
        topic,
        partition,
        offset,
        -1 if kind == TIMESTAMP_NOT_AVAILABLE else timestamp,
        message.key(),
        message.value(),
        _headers(message),
        epoch if (epoch := message.leader_epoch()) is not None else -1,
    )


class _KafkaTransaction:
    """An `OpenTransaction` of a producer of its own."""

    def __init__(self, config: dict[str, str | int | float | bool]) -> None:
        self._config = config
        self._producer = Producer(config)
        self._producer.init_transactions(TIMEOUT_SECONDS)
        self._producer.begin_transaction()
        self.open = True

    def append(self, *records: Outgoing) -> None:
        _written(self._producer, records)

    def commit(self) -> None:
        self._producer.commit_transaction(TIMEOUT_SECONDS)
        self._await_markers()

    def abort(self) -> None:
        self._producer.abort_transaction(TIMEOUT_SECONDS)
        self._await_markers()

    def _await_markers(self) -> None:
        """The coordinator answers before the partitions have their markers.

        It lets nobody begin under this name until they do.
        """
        Producer(self._config).init_transactions(TIMEOUT_SECONDS)
        self.open = False


class KafkaHarness(Harness):
    """Around a broker; ``bus`` is the adapter under test, for the same broker."""

    def __init__(self, bootstrap: str, bus: Bus, prefix: str) -> None:
        super().__init__(bus, prefix)
        self._connection: dict[str, str | int | float | bool] = {
            "bootstrap.servers": bootstrap,
            "log_level": 0,
        }
        self._admin = AdminClient(dict(self._connection))
        self.renew_producer()
        self._transactions: list[_KafkaTransaction] = []

    def renew_producer(self) -> None:
        """Write with another producer: a log that has lost records refuses what follows them."""
        self._producer = Producer(
            {**self._connection, "enable.idempotence": True, "partitioner": "murmur2_random"}
        )

    def create_topic(
        self, name: str, partitions: int, *, log_append_time: bool, max_bytes: int | None
    ) -> None:
        config = {"retention.ms": "-1"}  # Tests write records of years ago.
        if log_append_time:
            config["message.timestamp.type"] = "LogAppendTime"
        if max_bytes is not None:
            config["max.message.bytes"] = str(max_bytes)
        topic = NewTopic(name, num_partitions=partitions, replication_factor=1, config=config)
        self._admin.create_topics([topic])[name].result(TIMEOUT_SECONDS)
        # Created is not yet known to every broker's clients.
        until(
            lambda: (
                name in (found := self._admin.list_topics(timeout=TIMEOUT_SECONDS).topics)
                and len(found[name].partitions) == partitions
            ),
            f"topic {name}",
        )

    def append(self, *records: Outgoing) -> list[int]:
        return _written(self._producer, records)

    def read_committed(self, topic: str) -> list[Record]:
        places = sorted(self.places(topic))
        if not any(transaction.open for transaction in self._transactions):
            self._await_stable(places)
        consumer = self._consumer(self.name("reader"))
        try:
            low = {p: consumer.get_watermark_offsets(Place(*p), TIMEOUT_SECONDS)[0] for p in places}
            consumer.assign([Place(*place, offset) for place, offset in low.items()])
            read: list[Record] = []
            ended: set[int | None] = set()

            def at_end() -> bool:
                message = consumer.poll(1)
                if message is not None:
                    error = message.error()
                    if error is None:
                        read.append(_record(message))
                    elif error.code() == KafkaError._PARTITION_EOF:
                        ended.add(message.partition())
                    else:
                        raise KafkaException(error)
                return len(ended) == len(places)

            until(at_end, f"the end of {topic}")
        finally:
            consumer.close()
        return sorted(read, key=lambda record: (record.partition, record.offset))

    def _await_stable(self, places: Iterable[TopicPartition]) -> None:
        """Wait for the markers of transactions that have just ended."""
        ends = [
            self._consumer(self.name("reader"), isolation)
            for isolation in ("read_committed", "read_uncommitted")
        ]
        try:
            for place in places:

                def stable(place: TopicPartition = place) -> bool:
                    committed, written = (
                        consumer.get_watermark_offsets(Place(*place), TIMEOUT_SECONDS)[1]
                        for consumer in ends
                    )
                    return committed == written

                until(stable, f"the end of {place} is stable")
        finally:
            for consumer in ends:
                consumer.close()

    def open_transaction(self) -> OpenTransaction:
        opened = _KafkaTransaction(
            {
                **self._connection,
                "transactional.id": self.name("producer"),
                "partitioner": "murmur2_random",
            }
        )
        self._transactions.append(opened)
        return opened

    def delete_topic(self, name: str) -> None:
        self._admin.delete_topics([name])[name].result(TIMEOUT_SECONDS)
        until(
            lambda: name not in self._admin.list_topics(timeout=TIMEOUT_SECONDS).topics,
            f"{name} to be gone",
        )

    def commit_offsets(
        self, group: str, offsets: Mapping[TopicPartition, int], identity: str | None = None
    ) -> None:
        # A key that is not known must not be in the way; nor what other tools leave.
        metadata = json.dumps({"later": 1, "topic_id": identity}) if identity else "by hand"
        consumer = self._consumer(group)
        try:
            consumer.commit(
                offsets=[Place(*place, offset, metadata) for place, offset in offsets.items()],
                asynchronous=False,
            )
        finally:
            consumer.close()

    def committed(
        self, group: str, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, int | None]:
        consumer = self._consumer(group)
        try:
            found = consumer.committed([Place(*place) for place in partitions], TIMEOUT_SECONDS)
        finally:
            consumer.close()
        return {
            TopicPartition(place.topic, place.partition): place.offset
            if place.offset >= 0
            else None
            for place in found
        }

    def trim(self, place: TopicPartition, before: int) -> None:
        self.bus.trim(*place, before)

    def _consumer(self, group: str, isolation: str = "read_committed") -> Consumer:
        """Give a reader that is no member of the group whose name it uses."""
        return Consumer(
            {
                **self._connection,
                "group.id": group,
                "isolation.level": isolation,
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "auto.offset.reset": "error",
            }
        )
