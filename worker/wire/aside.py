"""Ranges of ``documents`` that no worker reads, because a batch there can't be unpacked."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec


class SetAside(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A half-open range of offsets of a partition; all of them are rejected unread."""

    partition: int
    start: int
    end: int


def beyond(aside: Iterable[SetAside], partition: int, offset: int) -> int | None:
    """Return the offset after the ranges that have this one; None if none has it."""
    own = sorted((one.start, one.end) for one in aside if one.partition == partition)
    at = offset
    for start, end in own:
        if start <= at < end:
            at = end
    return at if at > offset else None


def by_partition(aside: Iterable[SetAside]) -> dict[int, list[range]]:
    """Return the ranges of each partition, in order."""
    found: dict[int, list[range]] = {}
    for one in sorted(aside, key=lambda one: (one.partition, one.start)):
        found.setdefault(one.partition, []).append(range(one.start, one.end))
    return found
