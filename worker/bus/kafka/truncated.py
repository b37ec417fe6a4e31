"""Looks from outside for logs that have lost their end and grown again."""

from __future__ import annotations

from collections.abc import Mapping
from time import monotonic

from confluent_kafka import TopicPartition as KafkaPartition

from worker.bus.kafka.codes import Means, means
from worker.bus.kafka.config import KafkaOptions
from worker.bus.kafka.errors import passes, refusal, truncation
from worker.bus.kafka.groups import group_client
from worker.bus.port import Claim, LogTruncated, TopicPartition, Unanswered

__all__ = ["truncated_logs"]

_WAIT_SECONDS = 0.1
_FETCH: Mapping[str, object] = {
    "enable.partition.eof": True,
    "fetch.message.max.bytes": 1,  # One batch of each log, if it is not its end.
    "fetch.wait.max.ms": 10,
}


def truncated_logs(
    options: KafkaOptions, group: str, claims: Mapping[TopicPartition, Claim], seconds: float
) -> dict[TopicPartition, LogTruncated]:
    """Return the logs that contradict what is claimed of them.

    librdkafka compares the leader epochs before it fetches, with the right to describe the topic.
    So a record, the end of the log or a missing right to read mean that a log does not contradict.
    ``group`` only names the client.

    Raises:
        Unanswered: no answer about one of them in time.
        BusError: the brokers refuse.
    """
    found: dict[TopicPartition, LogTruncated] = {}
    left = set(claims)
    deadline = monotonic() + seconds
    with group_client(options, group, **_FETCH) as consumer:
        consumer.assign(
            [
                KafkaPartition(*place, claim.offset, "", claim.epoch)
                for place, claim in claims.items()
            ]
        )
        while left:
            if monotonic() > deadline:
                topic, number = min(left)
                raise Unanswered(
                    f"{topic}[{number}] ({len(left)} of {len(claims)} logs): its leader did not"
                    f" compare leader epochs within {seconds:.0f} s"
                )
            for message in consumer.consume(len(claims), _WAIT_SECONDS):
                place = TopicPartition(message.topic() or "", message.partition() or 0)
                error = message.error()
                if error is not None and not place.topic and not passes(error):
                    raise refusal(error, f"group {group}", f"Describe on group {group}")
                if place not in left or (
                    error is not None and passes(error) and not means(error, Means.END)
                ):
                    continue
                left.remove(place)
                consumer.incremental_unassign([KafkaPartition(*place)])
                truncated = None if error is None else truncation(error, place)
                if truncated is not None:
                    found[place] = truncated
    return found
