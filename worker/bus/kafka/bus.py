"""A Kafka cluster as a bus."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property

from confluent_kafka import KafkaException
from confluent_kafka import TopicPartition as KafkaPartition
from confluent_kafka.admin import AdminClient

from worker.bus.kafka.config import KafkaOptions
from worker.bus.kafka.ends import Ends, Surveyor
from worker.bus.kafka.errors import cause
from worker.bus.kafka.identities import Identities, present_ids, topic_ids
from worker.bus.kafka.member import KafkaMember
from worker.bus.kafka.producer import TransactionalProducer, transactional_id
from worker.bus.kafka.reader import KafkaReader
from worker.bus.kafka.watcher import Watched, Watcher
from worker.bus.port import BusError

__all__ = ["KafkaBus"]


class KafkaBus:
    """See `worker.bus.port.Bus`."""

    def __init__(self, options: KafkaOptions) -> None:
        """Prepare; nothing is connected yet."""
        self._options = options
        self._watcher = Watcher(self._present, self._survey)

    @cached_property
    def _surveyor(self) -> Surveyor:
        return Surveyor(self._options, self._admin)

    @cached_property
    def _admin(self) -> AdminClient:
        # Kept: a request dies with the client that sent it.
        return AdminClient(self._options.client("admin"))

    def partitions(self, topics: Iterable[str]) -> dict[str, int | None]:
        """See the port.

        Raises:
            BusError: no broker answers.
        """
        try:
            known = self._admin.list_topics(timeout=self._options.request_timeout_seconds).topics
        except KafkaException as error:
            msg = (
                f"no broker of {self._options.bootstrap} answers within"
                f" {self._options.request_timeout_seconds:.0f} s: {cause(error).str()}"
            )
            raise BusError(msg) from error
        counts: dict[str, int | None] = {}
        for topic in topics:
            found = known.get(topic)
            counts[topic] = None if found is None or found.error else len(found.partitions)
        return counts

    def identity(self, topic: str) -> str:
        """See the port; it is the topic's UUID.

        Raises:
            BusError: the topic can't be described.
        """
        return self._ids([topic])[topic]

    def _ids(self, topics: Collection[str]) -> dict[str, str]:
        return topic_ids(self._admin, topics, self._options.request_timeout_seconds)

    def _present(self, topics: Collection[str], seconds: float) -> dict[str, str]:
        return present_ids(self._admin, topics, seconds)

    def _survey(self, ends: Ends, seconds: float) -> None:
        self._surveyor.look(ends, seconds)

    def trim(self, topic: str, partition: int, before_offset: int) -> None:
        """See the port.

        Raises:
            BusError: see there.
        """
        place = KafkaPartition(topic, partition, before_offset)
        seconds = self._options.request_timeout_seconds
        try:
            # Else librdkafka asks the leader that it knew minutes ago, and takes its refusal.
            self._admin.list_topics(topic, timeout=seconds)
            self._admin.delete_records([place], request_timeout=seconds)[place].result()
        except KafkaException as error:
            msg = f"{topic}[{partition}] can't be trimmed: {cause(error).str()}"
            raise BusError(msg) from error

    def end_transactions(self, seats: Mapping[str, str], instance: str) -> None:
        """End the transactions that an earlier process of this instance has left open.

        ``seats`` name a topic of each group. Until then nobody is told the offsets in them.

        Raises:
            BusError: no answer in time.
        """

        def end(group: str) -> None:
            name = transactional_id(group, instance)
            producer = TransactionalProducer(self._options, name, seats[group])
            producer.renew()
            producer.close()

        with ThreadPoolExecutor(len(seats)) as pool:
            list(pool.map(end, seats))

    def reader(self, group: str, topics: Collection[str]) -> KafkaReader:
        """See the port."""
        watched = Watched(Identities(topics, self._ids), Ends())
        return KafkaReader(self._options, group, watched, self._watcher)

    def join(
        self,
        group: str,
        topics: Sequence[str],
        instance: str,
        *,
        compress: bool = True,
        of: str | None = None,
    ) -> KafkaMember:
        """See the port."""
        watched = Watched(Identities(topics, self._ids, of=of), Ends())
        return KafkaMember(
            self._options, group, instance, watched, self._watcher, compress=compress
        )
