"""As much of Kafka's protocol as tells requests apart: frames, and how each begins."""

import struct
from collections.abc import Iterator
from enum import IntEnum
from typing import Final, NamedTuple

_SIZE: Final = struct.Struct(">i")
_HEADER: Final = struct.Struct(">hhih")
_FLEXIBLE_METADATA: Final = 9
"""From this version on, metadata has compact arrays and tagged fields."""
_NONE: Final = b"\x01"
"""A compact array without elements: its length and one, as a varint."""


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


def without_brokers(frame: bytes, version: int) -> bytes:
    """Take all brokers out of a response with metadata; the topics stay.

    Raises:
        ValueError: the version is older than the oldest that a current client sends.
    """
    if version < _FLEXIBLE_METADATA:
        raise ValueError(f"version {version} of Metadata is not known here")
    begin = _past_tags(frame, 2 * _SIZE.size) + 4  # after the time that the broker throttled for
    count, at = _varint(frame, begin)
    for _ in range(count - 1):
        at = _past_text(frame, at + 4)  # the number of the broker, its host
        at = _past_tags(frame, _past_text(frame, at + 4))  # its port, its rack
    body = frame[_SIZE.size : begin] + _NONE + frame[at:]
    return _SIZE.pack(len(body)) + body


def _varint(frame: bytes, at: int) -> tuple[int, int]:
    """Read an unsigned number; give it, and where it ends."""
    value = shift = 0
    while True:
        byte = frame[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:  # The last byte has no highest bit.
            return value, at


def _past_text(frame: bytes, at: int) -> int:
    """Give where a compact string ends, or one that may be null."""
    length, at = _varint(frame, at)
    return at + max(0, length - 1)


def _past_tags(frame: bytes, at: int) -> int:
    """Give where tagged fields end."""
    count, at = _varint(frame, at)
    for _ in range(count):
        _, at = _varint(frame, at)
        length, at = _varint(frame, at)
        at += length
    return at


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
