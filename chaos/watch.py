"""A reader that notes when the committed records of a topic come."""

from threading import Event, Thread
from time import monotonic
from typing import Final, Self

from confluent_kafka import OFFSET_END, Consumer, TopicPartition

from tests.support.audit import Arrival
from tests.support.clients import close
from worker.closing import Closing

INTERVAL_SECONDS: Final = 0.2
MOST_RECORDS: Final = 1_000


class TopicWatch(Closing):
    """Notes when partition 0 of a topic gets longer. Use as a context manager.

    It reads the records, as any consumer does, and so finds a new leader. A client that only asks
    where the log ends goes on asking a leader that is gone: for 36 s in a soak, until it was back.
    """

    def __init__(self, bootstrap: str, topic: str) -> None:
        """Take what to watch."""
        self.arrivals: list[Arrival] = []
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": f"{topic}-watch",
                "enable.auto.commit": False,
                "auto.offset.reset": "latest",
                "isolation.level": "read_committed",
                "fetch.message.max.bytes": 16 << 20,
                "log_level": 0,
            }
        )
        self._consumer.assign([TopicPartition(topic, 0, OFFSET_END)])
        self._over = Event()
        self._thread = Thread(target=self._run, name="watch", daemon=True)

    def _run(self) -> None:
        while not self._over.is_set():
            found = self._consumer.consume(MOST_RECORDS, INTERVAL_SECONDS)
            if records := sum(message.error() is None for message in found):
                self.arrivals.append(Arrival(monotonic(), records, 0.0))

    def __enter__(self) -> Self:
        """Begin."""
        self._thread.start()
        return self

    def close(self) -> None:
        """End."""
        self._over.set()
        self._thread.join()
        close(self._consumer)
