"""librdkafka's configuration: what the user may set, and what the promise depends on."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

__all__ = ["PROTECTED", "READS", "KafkaOptions", "ProtectedKeyError"]

_log = logging.getLogger("librdkafka")

Value = str | int | float | bool

PROTECTED = frozenset(
    {
        "acks",
        "allow.auto.create.topics",
        "auto.commit.enable",
        "auto.commit.interval.ms",
        "auto.offset.reset",
        "check.crcs",
        "delivery.timeout.ms",
        "enable.auto.commit",
        "enable.auto.offset.store",
        "enable.gapless.guarantee",
        "enable.idempotence",
        "enable.partition.eof",
        "group.id",
        "group.instance.id",
        "group.protocol",
        "group.remote.assignor",
        "isolation.level",
        "log.connection.close",
        "log_level",
        "max.in.flight",
        "max.poll.interval.ms",
        "max.in.flight.requests.per.connection",
        "message.send.max.retries",
        "message.timeout.ms",
        "partition.assignment.strategy",
        "partitioner",
        "request.required.acks",
        "retries",
        "session.timeout.ms",
        "transaction.timeout.ms",
        "transactional.id",
    }
)
"""Keys on which exactly-once or the order of verdicts depends; they can't be overridden."""


READS: Mapping[str, Value] = {
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "auto.offset.reset": "error",
    "isolation.level": "read_committed",
    "allow.auto.create.topics": False,
    "check.crcs": True,
}
"""How everybody here reads: committed records, as they were written, from where it was told."""

_FETCHES: Mapping[str, Value] = {
    "queued.min.messages": 20_000,
    "queued.max.messages.kbytes": 32 << 10,
    "fetch.wait.max.ms": 100,
    "fetch.queue.backoff.ms": 20,
    "fetch.error.backoff.ms": 100,
    "reconnect.backoff.ms": 50,
    "reconnect.backoff.max.ms": 1_000,
    "topic.metadata.refresh.interval.ms": 60_000,
    # A fetch is answered after 100 ms at most; one whose answer is lost waits for so long.
    "socket.timeout.ms": 10_000,
}
"""How a live feed is fetched: ahead of who reads it, and again soon after a pause or an error."""

_ANSWER_SECONDS = 6.0
"""What a coordinator may take to answer, beyond what records take to get to the brokers."""

_HEARD = {"log.connection.close": True, "log_level": 6}
"""The log is where librdkafka tells of a request that it has sent again: see `LogListener`."""


class ProtectedKeyError(ValueError):
    """A setting would break the promise."""


@dataclass(frozen=True, slots=True)
class KafkaOptions:
    """How to reach Kafka; the mappings hold raw librdkafka keys."""

    bootstrap: str
    protocol: Literal["classic", "consumer"] = "classic"
    session_timeout_ms: int = 10_000
    """Of the classic protocol; under KIP-848 it is the broker's setting."""
    max_poll_interval_ms: int = 60_000
    """How long a member may be away between polls before the group does without it."""
    transaction_timeout_ms: int = 4_000
    request_timeout_seconds: float = 30.0
    common: Mapping[str, Value] = field(default_factory=dict)
    consumer: Mapping[str, Value] = field(default_factory=dict)
    producer: Mapping[str, Value] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse keys that the promise depends on.

        Raises:
            ProtectedKeyError: names the key.
        """
        tables = {"common": self.common, "consumer": self.consumer, "producer": self.producer}
        for name, table in tables.items():
            for key in table:
                if key in PROTECTED:
                    msg = f"kafka.{name}: {key} can't be overridden: exactly-once depends on it"
                    raise ProtectedKeyError(msg)

    @property
    def commit_timeout_seconds(self) -> float:
        """Give how long a commit or an abort may take: records may still be on their way."""
        return self.transaction_timeout_ms / 1_000 + _ANSWER_SECONDS

    @property
    def longest_transaction_seconds(self) -> float:
        """Give how long a transaction may take in all: two waits, its commit, and its abort."""
        return 2 * (self.transaction_timeout_ms / 1_000 + self.commit_timeout_seconds)

    def client(self, role: str) -> dict[str, Any]:
        """Configure any client."""
        return {
            "client.id": f"neardup-{role}",
            "log.connection.close": False,
            **self.common,
            "bootstrap.servers": self.bootstrap,
            "logger": _log,
        }

    @property
    def _debug(self) -> dict[str, Any]:
        """Configure what librdkafka logs: `Identities` wants its lines about changed topics."""
        given = self.consumer.get("debug", self.common.get("debug"))
        return {"debug": f"{given},metadata" if given else "metadata"}

    def consuming(self, group: str, instance: str) -> dict[str, Any]:
        """Configure a stage's consumer: static member, co-partitioned, committed records only."""
        config = {
            **self.client(group),
            **_FETCHES,
            **self.consumer,
            **self._debug,
            "max.poll.interval.ms": self.max_poll_interval_ms,
            "group.id": group,
            "group.instance.id": instance,
            "group.protocol": self.protocol,
            **READS,
            **_HEARD,
        }
        if self.protocol == "classic":
            config["partition.assignment.strategy"] = "range"
            config["session.timeout.ms"] = self.session_timeout_ms
            config["heartbeat.interval.ms"] = max(500, self.session_timeout_ms // 5)
        else:
            config["group.remote.assignor"] = "range"
        return config

    def reading(self, group: str) -> dict[str, Any]:
        """Configure a consumer that reads beside a group, and is no member of it."""
        return {
            **self.client(f"{group}-reader"),
            **_FETCHES,
            **self.consumer,
            **self._debug,
            "group.id": group,
            **READS,
        }

    def producing(self, transactional_id: str, *, compress: bool = True) -> dict[str, Any]:
        """Configure a stage's producer: transactional, with a short timeout."""
        config = {
            **self.client(transactional_id),
            "linger.ms": 2,
            "compression.type": "lz4" if compress else "none",
            "batch.num.messages": 20_000,
            "batch.size": 1_000_000,
            "queue.buffering.max.messages": 200_000,
            "queue.buffering.max.kbytes": 256 << 10,
            "reconnect.backoff.ms": 50,
            "reconnect.backoff.max.ms": 1_000,
            "retry.backoff.ms": 20,
            **self.producer,
            # librdkafka measures before compression, topics after it: a document that was sent
            # compressed may be larger than any of them seems to take, and is rejected as it is.
            "message.max.bytes": 1_000_000_000,
            "transactional.id": transactional_id,
            "transaction.timeout.ms": self.transaction_timeout_ms,
            "message.timeout.ms": self.transaction_timeout_ms,
            "enable.idempotence": True,
            "partitioner": "murmur2_random",
            **_HEARD,
        }
        if "socket.timeout.ms" in config:
            # librdkafka refuses a longer one than the transaction's.
            config["socket.timeout.ms"] = min(
                int(config["socket.timeout.ms"]), self.transaction_timeout_ms
            )
        return config
