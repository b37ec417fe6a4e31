"""Writing matches: as a header, and as a field of the payload."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from lsh.index import Match
from worker.bus import Record
from worker.formats.base import DocumentFormat, headers_size

__all__ = ["MatchWriter", "json_matches"]

_encoder = msgspec.json.Encoder()


def json_matches(matches: Sequence[Match]) -> bytes:
    """Return matches as JSON: ``[{"id": …, "similarity": …}, …]``."""
    return _encoder.encode(
        [{"id": match.id.decode(), "similarity": round(match.similarity, 4)} for match in matches]
    )


@dataclass(frozen=True, slots=True)
class MatchWriter:
    """Writes at most ``max_matches`` matches, and no more than fit into the output record.

    ``splice``: also add the matches to the payload as a field, if its format allows it.
    """

    format: DocumentFormat
    max_matches: int = 64
    max_record_bytes: int = 1_000_000
    splice: bool = True

    def write(self, record: Record, matches: Sequence[Match]) -> tuple[bytes, bytes]:
        """Return the value to publish, and the value of the matches header."""
        value = record.value or b""
        spliced = self.splice and self.format.can_splice(value)
        room = self.max_record_bytes - len(value) - len(record.key or b"")
        room -= headers_size(record.headers) + 512
        kept = list(matches[: self.max_matches])
        listed = json_matches(kept)
        while len(kept) > 1 and len(listed) * (1 + spliced) > room:
            kept = kept[: len(kept) // 2]
            listed = json_matches(kept)
        return (self.format.splice(value, listed) if spliced else value), listed
