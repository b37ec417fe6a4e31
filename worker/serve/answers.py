"""Answers to queries, as they are in JSON."""

from __future__ import annotations

import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import Literal

import msgspec

from worker.documents.published import First

_FIGURE = re.compile(rb'("(?:similarity|estimate|containment|error|least)":)(-?\d[\d.e-]*)')
"""Within a string of JSON, the quotes would have backslashes."""


class Refused(Exception):
    """A request isn't carried out. The message is the reason that its client is told."""

    def __init__(
        self, status: HTTPStatus, reason: str, headers: Mapping[str, str] | None = None
    ) -> None:
        """Take the status, the reason, and headers beside those of every answer."""
        super().__init__(reason)
        self.status = status
        self.headers = headers or {}


class Found(msgspec.Struct, frozen=True, omit_defaults=True):
    """A document that was matched.

    ``similarity`` is estimated, ``error`` is its standard error. ``bands`` are those in whose
    buckets it was; ``same_text``: also in that of the exact text, once it is normalised.
    ``containment`` is the estimated share of what was asked about that is in the document, if it is
    enough. So the criterion was the similarity if it reaches the reply's threshold, the
    containment if there is one, or both.
    """

    id: str
    similarity: float
    error: float
    sequence: int
    bands: list[int]
    same_text: bool
    containment: float | None = None


class Met(msgspec.Struct, frozen=True):
    """The buckets of a key in which there was something.

    ``band`` is None for the exact text. ``sizes`` are the numbers of their entries: of the bucket
    of the key, then of overflow buckets.
    """

    band: int | None
    sizes: list[int]


class Answer(msgspec.Struct, frozen=True):
    """What a document would get.

    ``reason`` is that of a rejection. ``matches`` are best first, and as many as a record has.
    ``compared`` is how many comparisons were made; a document counts once for each shard.
    ``allowed_by`` is the allowance for which it is unique, whatever it matches.
    """

    verdict: Literal["unique", "duplicate", "rejected"]
    reason: str | None = None
    matches: list[Found] = []
    first: First | None = None
    compared: int = 0
    buckets: list[Met] = []
    allowed_by: str | msgspec.UnsetType = msgspec.UNSET


class Reply(msgspec.Struct, frozen=True, omit_defaults=True):
    """The answers to a request, and of what they are true.

    ``position`` is the offset in the fingerprints' log that all shards have reached. ``behind`` is
    how many offsets of it the shard that is furthest behind has yet to read, as of
    ``checked_seconds`` ago; both are None if nobody follows the log. Offsets are those of frames,
    which hold many documents, and of transaction markers. ``containment`` is the least share at
    which a document matches one that has it; without it, only similarity counts.
    """

    threshold: float
    position: int
    behind: int | None
    checked_seconds: float | None
    answers: list[Answer]
    containment: float | None = None


def rejected(reason: Exception) -> Answer:
    """Return the answer to a document that can't be judged."""
    return Answer("rejected", str(reason))


def encoded(reply: Reply) -> bytes:
    """Return a reply as JSON."""
    return msgspec.json.encode(reply)


def coarse(answer: bytes) -> bytes:
    """Return an answer with two decimals of each similarity.

    All of them would lead whoever changes a text step by step to one that just isn't a match.
    """
    return _FIGURE.sub(lambda found: found[1] + b"%.12g" % round(float(found[2]), 2), answer)


def error(reason: str) -> bytes:
    """Return the reason of a refusal as a line of JSON."""
    return msgspec.json.encode({"error": reason}) + b"\n"
