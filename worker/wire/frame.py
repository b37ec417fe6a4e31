"""Frames: the layout that they are stamped with, the range that they cover, their size limits.

A frame covers a half-open range of offsets of one partition of ``documents``. The frames of a
partition tile it: each begins where the previous one ended, so whoever reads the next frame
detects a lost or doubled one. Ranges that are set aside have no documents that anyone reads.

A frame stores its documents in columns, which are arrays. The columns of a decoded frame are
read-only views of the record, so a stage that only forwards them never touches single documents.
The views may be unaligned, which costs little to read once; copy what is read often.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Self

import msgspec

from lsh import Parameters
from worker.untrusted import NOT_READ

POSITION_BITS = 16
"""A sequence number is ``frame number << POSITION_BITS | position in the frame``."""

FRAME_BYTES = 900_000
"""The approximate size limit of a frame; the topics between the stages accept 1 MB."""

ACCOUNTED_OFFSETS = 1 << 13
"""The most offsets a frame accounts for, so that this array stays small beside the rest."""


class Frame(msgspec.Struct, frozen=True, gc=False, eq=False):
    """The source of a frame's documents.

    ``layout`` identifies partition counts and parameters; ``partition``, ``start`` and
    ``end`` are the range of ``documents`` that the frame covers.
    """

    layout: str
    partition: int
    start: int
    end: int

    @property
    def placed(self) -> bool:
        """Return whether Kafka can have such a partition, and such a range that isn't empty."""
        return 0 <= self.partition < 1 << 31 and 0 <= self.start < self.end < 1 << 63


class _Envelope(Frame, array_like=True, frozen=True, gc=False, eq=False):
    """The fields that begin a frame of any version."""


_envelope = msgspec.msgpack.Decoder(_Envelope)


def envelope(data: bytes | None) -> Frame | None:
    """Return what a frame of any version says about itself; None if the bytes are no frame."""
    try:
        found = _envelope.decode(memoryview(data or b"")[1:])
    except NOT_READ:
        return None
    return found if found.placed else None


@dataclass(frozen=True, slots=True)
class Layout:
    """How an application is divided, and what its fingerprints are made with.

    Workers must agree on it to understand each other's frames.

    Attributes:
        id: what frames are stamped with. Frames of another layout are refused.
        partitions: N, of the documents, as many as are read.
        begun_with: with how many the application began. The id is of these: frames stay the same
            if partitions are added.
        shards: P, of the index.
        parameters: those of the fingerprints.
        numbered_from: the number of a frame at offset 0 of the log. The logs of an application
            have different ones, so that sequence numbers go on from one to the next.
    """

    id: str
    partitions: int
    shards: int
    parameters: Parameters
    numbered_from: int = 0
    begun_with: int = 0

    @classmethod
    def of(cls, app: str, partitions: int, shards: int, parameters: Parameters) -> Self:
        """Return a layout whose id is a digest of all that is in it."""
        facts = {
            "app": app,
            "partitions": partitions,
            "shards": shards,
            **parameters.describe(),
        }
        digest = blake2b(json.dumps(facts, sort_keys=True).encode(), digest_size=6).hexdigest()
        return cls(digest, partitions, shards, parameters, begun_with=partitions)

    def widened(self, partitions: int) -> Self:
        """Return the layout once so many partitions of the documents are read."""
        return replace(self, partitions=partitions)

    @property
    def columns(self) -> int:
        """Return the number of key columns: one for each band, and one for the exact text."""
        return self.parameters.bands + 1

    def columns_of(self, shard: int) -> range:
        """Return the key columns that a shard owns."""
        return range(shard, self.columns, self.shards)


class SetAside(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A half-open range of offsets of a partition, which are rejected unread.

    A batch there can't be unpacked.
    """

    partition: int
    start: int
    end: int


def beyond(aside: Iterable[SetAside], partition: int, offset: int) -> int | None:
    """Return the offset after the ranges that contain an offset; None if none contains it."""
    after = offset
    for ends in by_partition(aside).get(partition, ()):
        if after in ends:
            after = ends.stop
    return after if after > offset else None


def by_partition(aside: Iterable[SetAside]) -> dict[int, list[range]]:
    """Return the ranges of each partition, in order."""
    ranges: dict[int, list[range]] = {}
    for part in sorted(aside, key=lambda part: (part.partition, part.start)):
        ranges.setdefault(part.partition, []).append(range(part.start, part.end))
    return ranges
