"""Ends a transaction in one partition alone, as no sound coordinator does.

Kafka's own request for it, which brokers send each other: WriteTxnMarkers. No client library
offers it, so these few messages of the protocol are packed by hand.
"""

from __future__ import annotations

import socket
import struct
from typing import Final, NamedTuple

from worker.bus import TopicPartition

DESCRIBE_PRODUCERS: Final = (61, 0)
WRITE_TXN_MARKERS: Final = (27, 1)
NO_TAGS: Final = b"\0"
SECONDS: Final = 10.0


class Open(NamedTuple):
    """A producer that has a transaction open in a partition."""

    producer: int
    epoch: int


class Reader:
    """Unpacks an answer, field by field."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def take(self, form: str) -> int:
        """Take a number of this form; see `struct`."""
        (found,) = struct.unpack_from(">" + form, self._data)
        self._data = self._data[struct.calcsize(">" + form) :]
        return int(found)

    def length(self) -> int:
        """Take a compact length: below 128, one more than it says; -1 for null."""
        return self.take("B") - 1

    def skip(self, size: int) -> None:
        """Leave out so many bytes."""
        self._data = self._data[max(0, size) :]


def compact(text: str) -> bytes:
    """Pack a short string."""
    return bytes([len(text) + 1]) + text.encode()


def one_partition(place: TopicPartition) -> bytes:
    """Pack an array of one topic with one partition."""
    return b"\2" + compact(place.topic) + struct.pack(">Bi", 2, place.partition) + NO_TAGS


def ask(server: str, api: tuple[int, int], body: bytes) -> Reader:
    """Send a request to a broker; return its answer without the header."""
    host, _, port = server.rpartition(":")
    request = struct.pack(">hhih", *api, 1, -1) + NO_TAGS + body + NO_TAGS
    with socket.create_connection((host, int(port)), SECONDS) as connection:
        connection.sendall(struct.pack(">i", len(request)) + request)
        stream = connection.makefile("rb")
        (size,) = struct.unpack(">i", stream.read(4))
        answer = Reader(stream.read(size))
    assert answer.take("i") == 1
    answer.skip(len(NO_TAGS))
    return answer


def open_in(server: str, place: TopicPartition) -> list[Open]:
    """Return who has a transaction open in a partition; the broker must lead it."""
    answer = ask(server, DESCRIBE_PRODUCERS, one_partition(place))
    answer.take("i")
    assert answer.length() == 1
    answer.skip(answer.length())
    assert answer.length() == 1
    assert answer.take("i") == place.partition
    assert answer.take("h") == 0, "the broker refuses to describe the partition's producers"
    answer.skip(answer.length())
    found = []
    for _ in range(answer.length()):
        producer, epoch = answer.take("q"), answer.take("i")
        answer.skip(4 + 8 + 4)
        began = answer.take("q")
        answer.skip(len(NO_TAGS))
        if began >= 0:
            found.append(Open(producer, epoch))
    return found


def end_in(server: str, place: TopicPartition, *, commit: bool) -> None:
    """End the one transaction that is open in a partition, there alone."""
    (found,) = open_in(server, place)
    marker = struct.pack(">qh?", *found, commit) + one_partition(place)
    body = b"\2" + marker + struct.pack(">i", 0) + NO_TAGS
    answer = ask(server, WRITE_TXN_MARKERS, body)
    assert answer.length() == 1
    assert answer.take("q") == found.producer
    assert answer.length() == 1
    answer.skip(answer.length())
    assert answer.length() == 1
    assert answer.take("i") == place.partition
    assert answer.take("h") == 0, "the broker refuses the marker"
