"""How far the rejected were sent again, as it is kept in the topic ``APP.redrive``.

Per partition: an offset before which nothing is left to send; the reasons that are ahead of
it, because they were asked for alone; and the records before it that the documents refused.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Progress", "ProgressError", "Refusal", "key_of", "place_of", "topic_of"]

_VERSION = 1


class ProgressError(ValueError):
    """What the topic says can't be understood."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A rejected record that the documents refused; it stays on the rejected."""

    reason: str
    """The code for which it was rejected."""
    error: str
    """Kafka's name of what was wrong with it."""
    size: int
    """Of key, value and headers, in bytes."""
    source: str
    """``topic[partition]@offset`` of the document, or of the rejected record."""

    @classmethod
    def load(cls, value: bytes) -> Refusal:
        """Read a line of the topic.

        Raises:
            ProgressError: it isn't one.
        """
        given = _facts(value)
        try:
            names = ("reason", "error", "source")
            reason, error, source = (str(given[name]) for name in names)
            return cls(reason, error, int(given["size"]), source)
        except (KeyError, TypeError, ValueError) as failure:
            raise ProgressError(f"it is no refusal: {failure!r}") from failure

    def dump(self) -> bytes:
        """Write the line."""
        return _line(reason=self.reason, error=self.error, size=self.size, source=self.source)


@dataclass(slots=True)
class Progress:
    """How far one partition of the rejected is done: all before ``base``, some reasons more."""

    base: int
    ahead: dict[str, int] = field(default_factory=dict)
    refused: dict[int, Refusal] = field(default_factory=dict)
    """By offset; each has a line of its own in the topic, so that a line stays small."""

    @classmethod
    def read(cls, offset: int, metadata: str | None) -> Progress:
        """Take what was committed to a group, where earlier versions kept it."""
        try:
            ahead = json.loads(metadata) if metadata else {}
            return cls(offset, {str(code): int(at) for code, at in ahead.items()})
        except (ValueError, AttributeError):
            return cls(offset)

    @classmethod
    def load(cls, value: bytes) -> Progress:
        """Read a line of the topic, which says nothing of refusals.

        Raises:
            ProgressError: it isn't one.
        """
        given = _facts(value)
        try:
            ahead = {str(code): int(at) for code, at in given["ahead"].items()}
            return cls(int(given["base"]), ahead)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ProgressError(f"it is no partition's progress: {error!r}") from error

    def dump(self, topic: str) -> bytes:
        """Write the line; ``topic`` is the name of the rejected, for those who read it."""
        return _line(topic=topic, base=self.base, ahead=self.ahead)

    def copy(self) -> Progress:
        """Give one that may go on by itself."""
        return Progress(self.base, dict(self.ahead), dict(self.refused))

    def start(self, reasons: Collection[str]) -> int:
        """Say where to begin to read."""
        at = min((self.ahead.get(code, self.base) for code in reasons), default=self.base)
        again = (
            offset
            for offset, refusal in self.refused.items()
            if not reasons or refusal.reason in reasons
        )
        return min([at, *again])

    def is_due(self, offset: int, reason: str) -> bool:
        """Tell whether a record was not sent before."""
        return offset in self.refused or offset >= self.ahead.get(reason, self.base)

    def passed(self, offset: int, reasons: Collection[str]) -> None:
        """Note that all that was asked for is done before ``offset``."""
        if reasons:
            for code in reasons:
                self.ahead[code] = max(offset, self.ahead.get(code, self.base))
        else:
            self.base = max(offset, self.base)
            self.ahead = {code: at for code, at in self.ahead.items() if at > self.base}


def key_of(identity: str, partition: int, offset: int | None = None) -> bytes:
    """Name what a line is about: a partition of the topic with this id, or a record in it."""
    place = f"{identity}:{partition}"  # An id is in base64, so it may have a slash.
    return (place if offset is None else f"{place}:{offset}").encode()


def place_of(key: bytes | None) -> tuple[str, int, int | None]:
    """Read what `key_of` wrote.

    Raises:
        ProgressError: something else wrote it.
    """
    try:
        identity, *numbers = (key or b"").decode().split(":")
        partition, *offset = map(int, numbers)
        [at] = offset or [-1]
    except ValueError as error:
        raise ProgressError(f"its key is {key!r}") from error
    return identity, partition, at if offset else None


def topic_of(value: bytes) -> str:
    """Give the rejected topic's name from a partition's line.

    Raises:
        ProgressError: it isn't one.
    """
    return str(_facts(value).get("topic"))


def _line(**facts: object) -> bytes:
    return json.dumps({"version": _VERSION, **facts}, separators=(",", ":")).encode()


def _facts(value: bytes) -> dict[str, Any]:
    try:
        given = json.loads(value)
    except ValueError as error:
        raise ProgressError(f"it isn't JSON: {error}") from error
    if not isinstance(given, dict):
        raise ProgressError("it isn't a JSON object")
    if given.get("version") != _VERSION:
        raise ProgressError(
            f"its version is {given.get('version')!r}, and this neardup reads {_VERSION}"
        )
    return given
