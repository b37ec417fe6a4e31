"""Which offsets of ``documents`` the frames in a shard's store have covered."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

_offset = struct.Struct("<q")
_span = struct.Struct("<qqqq")
"""The partition, then its `Span`."""


class Span(NamedTuple):
    """What frames have covered of one partition of ``documents``.

    The frames begin at ``begin`` and reach to ``end``; ``covered`` is the sum of their lengths.
    Frames that tile cover every offset once.
    """

    begin: int
    end: int
    covered: int

    @property
    def tiled(self) -> bool:
        """Return whether every offset is covered exactly once, by count."""
        return self.covered == self.end - self.begin


class Coverage:
    """A span for each partition of ``documents`` that a frame has covered."""

    __slots__ = ("_spans",)

    def __init__(self, spans: dict[int, Span] | None = None) -> None:
        """Take spans by partition; none for a store that has seen no frame."""
        self._spans = spans or {}

    def __iter__(self) -> Iterator[tuple[int, Span]]:
        """Return an iterator over partitions and their spans, by ascending partition."""
        return iter(sorted(self._spans.items()))

    def copy(self) -> Coverage:
        """Return an independent copy."""
        return Coverage(dict(self._spans))

    def expected(self, partition: int) -> int | None:
        """Return where the next frame must begin; None if it may begin anywhere."""
        span = self._spans.get(partition)
        return None if span is None else span.end

    def add(self, partition: int, start: int, end: int) -> None:
        """Add a frame that covers ``start`` to ``end``, whether it tiles or not."""
        span = self._spans.get(partition)
        self._spans[partition] = (
            Span(start, end, end - start)
            if span is None
            else Span(span.begin, max(span.end, end), span.covered + end - start)
        )

    def encode(self, offset: int) -> bytes:
        """Return the bytes to store; ``offset`` is the log offset that the frames reach."""
        spans = b"".join(_span.pack(partition, *span) for partition, span in self._spans.items())
        return _offset.pack(offset) + spans

    @classmethod
    def decode(cls, data: bytes | None, offset: int) -> Coverage:
        """Return the coverage that `encode` packed.

        If it was packed for another offset, a version that doesn't know about coverage has
        written since. The coverage then starts empty, as in a store that never had one.

        Raises:
            ValueError: the bytes were not made by `encode`.
        """
        if data is None:
            return cls()
        if len(data) < _offset.size or (len(data) - _offset.size) % _span.size:
            raise ValueError(f"{len(data)} bytes are not an encoded coverage")
        if _offset.unpack_from(data)[0] != offset:
            return cls()
        spans = _span.iter_unpack(data[_offset.size :])
        return cls({partition: Span(*span) for partition, *span in spans})
