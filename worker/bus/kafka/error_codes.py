# ruff: noqa: SLF001 -- librdkafka's own codes begin with an underscore
"""The only table of librdkafka's and Kafka's error codes, and what each means here.

The consequence of a meaning depends on the context: `worker.bus.kafka.errors` has those for
transactions, polls and read-only requests.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Flag, auto

from confluent_kafka import KafkaError


class Means(Flag):
    """What a code means; some codes mean several things."""

    LATE = auto()
    """No answer in time."""
    AWAY = auto()
    """No broker can be reached, or none answers."""
    DOWN = auto()
    """No broker can be reached; earlier errors say why."""
    MOVING = auto()
    """A coordinator or a leader is moving. It passes, though librdkafka doesn't call it retriable.

    Kafka's own clients retry each of these: they are subclasses of `RetriableException` in
    `Errors`.
    """
    PASSING = auto()
    """Polls may report it while brokers come and go, or while members join and leave."""
    DISTURBING = auto()
    """A request may be sent again, or arrive late."""
    SUPERSEDED = auto()
    """Another producer has the transactional id, or a transaction has timed out."""
    EVICTED = auto()
    """Another member has this instance's name, or still has it."""
    UNRELEASED = auto()
    """The instance's last member has not left yet."""
    OCCUPIED = auto()
    """The group has members, so its offsets can't be set from outside."""
    DENIED = auto()
    """An ACL is missing."""
    SHUT_OUT = auto()
    """The brokers refuse the client's credentials, or it refuses their certificates."""
    REFUSED = auto()
    """A topic refuses a record, however often it is sent."""
    TOO_LONG = auto()
    """The producer's transaction timeout is longer than the brokers allow."""
    DAMAGED = auto()
    """A batch fails its checksum, or has an unknown format."""
    PACKED = auto()
    """A batch passes its checksum and can't be unpacked."""
    OUT_OF_RANGE = auto()
    """The log doesn't have the position."""
    END = auto()
    """Not an error: the end of a partition's committed records was reached."""
    STOPPED = auto()
    """librdkafka has stopped a partition, or is about to."""
    MISSING = auto()
    """The topic does not exist."""
    EXISTS = auto()
    """The topic already exists."""
    UNHEARD = auto()
    """The client hasn't heard of the partition: it was added, or a broker has just started."""
    LEADERLESS = auto()
    """librdkafka may use it to report a partition without a leader."""
    FATAL = auto()
    """The client is unusable; only the text names the actual code."""


_ELSEWHERE = Means.MOVING | Means.PASSING

