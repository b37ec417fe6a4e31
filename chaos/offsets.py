"""Where logs begin and end, asked of the brokers."""

from collections.abc import Collection
from typing import Final

from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._listoffsets import OffsetSpec

TIMEOUT_SECONDS: Final = 10.0

Place = tuple[str, int]
"""A partition: its topic, and its number."""


def starts(admin: AdminClient, places: Collection[Place]) -> dict[Place, int]:
    """Return the offset of each partition's first record, or its end if there is none."""
    return _asked(admin, places, OffsetSpec.earliest())  # type: ignore[no-untyped-call]


def ends(admin: AdminClient, places: Collection[Place]) -> dict[Place, int]:
    """Return the offset after each partition's last record, committed or not."""
    return _asked(admin, places, OffsetSpec.latest())  # type: ignore[no-untyped-call]


def offsets_from(admin: AdminClient, places: Collection[Place], at: int) -> dict[Place, int]:
    """Return each partition's first offset of a time, in ms, or later; -1 if there is none."""
    return _asked(admin, places, OffsetSpec.for_timestamp(at))


def _asked(admin: AdminClient, places: Collection[Place], spec: OffsetSpec) -> dict[Place, int]:
    wanted = {TopicPartition(*place): spec for place in places}
    found = admin.list_offsets(wanted, request_timeout=TIMEOUT_SECONDS)
    return {
        (place.topic, place.partition): answer.result(TIMEOUT_SECONDS).offset
        for place, answer in found.items()
    }
