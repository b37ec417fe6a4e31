"""A Kafka cluster as a bus."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, partial

from confluent_kafka import KafkaException
from confluent_kafka import TopicPartition as KafkaPartition
from confluent_kafka.admin import AdminClient

from worker.bus import BusError, Queued, Unanswered
from worker.bus.kafka.client_reports import Queues
from worker.bus.kafka.config import KafkaOptions
from worker.bus.kafka.error_codes import Means, means
from worker.bus.kafka.errors import cause
from worker.bus.kafka.groups import session_seconds
from worker.bus.kafka.identities import Identities, present_ids, topic_ids
from worker.bus.kafka.log_ends import Ends, Surveyor
from worker.bus.kafka.log_watcher import Watched, Watcher
from worker.bus.kafka.member import KafkaMember
from worker.bus.kafka.producer import TransactionalProducer, transactional_id
from worker.bus.kafka.reader import KafkaReader
from worker.bus.kafka.writer import KafkaWriter


class KafkaBus:
    """See `worker.bus.port.Bus`."""

    def __init__(self, options: KafkaOptions, queues: Queues | None = None) -> None:
        """Take the options. This does not connect.

        With ``queues``, clients tell them what is in theirs. All readers must then be read now and
        then, as members must be polled.
        """
        self._options = options
        self._queues = queues
        self._watcher = Watcher(self._present, self._survey)

    @cached_property
    def _surveyor(self) -> Surveyor:
        return Surveyor(self._options, lambda: self._admin)

    @cached_property
    def _admin(self) -> AdminClient:
        # Kept open: a request ends with the client that sent it.
        return self._new_admin()

    def _new_admin(self) -> AdminClient:
        return AdminClient(self._options.client_config("admin"))

    @property
    def silent_seconds(self) -> float:
        """See the port; a member's bus asks every two seconds, and waits up to four."""
        return self._watcher.silent_seconds

    def queued(self) -> dict[str, Queued]:
        """See the port; nothing is known without `Queues`."""
        return {} if self._queues is None else self._queues.read()

    def partitions(self, topics: Iterable[str]) -> dict[str, int | None]:
        """See the port.

        Raises:
            Unanswered: no broker answers.
        """
        try:
            known = self._admin.list_topics(timeout=self._options.request_timeout_seconds).topics
        except KafkaException as error:
            msg = (
                f"no broker of {self._options.bootstrap} answers within"
                f" {self._options.request_timeout_seconds:.0f} s: {cause(error).str()}"
            )
            raise Unanswered(msg) from error
        counts: dict[str, int | None] = {}
        for topic in topics:
            found = known.get(topic)
            counts[topic] = None if found is None or found.error else len(found.partitions)
        return counts

    def identity(self, topic: str) -> str:
        """See the port; returns the topic's UUID.

        Raises:
            BusError: the topic can't be described.
        """
        return self._ids([topic])[topic]

    def _ids(self, topics: Collection[str]) -> dict[str, str]:
        return topic_ids(self._present, topics, self._options.request_timeout_seconds)

    def _present(self, topics: Collection[str], seconds: float) -> dict[str, str]:
        asked = self._admin
        try:
            return present_ids(asked, topics, seconds)
        except KafkaException as error:
            # Once all brokers were away, librdkafka may wait for a controller long after they
            # are back. A new client finds it at once.
            if means(cause(error), Means.LATE) and self._admin is asked:
                self._admin = self._new_admin()
            raise

    def _survey(self, ends: Ends, seconds: float) -> None:
        self._surveyor.look(ends, seconds)

    def _session_seconds(self, group: str) -> float | None:
        return session_seconds(self._admin, group, self._options.request_timeout_seconds / 2)

    def trim(self, topic: str, partition: int, before_offset: int) -> None:
        """See the port.

        Raises:
            BusError: see there.
        """
        place = KafkaPartition(topic, partition, before_offset)
        seconds = self._options.request_timeout_seconds
        try:
            # Otherwise librdkafka asks the leader that it last knew, and accepts its refusal.
            self._admin.list_topics(topic, timeout=seconds)
            self._admin.delete_records([place], request_timeout=seconds)[place].result()
        except KafkaException as error:
            msg = f"{topic}[{partition}] can't be trimmed: {cause(error).str()}"
            raise BusError(msg) from error

    def end_transactions(self, seats: Mapping[str, str], instance: str) -> None:
        """End the transactions that an earlier process of this instance left open.

        ``seats`` maps each group to one of its topics. Until these transactions end, requests for
        the offsets in them get no answer.

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

    def log_reader(
        self, group: str, topics: Collection[str], *, single: bool = False
    ) -> KafkaReader:
        """See the port."""
        watched = Watched(Identities(topics, self._ids), Ends())
        return KafkaReader(
            self._options, group, watched, self._watcher, single=single, queues=self._queues
        )

    def log_writer(self, name: str, topic: str) -> KafkaWriter:
        """See the port."""
        return KafkaWriter(self._options, name, topic, partial(self.log_reader, name), self._ids)

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
            self._options,
            group,
            instance,
            watched,
            self._watcher,
            reader=partial(self.log_reader, group),
            session=self._session_seconds,
            compress=compress,
            queues=self._queues,
        )