CODES: Mapping[int, Means] = {
    # Timeouts and unreachable brokers.
    KafkaError._TIMED_OUT: (
        Means.LATE | Means.AWAY | Means.PASSING | Means.DISTURBING | Means.LEADERLESS
    ),
    # A request that was never sent: its broker could not be reached meanwhile.
    KafkaError._TIMED_OUT_QUEUE: Means.LATE | Means.AWAY | Means.PASSING | Means.DISTURBING,
    KafkaError._TRANSPORT: Means.AWAY | _ELSEWHERE | Means.DISTURBING,
    KafkaError._ALL_BROKERS_DOWN: Means.AWAY | Means.DOWN | Means.PASSING | Means.DISTURBING,
    KafkaError._RESOLVE: Means.AWAY | Means.PASSING,
    KafkaError.BROKER_NOT_AVAILABLE: Means.AWAY,
    KafkaError.NETWORK_EXCEPTION: Means.AWAY,
    KafkaError.NOT_CONTROLLER: Means.AWAY,
    KafkaError.REQUEST_TIMED_OUT: Means.PASSING | Means.DISTURBING,
    # A coordinator or a leader moves.
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS: _ELSEWHERE,
    KafkaError.COORDINATOR_NOT_AVAILABLE: _ELSEWHERE,
    KafkaError.NOT_COORDINATOR: _ELSEWHERE,
    KafkaError.LEADER_NOT_AVAILABLE: _ELSEWHERE,
    KafkaError.NOT_LEADER_FOR_PARTITION: _ELSEWHERE,
    KafkaError._WAIT_COORD: Means.MOVING,
    KafkaError._DESTROY_BROKER: Means.MOVING,
    KafkaError.FENCED_LEADER_EPOCH: Means.MOVING,
    KafkaError.KAFKA_STORAGE_ERROR: Means.MOVING,
    KafkaError.OFFSET_NOT_AVAILABLE: Means.MOVING,
    KafkaError.REPLICA_NOT_AVAILABLE: Means.MOVING,
    KafkaError.UNKNOWN_LEADER_EPOCH: Means.MOVING,
    KafkaError.UNSTABLE_OFFSET_COMMIT: Means.MOVING,
    KafkaError._UNKNOWN_PARTITION: Means.MOVING | Means.UNHEARD,
    KafkaError._NOENT: Means.LEADERLESS,
    # Members of groups.
    KafkaError._MAX_POLL_EXCEEDED: Means.PASSING,
    KafkaError.UNKNOWN_MEMBER_ID: Means.PASSING | Means.OCCUPIED,
    KafkaError.ILLEGAL_GENERATION: Means.PASSING | Means.OCCUPIED,
    KafkaError.NON_EMPTY_GROUP: Means.OCCUPIED,
    KafkaError.STALE_MEMBER_EPOCH: Means.OCCUPIED,
    KafkaError.FENCED_INSTANCE_ID: Means.EVICTED,
    KafkaError.UNRELEASED_INSTANCE_ID: Means.EVICTED | Means.UNRELEASED,
    # Producers and what they write.
    KafkaError._FENCED: Means.SUPERSEDED,
    KafkaError.INVALID_PRODUCER_EPOCH: Means.SUPERSEDED,
    KafkaError.PRODUCER_FENCED: Means.SUPERSEDED,
    KafkaError.INVALID_TRANSACTION_TIMEOUT: Means.TOO_LONG,
    KafkaError.MSG_SIZE_TOO_LARGE: Means.REFUSED,
    KafkaError.RECORD_LIST_TOO_LARGE: Means.REFUSED,
    KafkaError.INVALID_TIMESTAMP: Means.REFUSED,
    KafkaError.INVALID_RECORD: Means.REFUSED,
    KafkaError.POLICY_VIOLATION: Means.REFUSED,
    KafkaError._FATAL: Means.FATAL,
    # Missing permissions.
    KafkaError.TOPIC_AUTHORIZATION_FAILED: Means.DENIED,
    KafkaError.GROUP_AUTHORIZATION_FAILED: Means.DENIED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED: Means.DENIED,
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: Means.DENIED,
    KafkaError.SASL_AUTHENTICATION_FAILED: Means.DENIED | Means.SHUT_OUT,
    KafkaError._AUTHENTICATION: Means.SHUT_OUT,
    KafkaError._SSL: Means.SHUT_OUT,
    # Logs and topics.
    KafkaError._BAD_MSG: Means.DAMAGED,
    KafkaError._BAD_COMPRESSION: Means.PACKED,
    KafkaError._NOT_IMPLEMENTED: Means.DAMAGED,
    KafkaError.INVALID_MSG: Means.DAMAGED,
    KafkaError._AUTO_OFFSET_RESET: Means.OUT_OF_RANGE,
    KafkaError._PARTITION_EOF: Means.END,
    KafkaError._STATE: Means.STOPPED,
    KafkaError._PREV_IN_PROGRESS: Means.STOPPED,
    KafkaError.UNKNOWN_TOPIC_OR_PART: Means.MISSING,
    KafkaError.UNKNOWN_TOPIC_ID: Means.MISSING,
    KafkaError.TOPIC_ALREADY_EXISTS: Means.EXISTS,
}


def means(error: KafkaError, meaning: Means) -> bool:
    """Return whether an error has this meaning, or one of these."""
    return bool(CODES.get(error.code(), Means(0)) & meaning)


def underlying(error: KafkaError) -> Means:
    """Return all meanings of a member's error; of a fatal error, those of the code in its text."""
    found = CODES.get(error.code(), Means(0))
    if Means.FATAL in found:
        for code, meaning in CODES.items():
            lasting = meaning & (Means.EVICTED | Means.DENIED)
            if lasting and KafkaError(code).str() in error.str():
                return meaning
    return found
