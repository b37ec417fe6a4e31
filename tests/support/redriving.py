"""An application with rejected documents on a real broker, and `neardup redrive` run on it."""

import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from confluent_kafka import Consumer, Message, Producer
from confluent_kafka import TopicPartition as Place

from localkafka.broker import Kafka, wait_until
from tests.support.command_line import on_kafka
from worker.settings.loading import load
from worker.settings.model import Settings

REASON = "no-text"
DOUBTS = ("redrive: outcome of the transaction unknown", "redrive: transaction rolled back")
"""What a run may log of a transaction before it reads how that has ended. After a record was
refused, or where an answer takes too long, any run may have such a doubt."""


@dataclass
class Redriving:
    kafka: Kafka
    app: str
    started: list[subprocess.Popen[str]] = field(default_factory=list)
    _watcher: Consumer | None = None

    def __post_init__(self) -> None:
        """Make the topics as versions before did, without one for the progress."""
        for name in ("documents", "rejected"):
            sizes = {"max.message.bytes": 32 << 20} if name == "rejected" else {}
            self.kafka.create_topic(self.topic(name), 2, sizes)

    def topic(self, name: str) -> str:
        return f"{self.app}.{name}"

    @property
    def settings(self) -> Settings:
        return load(overrides={"kafka.bootstrap": self.kafka.bootstrap, "app": self.app})

    def reject(
        self,
        values: Iterable[bytes],
        reason: str = REASON,
        *,
        compression: str = "none",
        headers: Iterable[tuple[str, bytes]] = (),
    ) -> None:
        """Write rejected records: one a value, turn by turn to both partitions."""
        producer = Producer(
            {
                "bootstrap.servers": self.kafka.bootstrap,
                "compression.type": compression,
                "message.max.bytes": 1_000_000_000,
                "enable.idempotence": True,  # Retries keep the order.
            }
        )
        failures: list[object] = []
        for number, value in enumerate(values):
            producer.produce(
                self.topic("rejected"),
                value,
                partition=number % 2,
                headers=[
                    ("neardup-error-reason", f"{reason}: why".encode()),
                    ("neardup-error-topic", self.topic("documents").encode()),
                    ("neardup-error-partition", b"1"),
                    ("neardup-error-offset", b"%d" % number),
                    *headers,
                ],
                on_delivery=lambda error, _: failures.append(error) if error else None,
            )
        assert producer.flush(60) == 0
        assert not failures

    def start(self, line: str = "") -> subprocess.Popen[str]:
        """Begin a run."""
        process = subprocess.Popen(
            [sys.executable, "-m", "worker.cli", "redrive", *line.split()],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={
                **os.environ,
                "NEARDUP_KAFKA__BOOTSTRAP": self.kafka.bootstrap,
                "NEARDUP_APP": self.app,
            },
        )
        self.started.append(process)
        return process

    def run(self, line: str = "", status: int = 0) -> str:
        """Run to the end in this process, and give what it said, without what it logged."""
        connection = ("--bootstrap", self.kafka.bootstrap, "--app", self.app)
        done = on_kafka("redrive", *connection, *line.split())
        assert done.returncode == status, done.stderr
        return done.stderr

    def logged(self) -> str:
        """Run to the end, and give all that it said."""
        process = self.start()
        said = process.communicate(timeout=120)[1]
        assert process.returncode == 0, said
        return said

    def close(self) -> None:
        """End what is left of the runs."""
        for process in self.started:
            if process.poll() is None:
                process.kill()
            process.communicate()
        if self._watcher is not None:
            self._watcher.close()

    def has_sent(self, count: int) -> bool:
        """Tell whether the documents have so many offsets, markers included; asked often."""
        if self._watcher is None:
            self._watcher = Consumer({"bootstrap.servers": self.kafka.bootstrap, "group.id": "w"})
        places = [Place(self.topic("documents"), number) for number in (0, 1)]
        ends = [self._watcher.get_watermark_offsets(place, 10)[1] for place in places]
        return sum(ends) >= count

    def read(self, name: str, partitions: int = 2) -> list[Message]:
        """Give all committed records of a topic."""
        consumer = Consumer(
            {
                "bootstrap.servers": self.kafka.bootstrap,
                "group.id": "reader",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "isolation.level": "read_committed",
            }
        )
        consumer.assign([Place(self.topic(name), number, 0) for number in range(partitions)])
        found: list[Message] = []
        ended: set[int | None] = set()

        def at_end() -> bool:
            for message in consumer.consume(1_000, 0.2):
                if message.error() is None:
                    found.append(message)
                else:
                    ended.add(message.partition())
            return len(ended) == partitions

        wait_until(at_end, 60, f"the end of {name}")
        consumer.close()
        return found

    def sent(self) -> Counter[bytes]:
        """Count the documents by their values."""
        return Counter(message.value() or b"" for message in self.read("documents"))


def numbered(count: int, of: str = "") -> list[bytes]:
    """Give values that differ."""
    return [f"{of}{number}-{time.time_ns()}".encode() for number in range(count)]
