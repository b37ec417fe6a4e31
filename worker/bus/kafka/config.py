"""librdkafka's configuration: what users may set, and what exactly-once depends on."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

_log = logging.getLogger("librdkafka")

COMPRESSION = "lz4"
"""How stages compress what they write, unless a setting says otherwise."""

Value = str | int | float | bool

PROTECTED = frozenset(
    {
        "acks",
        "allow.auto.create.topics",
        "auto.commit.enable",
        "auto.commit.interval.ms",
        "auto.offset.reset",
        "check.crcs",
        "delivery.report.only.error",
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
"""For all consumers: committed records only, checksums verified, explicit offsets."""

_FETCHES: Mapping[str, Value] = {
    "fetch.wait.max.ms": 100,
    "fetch.queue.backoff.ms": 20,
    "fetch.error.backoff.ms": 100,
    "reconnect.backoff.ms": 50,
    "reconnect.backoff.max.ms": 1_000,
    # A member that joins while a broker lists no brokers may wait for the next of these.
    "topic.metadata.refresh.interval.ms": 10_000,
    # A fetch is answered within 100 ms; this is how long a fetch waits if its answer is lost.
    "socket.timeout.ms": 10_000,
}
"""For live feeds: prefetch, and retry soon after a pause or an error."""

_ANSWER_SECONDS = 6.0
"""How long a coordinator may take to answer, beyond the time to deliver the records."""

_LOGGED = {"log.connection.close": True, "log_level": 6}
"""librdkafka reports repeated requests only in its log: see `LogListener`."""


class OptionError(ValueError):
    """librdkafka can't be configured like this; the message is one line, without any value."""


class ProtectedKeyError(OptionError):
    """A setting would break exactly-once or the order of verdicts."""


_QUEUED_MESSAGES = 20_000
_MESSAGE_BYTES = 1_000
"""What librdkafka takes for a fetched message beside its bytes, rounded up: a queue of short
messages must not take a multiple of its share."""
_LARGEST = "message.max.bytes"
_LARGEST_BYTES = 1_000_000
"""librdkafka's default for the largest record. A fetch can't be smaller."""
_LARGEST_FETCH = "fetch.max.bytes"
_LARGEST_ANSWER = "receive.message.max.bytes"
"""Also the most to which librdkafka unpacks a batch of zstd."""
_ANSWER_BYTES = 1 << 20
"""What an answer may have beside the records of a fetch."""
_MOST = (1 << 31) - 1

_SINGLE: Mapping[str, Value] = {
    # A broker returns at least one whole batch, and here no other.
    "fetch.message.max.bytes": 1,
    "max.partition.fetch.bytes": 1,
    "queued.min.messages": 1,
    # How long the next batch is left alone once one is in the queue: time enough to take that one,
    # and to note that the next one is being fetched.
    "fetch.queue.backoff.ms": 20,
}
"""For a reader of single batches."""


@dataclass(frozen=True, slots=True)
class ClientMemory:
    """How much librdkafka's clients may keep in their queues, in bytes.

    A consumer fetches until its queue is full. Meanwhile one more fetch may arrive from each
    broker.
    """

    fetched: tuple[int, int] = (32 << 20, 16 << 20)
    """The queue of a stage's consumer, and the most of one fetch."""
    log_fetched: tuple[int, int] = (32 << 20, 16 << 20)
    """The same, of a reader outside groups."""
    produced: int = 32 << 20
    """The queue of a producer."""
    unpacked: int = 256 << 20
    """The most to which a batch may unpack. librdkafka knows that beforehand of zstd alone."""


