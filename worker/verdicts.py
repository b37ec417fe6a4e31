"""How matches are written: a header, and a member of the JSON object."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from worker.bus import Record
from worker.documents import headers_size
from worker.headers import DUPLICATE_OF
from worker.shard import Match

__all__ = ["MATCH_RESERVE_BYTES", "MatchWriter", "json_matches"]

MATCH_RESERVE_BYTES = 2 * (6 * 1_024 + 64) + 512
"""What an output may need beyond the input: the best match, with an id of 1 kB of control
characters (6 bytes each in JSON), in the header and in the value; and the other headers."""

_encoder = msgspec.json.Encoder()


class _Probe(msgspec.Struct, gc=False):
    """Tells whether a JSON object has the member already."""

    duplicate_of: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


_probe = msgspec.json.Decoder(_Probe)


def json_matches(matches: Sequence[Match]) -> bytes:
    """Write matches as ``[{"id": …, "similarity": …}, …]``."""
    return _encoder.encode(
        [{"id": match.id.decode(), "similarity": round(match.similarity, 4)} for match in matches]
    )


@dataclass(frozen=True, slots=True)
class MatchWriter:
    """Writes at most ``max_matches``, and no more than the output takes.

    ``splice``: JSON objects also get the matches as their last member, all else in them
    untouched, unless they have a member of that name.
    """

    max_matches: int = 64
    max_record_bytes: int = 1_000_000
    splice: bool = True

    def write(self, record: Record, matches: Sequence[Match]) -> tuple[bytes, bytes]:
        """Give the value to publish, and the header."""
        value = record.value or b""
        spliced = self.splice and _can_splice(value)
        room = self.max_record_bytes - len(value) - len(record.key or b"")
        room -= headers_size(record.headers) + 512
        kept = list(matches[: self.max_matches])
        listed = json_matches(kept)
        while len(kept) > 1 and len(listed) * (1 + spliced) > room:
            kept = kept[: len(kept) // 2]
            listed = json_matches(kept)
        if not spliced:
            return value, listed
        brace = value.rindex(b"}")
        comma = b"" if value[:brace].rstrip().endswith(b"{") else b","
        member = b'%s"%s":%s' % (comma, DUPLICATE_OF.encode(), listed)
        return value[:brace] + member + value[brace:], listed


def _can_splice(value: bytes) -> bool:
    if not value.lstrip(b" \t\r\n").startswith(b"{"):
        return False
    try:
        return _probe.decode(value).duplicate_of is msgspec.UNSET
    except (msgspec.DecodeError, RecursionError):
        # Nested so deeply that it could only just be read where the stack was less deep.
        return False
