"""What is kept of a verdict, for documents that are sent again: `BucketRules.same_id` is ignore.

A verdict names documents by their numbers in the index, not by their ids. So a document that is
forgotten is forgotten in all verdicts. A verdict takes 24 bytes for each match. If one of them has
a containment, it takes 32 bytes for each match, and one before them: a 1. So its length is odd.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

__all__ = ["NOBODY", "Verdict", "VerdictMatch", "pack_verdict", "unpack_verdict"]

NOBODY = -1
"""In place of the number of a document that was forgotten before the verdict was stored."""

_MATCH = struct.Struct("<Qdq")
_CONTAINED = struct.Struct("<Qdqd")
_WITH_CONTAINMENT = b"\x01"


class VerdictMatch(NamedTuple):
    """A match of a verdict; ``number`` is that of the matched document, or `NOBODY`."""

    sequence: int
    similarity: float
    number: int
    containment: float | None = None


Verdict = list[VerdictMatch]
"""The matches of a document, best first, at most `BucketRules.max_matches`."""


def pack_verdict(verdict: Verdict) -> bytes:
    """Return the bytes of a verdict: for each match, its values in 8 bytes each.

    It has 0 for a containment that there isn't.
    """
    if all(match.containment is None for match in verdict):
        return b"".join(_MATCH.pack(*match[:3]) for match in verdict)
    return _WITH_CONTAINMENT + b"".join(
        _CONTAINED.pack(*match[:3], match.containment or 0.0) for match in verdict
    )


def unpack_verdict(packed: bytes) -> Verdict:
    """Return the verdict of these bytes.

    Raises ValueError if they are not whole matches.
    """
    if not len(packed) % _MATCH.size:
        return [VerdictMatch(*match) for match in _MATCH.iter_unpack(packed)]
    matches = packed[1:]
    if packed[:1] != _WITH_CONTAINMENT or len(matches) % _CONTAINED.size:
        message = f"{len(packed)} bytes are not a verdict"
        raise ValueError(message)
    return [
        VerdictMatch(sequence, similarity, number, share or None)
        for sequence, similarity, number, share in _CONTAINED.iter_unpack(matches)
    ]
