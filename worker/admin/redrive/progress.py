"""The progress of *redrive*, as the topic ``APP.redrive`` keeps it.

For each partition: an offset before which nothing is left to send; the offsets of reasons that
are ahead of it, because they were redriven alone; and the records before it that the topic of
the documents refused. What is sent only by name, `BY_NAME`, may also lie behind the first offset.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import TypeVar

import msgspec

from worker.bus import Claim
from worker.formats.unreadable import NULL_TEXT
from worker.untrusted import NOT_READ, why

_VERSION = 1

BY_NAME = frozenset({"poison", NULL_TEXT})
"""The reasons of what is sent again only if the reason is named. Poison kills workers. A delete of
a change feed that comes later than it should may forget what was written after it."""


class ProgressError(ValueError):
    """A record of the topic can't be understood."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A rejected record that the topic of the documents refused; it stays on *rejected*."""

    reason: str
    """The code of its rejection."""
    error: str
    """Kafka's name of the error."""
    size: int
    """The size of key, value and headers, in bytes."""
    source: str
    """``topic[partition]@offset`` of the document, or of the rejected record."""

    @classmethod
    def load(cls, value: bytes) -> Refusal:
        """Parse a refusal's line of the topic.

        Raises:
            ProgressError: the line isn't a refusal.
        """
        given = _read(value, _OfRefusal)
        return cls(given.reason, given.error, given.size, given.source)

    def dump(self) -> bytes:
        """Return the line of the topic."""
        return _line(reason=self.reason, error=self.error, size=self.size, source=self.source)


@dataclass(slots=True)
class Progress:
    """Progress of one partition: everything before ``base``, and some reasons from elsewhere.

    A reason in ``ahead`` is done before that offset. One that is sent only by name may have an
    offset before ``base``.
    """

    base: int
    ahead: dict[str, int] = field(default_factory=dict)
    refused: dict[int, Refusal] = field(default_factory=dict)
    """By offset; each has its own line in the topic, so that lines stay small."""
    epoch: int | None = None
    """The leader epoch of what was read; None if it isn't known."""

    @classmethod
    def load(cls, value: bytes) -> Progress:
        """Parse a partition's line of the topic, which doesn't include refusals.

        Raises:
            ProgressError: the line isn't a partition's progress.
        """
        given = _read(value, _OfPartition)
        return cls(given.base, given.ahead, epoch=given.epoch)

    def dump(self, topic: str) -> bytes:
        """Return the line of the topic; ``topic`` is the name of *rejected*, for human readers."""
        return _line(topic=topic, base=self.base, ahead=self.ahead, epoch=self.epoch)

    def copy(self) -> Progress:
        """Return an independent copy."""
        return Progress(self.base, dict(self.ahead), dict(self.refused), self.epoch)

    @property
    def claim(self) -> Claim | None:
        """Return what was read of the partition; None if its epoch isn't known."""
        furthest = max([self.base, *self.ahead.values()])
        return None if self.epoch is None else Claim(furthest, self.epoch)

    def cut(self, end: int) -> list[int]:
        """Record that what was read from an offset on is gone; return what was refused of that."""
        self.base = min(self.base, end)
        self.ahead = {code: min(at, end) for code, at in self.ahead.items()}
        gone = [offset for offset in self.refused if offset >= end]
        for offset in gone:
            del self.refused[offset]
        return gone

    def start(self, reasons: Collection[str]) -> int:
        """Return the offset to read from; ``reasons`` empty means all."""
        at = min((self.ahead.get(code, self.base) for code in reasons), default=self.base)
        again = (
            offset
            for offset, refusal in self.refused.items()
            if not reasons or refusal.reason in reasons
        )
        return min([at, *again])

    def is_due(self, offset: int, reason: str) -> bool:
        """Return whether a record has yet to be sent."""
        return offset in self.refused or offset >= self.ahead.get(reason, self.base)

    def leave(self, offset: int, reason: str) -> None:
        """Record that a record stays due which is sent only by name, before a pass for all."""
        if reason in BY_NAME:
            self.ahead.setdefault(reason, max(offset, self.base))

    def passed(self, offset: int, reasons: Collection[str]) -> None:
        """Record that everything before ``offset`` is done, for these reasons or for all.

        What is sent only by name is never among all.
        """
        if reasons:
            for code in reasons:
                self.ahead[code] = max(offset, self.ahead.get(code, self.base))
        else:
            self.base = max(offset, self.base)
            self.ahead = {
                code: at for code, at in self.ahead.items() if at > self.base or code in BY_NAME
            }


def key_of(identity: str, partition: int, offset: int | None = None) -> bytes:
    """Return a line's key: for a partition of the topic with this id, or for a record in it."""
    place = f"{identity}:{partition}"  # Not a slash, which a base64 id may contain.
    return (place if offset is None else f"{place}:{offset}").encode()


def place_of(key: bytes | None) -> tuple[str, int, int | None]:
    """Parse a key that `key_of` wrote.

    Raises:
        ProgressError: the key has another format.
    """
    try:
        identity, *numbers = (key or b"").decode().split(":")
        partition, *offset = map(int, numbers)
        [at] = offset or [-1]
    except ValueError as error:
        raise ProgressError(f"its key is {key!r}") from error
    return identity, partition, at if offset else None


def topic_of(value: bytes) -> str:
    """Return the rejected topic's name from a partition's line.

    Raises:
        ProgressError: the line isn't a partition's.
    """
    return _read(value, _OfPartition).topic


def _line(**facts: object) -> bytes:
    return msgspec.json.encode({"version": _VERSION, **facts})


class _Versioned(msgspec.Struct):
    version: int


class _OfRefusal(_Versioned):
    reason: str
    error: str
    size: int
    source: str


class _OfPartition(_Versioned):
    base: int
    ahead: dict[str, int]
    topic: str = ""
    epoch: int | None = None


LineT = TypeVar("LineT", bound=_Versioned)


def _read(value: bytes, kind: type[LineT]) -> LineT:
    try:
        version = msgspec.json.decode(value, type=_Versioned).version
        if version == _VERSION:
            return msgspec.json.decode(value, type=kind)
    except NOT_READ as error:
        raise ProgressError(f"it can't be read: {why(error)}") from error
    raise ProgressError(f"its version is {version!r}, but this neardup reads version {_VERSION}")
