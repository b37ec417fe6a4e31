"""As much of Kafka's protocol as tells requests apart: frames, and how each begins."""

import struct
from collections.abc import Iterator
from enum import IntEnum
from typing import Final, NamedTuple

__all__ = ["Api", "Header", "Splitter", "correlation_of", "header_of"]

_SIZE: Final = struct.Struct(">i")
_HEADER: Final = struct.Struct(">hhih")


class Api(IntEnum):
    """The requests that faults aim at, by their keys in the protocol."""

    PRODUCE = 0
    FETCH = 1
    LIST_OFFSETS = 2
    METADATA = 3
    OFFSET_FETCH = 9
    FIND_COORDINATOR = 10
    JOIN_GROUP = 11
    HEARTBEAT = 12
    INIT_PRODUCER_ID = 22
    ADD_PARTITIONS_TO_TXN = 24
    ADD_OFFSETS_TO_TXN = 25
    END_TXN = 26
    TXN_OFFSET_COMMIT = 28
    CONSUMER_GROUP_HEARTBEAT = 68


class Header(NamedTuple):
    """How a request begins."""

    api: int
    version: int
    correlation: int
    client: str


def header_of(frame: bytes) -> Header:
    """Read a request's header (version 1 or 2: they begin alike), the size left in front."""
    api, version, correlation, length = _HEADER.unpack_from(frame, _SIZE.size)
    start = _SIZE.size + _HEADER.size
    client = frame[start : start + max(0, length)].decode(errors="replace")
    return Header(api, version, correlation, client)


def correlation_of(frame: bytes) -> int:
    """Tell which request a response answers."""
    (correlation,) = _SIZE.unpack_from(frame, _SIZE.size)
    return int(correlation)


class Splitter:
    """Cuts a stream into frames, each with its size in front."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Take what has come; give the frames that are complete."""
        self._buffer += data
        start = 0
        while len(self._buffer) - start >= _SIZE.size:
            (length,) = _SIZE.unpack_from(self._buffer, start)
            end = start + _SIZE.size + length
            if len(self._buffer) < end:
                break
            yield bytes(self._buffer[start:end])
            start = end
        del self._buffer[:start]