@dataclass(frozen=True, slots=True)
class KafkaOptions:
    """How to reach Kafka; the mappings hold raw librdkafka keys."""

    bootstrap: str
    protocol: Literal["classic", "consumer"] = "classic"
    session_timeout_ms: int = 10_000
    """For the classic protocol; under KIP-848 this is a broker setting."""
    max_poll_interval_ms: int = 60_000
    """How long a member may go without a poll before the group evicts it."""
    transaction_timeout_ms: int = 4_000
    """When brokers abort a transaction."""
    delivery_timeout_ms: int | None = None
    """When a producer gives a record up; None: at the same time. A producer whose transaction the
    brokers abort looks fenced. A member's group says that it is not, but nobody tells a writer
    outside of groups: it has to give up first."""
    request_timeout_seconds: float = 30.0
    renewal_timeout_seconds: float = 90.0
    """How long a new producer may wait for its coordinator. Shorter than the watchdog's patience:
    brokers that are away for a minute shouldn't end a worker, which would take longer to return."""
    common: Mapping[str, Value] = field(default_factory=dict, repr=False)
    consumer: Mapping[str, Value] = field(default_factory=dict, repr=False)
    producer: Mapping[str, Value] = field(default_factory=dict, repr=False)
    memory: ClientMemory = ClientMemory()
    """A key that is set takes precedence."""
    oauth: Callable[[str], tuple[Any, ...]] | None = None
    """Called from a thread of librdkafka whenever a client needs a token."""

    def __post_init__(self) -> None:
        """Refuse protected keys.

        Raises:
            ProtectedKeyError: a key is in `PROTECTED`.
        """
        for name, table in self.tables.items():
            for key in table:
                if key in PROTECTED:
                    msg = f"kafka.{name}: {key} can't be overridden: exactly-once depends on it"
                    raise ProtectedKeyError(msg)

    @property
    def tables(self) -> Mapping[str, Mapping[str, Value]]:
        """Return the keys that users set, by the name of their table."""
        return {"common": self.common, "consumer": self.consumer, "producer": self.producer}

    @property
    def commit_timeout_seconds(self) -> float:
        """Return how long a commit or an abort may take, while records may still be in flight."""
        return self.transaction_timeout_ms / 1_000 + _ANSWER_SECONDS

    @property
    def longest_transaction_seconds(self) -> float:
        """Return how long a whole transaction may take: two waits, its commit, and its abort."""
        return 2 * (self.transaction_timeout_ms / 1_000 + self.commit_timeout_seconds)

    def client_config(self, role: str) -> dict[str, Any]:
        """Return the configuration of any client."""
        config = {
            "client.id": f"neardup-{role}",
            "log.connection.close": False,
            **self.common,
            "bootstrap.servers": self.bootstrap,
            "logger": _log,
        }
        return config if self.oauth is None else {**config, "oauth_cb": self.oauth}

    @property
    def _debug(self) -> dict[str, Any]:
        """Return what librdkafka logs: `Identities` needs the lines about changed topics."""
        given = self.consumer.get("debug", self.common.get("debug"))
        return {"debug": f"{given},metadata" if given else "metadata"}

    def _queue(self, sizes: tuple[int, int]) -> dict[str, Value]:
        """Return the keys of a consumer with a queue and a fetch of these sizes."""
        queue, fetch = sizes
        largest = {**self.common, **self.consumer}.get(_LARGEST, _LARGEST_BYTES)
        least = int(largest) if str(largest).isdecimal() else 0
        most = max(fetch, least)
        given = {**self.common, **self.consumer}.get(_LARGEST_FETCH, most)
        asked = int(given) if str(given).isdecimal() else most
        return self._unless_common(
            {
                "queued.min.messages": max(1, min(_QUEUED_MESSAGES, queue // _MESSAGE_BYTES)),
                "queued.max.messages.kbytes": queue >> 10,
                _LARGEST_FETCH: most,
                _LARGEST_ANSWER: min(_MOST, max(self.memory.unpacked, asked + _ANSWER_BYTES)),
            }
        )

    @property
    def unpacked(self) -> int:
        """Return the most bytes to which librdkafka unpacks a batch of zstd."""
        keys = {**self._queue(self.memory.fetched), **self.common, **self.consumer}
        return int(keys[_LARGEST_ANSWER])

    def _unless_common(self, keys: Mapping[str, Value]) -> dict[str, Value]:
        """Return those of these keys that are not set for all clients."""
        return {key: value for key, value in keys.items() if key not in self.common}

    def member_config(self, group: str, instance: str) -> dict[str, Any]:
        """Return a stage's consumer configuration: static, co-partitioned, read-committed."""
        config = {
            **self.client_config(group),
            **_FETCHES,
            **self._queue(self.memory.fetched),
            **self.consumer,
            **self._debug,
            "max.poll.interval.ms": self.max_poll_interval_ms,
            "group.id": group,
            "group.instance.id": instance,
            "group.protocol": self.protocol,
            **READS,
            **_LOGGED,
        }
        if self.protocol == "classic":
            config["partition.assignment.strategy"] = "range"
            config["session.timeout.ms"] = self.session_timeout_ms
            config["heartbeat.interval.ms"] = max(500, self.session_timeout_ms // 5)
        else:
            config["group.remote.assignor"] = "range"
        return config

    def reader_config(self, group: str, *, single: bool = False) -> dict[str, Any]:
        """Return the configuration of a consumer that reads without joining the group.

        ``single``: it fetches one batch at a time.
        """
        return {
            **self.client_config(f"{group}-reader"),
            **_FETCHES,
            **self._queue(self.memory.log_fetched),
            **self.consumer,
            **(_SINGLE if single else {}),
            **self._debug,
            "group.id": group,
            **READS,
        }

    def producer_config(self, transactional_id: str, *, compress: bool = True) -> dict[str, Any]:
        """Return a stage's producer configuration: transactional, with a short timeout."""
        config = {
            **self.client_config(transactional_id),
            "linger.ms": 2,
            "compression.type": COMPRESSION if compress else "none",
            "batch.num.messages": 20_000,
            "batch.size": 1_000_000,
            "queue.buffering.max.messages": 200_000,
            **self._unless_common({"queue.buffering.max.kbytes": self.memory.produced >> 10}),
            "reconnect.backoff.ms": 50,
            "reconnect.backoff.max.ms": 1_000,
            "retry.backoff.ms": 20,
            **self.producer,
            # librdkafka measures before compression, topics after it. A document that came in
            # compressed may exceed every max.message.bytes, and must still fit on *rejected*.
            "message.max.bytes": 1_000_000_000,
            "transactional.id": transactional_id,
            "transaction.timeout.ms": self.transaction_timeout_ms,
            "message.timeout.ms": self.delivery_timeout_ms or self.transaction_timeout_ms,
            "enable.idempotence": True,
            "partitioner": "murmur2_random",
            **_LOGGED,
        }
        # librdkafka requires a value of at most transaction.timeout.ms, and takes that by default.
        socket = config.get("socket.timeout.ms", self.delivery_timeout_ms)
        if socket is not None:
            config["socket.timeout.ms"] = min(int(socket), config["message.timeout.ms"])
        return config
