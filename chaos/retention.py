"""Time passes for the logs: what is older than a while is deleted from every topic.

Where ``neardup topics verify`` takes a topic's retention, the broker does it. A worker does
not start while a topic's retention is shorter than the rules in `worker.admin.plan` say;
there the same is done from outside: whatever is older is deleted up to the first younger
record, or to the end of the log, markers and all. ``fingerprints`` is left to the workers, which
trim it behind their snapshots.
"""

from collections.abc import Collection
from threading import Event, Thread
from time import time
from typing import Final, Self

from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.admin._resource import ResourceType

from chaos.offsets import Place, ends, offsets_from, starts
from localkafka.broker import wait_until
from tests.support.application import ApplicationUnderTest
from worker.admin.plan import DEFAULT_MAX_BYTES, TopicPlan, plan
from worker.closing import Closing
from worker.topology import Topology

CLEANING: Final = {
    "log.initial.task.delay.ms": 1_000,
    "log.retention.check.interval.ms": 1_000,
    "log.segment.delete.delay.ms": 1_000,
    "offsets.retention.minutes": 5,
    "offsets.retention.check.interval.ms": 5_000,
}
"""For the brokers of such a run: by default they look every 5 minutes (10 for offsets)."""

SETTING: Final = "retention.ms"
INTERVAL_SECONDS: Final = 1.0
TIMEOUT_SECONDS: Final = 10.0
SLACK_SECONDS: Final = 60.0
ROLLS: Final = 4
"""How many segments a retention has."""


class Retention(Closing):
    """Deletes what is older than some seconds. Use as a context manager."""

    def __init__(
        self, admin: AdminClient, application: ApplicationUnderTest, seconds: float
    ) -> None:
        """Take whose topics, and after how long."""
        self.seconds = seconds
        self._admin = admin
        topology = application.topology
        self._plans = list(plan(application.settings, topology, DEFAULT_MAX_BYTES))
        self._own = [one for one in self._plans if not _takes(one, seconds)]
        self._swept = [
            (one.name, number)
            for one in self._own
            if one.name != topology.fingerprints
            for number in range(one.partitions)
        ]
        self._over = Event()
        self._thread = Thread(target=self._run, name="retention", daemon=True)

    def await_emptied(self, places: Collection[Place]) -> None:
        """Wait until partitions hold nothing.

        Raises:
            TimeoutError: they still do, long after all in them was old.
        """

        def emptied() -> bool:
            return starts(self._admin, places) == ends(self._admin, places)

        what = ", ".join(f"{topic}[{number}]" for topic, number in places)
        wait_until(emptied, 2 * self.seconds + SLACK_SECONDS, f"retention to empty {what}")

    def forget_answers(self, topology: Topology) -> None:
        """Delete the same from the answers of another generation of the index, too."""
        answers = [
            (topology.matches(shard), number)
            for shard in range(topology.layout.shards)
            for number in range(topology.layout.partitions)
        ]
        self._swept = sorted({*self._swept, *answers})

    def _run(self) -> None:
        while not self._over.wait(INTERVAL_SECONDS):
            try:
                self._sweep()
            except (KafkaException, TimeoutError):  # A leader is away; the next round does it.
                continue

    def _sweep(self) -> None:
        # The ends first: what is written from now on is young.
        swept = self._swept
        high = ends(self._admin, swept)
        young = offsets_from(self._admin, swept, int((time() - self.seconds) * 1_000))
        low = starts(self._admin, swept)
        due = []
        for place in swept:
            until = young[place] if young[place] >= 0 else high[place]
            if until > low[place]:
                due.append(TopicPartition(*place, until))
        if due:
            for deleted in self._admin.delete_records(
                due, request_timeout=TIMEOUT_SECONDS
            ).values():
                deleted.result(TIMEOUT_SECONDS)

    def _set(self) -> None:
        milliseconds = int(self.seconds * 1_000)
        wanted = {SETTING: milliseconds, "segment.ms": milliseconds // ROLLS}
        resources = [
            ConfigResource(
                ResourceType.TOPIC,
                one.name,
                incremental_configs=[
                    ConfigEntry(name, str(value), incremental_operation=AlterConfigOpType.SET)
                    for name, value in wanted.items()
                ],
            )
            for one in self._plans
            if one not in self._own
        ]
        for done in self._admin.incremental_alter_configs(resources).values():
            done.result(TIMEOUT_SECONDS)

    def __enter__(self) -> Self:
        """Begin."""
        self._set()
        self._thread.start()
        return self

    def close(self) -> None:
        """End; the topics keep their settings."""
        alive = self._thread.is_alive()
        self._over.set()
        self._thread.join()
        assert alive, "the logs have forgotten nothing since the thread died, see above"


def _takes(one: TopicPlan, seconds: float) -> bool:
    """Tell whether workers start with such a retention of a topic."""
    return all(
        rule.holds(str(int(seconds * 1_000)))
        for rule in one.rules
        if rule.setting == SETTING and rule.severity == "error"
    )
