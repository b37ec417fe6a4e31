"""Documents written by a transactional producer, of whose transactions a share aborts."""

from collections.abc import Sequence
from random import Random
from threading import Event
from typing import Final

from confluent_kafka import Producer

from tests.support.application import ApplicationUnderTest
from worker.bus import Outgoing

TIMEOUT_SECONDS: Final = 60.0
ABORTED_RECORDS: Final = 8
"""Of each partition, in a transaction that aborts."""


class TransactionalFeeder:
    """Feeds in transactions, a slice each, with others between them that abort.

    An aborted transaction writes to every partition; a committed one leaves the last
    partition out. So the last partition is idle, and its log still grows: it holds what was
    aborted, and the markers.
    """

    def __init__(self, application: ApplicationUnderTest, aborts: float, random: Random) -> None:
        """Take the share of slices before which a transaction aborts."""
        self._application = application
        self._aborts = aborts
        self._random = random
        self.aborted = 0
        self._producer = Producer(
            {
                "bootstrap.servers": application.kafka.bootstrap,
                "transactional.id": f"{application.topology.app}.feeder",
                "linger.ms": 5,
                "log_level": 0,
            }
        )
        self._producer.init_transactions(TIMEOUT_SECONDS)

    def feed(self, records: Sequence[Outgoing], over: Event | None = None) -> None:
        """Write documents in one transaction, which is committed when this returns.

        Once ``over`` is set, nothing is waited for.
        """
        if self._random.random() < self._aborts:
            self._abort()
        application = self._application
        busy = application.topology.layout.partitions - 1
        self._producer.begin_transaction()
        written = application.write(
            self._producer,
            [record._replace(partition=number % busy) for number, record in enumerate(records)],
            over,
        )
        self._producer.commit_transaction(TIMEOUT_SECONDS)
        application.inputs += written
        for record in application.inputs if not application.audit.visible else written:
            application.audit.visible[record.partition] = record.offset + 1

    def _abort(self) -> None:
        application = self._application
        texts = [
            (f"aborted-{self.aborted}-{number}", f"aborted {self.aborted} {number} " * 20)
            for number in range(ABORTED_RECORDS * application.topology.layout.partitions)
        ]
        self._producer.begin_transaction()
        application.write(self._producer, application.documents(texts))
        self._producer.abort_transaction(TIMEOUT_SECONDS)
        self.aborted += 1
