"""Writing matches: as headers, and as fields of the payload."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import msgspec

from lsh.index import Match
from worker.bus import Record
from worker.formats.base import DocumentFormat, headers_size

_encoder = msgspec.json.Encoder()


def json_matches(matches: Sequence[Match]) -> bytes:
    """Return matches as JSON: ``[{"id": …, "similarity": …}, …]``.

    A match by containment has one more member, ``containment``.
    """
    return _encoder.encode(list(map(_named, matches)))


def _named(match: Match) -> dict[str, str | float]:
    named: dict[str, str | float] = {
        "id": match.id.decode(),
        "similarity": round(match.similarity, 4),
    }
    if match.containment is not None:
        named["containment"] = round(match.containment, 4)
    return named


def json_first(matches: Sequence[Match]) -> bytes:
    """Return the earliest of one or more matches as JSON: ``{"id": …, "sequence": …}``."""
    first = min(matches, key=lambda match: match.sequence)
    return _encoder.encode({"id": first.id.decode(), "sequence": first.sequence})


class Written(NamedTuple):
    """A duplicate's value to publish, and the values of the headers with its matches."""

    value: bytes
    matches: bytes
    first: bytes


@dataclass(frozen=True, slots=True)
class MatchWriter:
    """Writes at most ``max_matches`` matches, and no more than fit into the output record.

    The earliest of those that are written is named once more. It may itself be a duplicate of an
    earlier document, which this one doesn't match. ``splice``: also add both to the payload, if its
    format allows it.
    """

    format: DocumentFormat
    max_matches: int = 64
    max_record_bytes: int = 1_000_000
    splice: bool = True

    def write(self, record: Record, matches: Sequence[Match]) -> Written:
        """Return what to publish of a duplicate with these matches, best first."""
        value = record.value or b""
        spliced = self.splice and self.format.can_splice(value)
        room = self.max_record_bytes - len(value) - len(record.key or b"")
        room -= headers_size(record.headers) + 512
        kept = list(matches[: self.max_matches])
        listed, first = json_matches(kept), json_first(kept)
        while len(kept) > 1 and (len(listed) + len(first)) * (1 + spliced) > room:
            kept = kept[: len(kept) // 2]
            listed, first = json_matches(kept), json_first(kept)
        if spliced:
            value = self.format.splice(value, listed, first)
        return Written(value, listed, first)
