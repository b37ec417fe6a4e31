"""The progress of *redrive*, as the topic ``APP.redrive`` keeps it.

For each partition: an offset before which nothing is left to send; the offsets of reasons that
are ahead of it, because they were redriven alone; and the records before it that the topic of
the documents refused. What is sent only by name, `BY_NAME`, may also lie behind the first offset.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from worker.bus import Claim
from worker.formats.unreadable import NULL_TEXT
from worker.untrusted import NOT_READ, why

__all__ = ["BY_NAME", "Progress", "ProgressError", "Refusal", "key_of", "place_of", "topic_of"]

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
        given = _facts(value)
        try:
            names = ("reason", "error", "source")
            reason, error, source = (str(given[name]) for name in names)
            return cls(reason, error, int(given["size"]), source)
        except (KeyError, TypeError, ValueError) as failure:
            raise ProgressError(f"it is not a refusal: {failure!r}") from failure

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
    def read(cls, offset: int, metadata: str | None) -> Progress:
        """Parse a group's committed offset and metadata, where earlier versions kept progress."""
        try:
            ahead = json.loads(metadata) if metadata else {}
            return cls(offset, {str(code): int(at) for code, at in ahead.items()})
        except (*NOT_READ, AttributeError, TypeError):
            return cls(offset)

    @classmethod
    def load(cls, value: bytes) -> Progress:
        """Parse a partition's line of the topic, which doesn't include refusals.

        Raises:
            ProgressError: the line isn't a partition's progress.
        """
        given = _facts(value)
        try:
            ahead = {str(code): int(at) for code, at in given["ahead"].items()}
            epoch = given.get("epoch")
            return cls(int(given["base"]), ahead, epoch=None if epoch is None else int(epoch))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ProgressError(f"it is not a partition's progress: {error!r}") from error

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
    return str(_facts(value).get("topic"))


def _line(**facts: object) -> bytes:
    return json.dumps({"version": _VERSION, **facts}, separators=(",", ":")).encode()


def _facts(value: bytes) -> dict[str, Any]:
    try:
        given = json.loads(value)
    except NOT_READ as error:
        raise ProgressError(f"it isn't JSON: {why(error)}") from error
    if not isinstance(given, dict):
        raise ProgressError("it isn't a JSON object")
    if given.get("version") != _VERSION:
        raise ProgressError(
            f"its version is {given.get('version')!r}, but this neardup reads version {_VERSION}"
        )
    return given
