"""A look, many times a second, at how far the committed records of a topic reach."""

from threading import Event, Thread
from time import monotonic
from typing import Final, Self

from confluent_kafka import Consumer, KafkaException, TopicPartition

from tests.support.audit import Arrival
from worker.files.closing import Closing

__all__ = ["TopicWatch"]

INTERVAL_SECONDS: Final = 0.2
TIMEOUT_SECONDS: Final = 2.0


class TopicWatch(Closing):
    """Notes when partition 0 of a topic gets longer. Use as a context manager."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        """Take what to watch."""
        self.arrivals: list[Arrival] = []
        self._place = TopicPartition(topic, 0)
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": f"{topic}-watch",
                "isolation.level": "read_committed",
                "log_level": 0,
            }
        )
        self._over = Event()
        self._thread = Thread(target=self._run, name="watch", daemon=True)

    def _run(self) -> None:
        last = -1
        while not self._over.wait(INTERVAL_SECONDS):
            try:
                _, end = self._consumer.get_watermark_offsets(
                    self._place, TIMEOUT_SECONDS, cached=False
                )
            except KafkaException:  # Its leader is away, which is what is to be seen.
                continue
            if end > last:
                self.arrivals.append(Arrival(monotonic(), end - max(last, 0), 0.0))
                last = end

    def __enter__(self) -> Self:
        """Begin."""
        self._thread.start()
        return self

    def close(self) -> None:
        """End."""
        self._over.set()
        self._thread.join()
        self._consumer.close()
