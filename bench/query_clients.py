"""Clients that ask at a rate, whether or not they were answered: one thread with many sockets.

Threads that wait for each other's Python would add their own waits to the times that are measured.
"""

from __future__ import annotations

import json
import re
import socket
import time
from collections.abc import Sequence
from contextlib import ExitStack
from itertools import cycle
from selectors import EVENT_READ, EVENT_WRITE, DefaultSelector, SelectSelector

_HOST = "127.0.0.1"
_TIMEOUT = 30.0
_CHUNK = 64 << 10
_LENGTH = re.compile(rb"(?i)\r\ncontent-length: (\d+)")
_HEAD = (
    "POST /v1/query HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
    "Content-Length: {length}\r\n\r\n"
)


def _request(text: str) -> bytes:
    body = json.dumps({"text": text}).encode()
    return _HEAD.format(host=_HOST, length=len(body)).encode() + body


def _whole(received: bytes) -> bytes | None:
    """Return the body of an answer, once it is all there."""
    head, _, body = received.partition(b"\r\n\r\n")
    length = _LENGTH.search(head)
    return body if length is not None and len(body) == int(length[1]) else None


class _Client:
    """One query on a connection of its own."""

    def __init__(self, port: int, text: str, due: float) -> None:
        self.due = due
        self._left = _request(text)
        self._received = b""
        self.socket = socket.socket()
        self.socket.settimeout(0)
        self.socket.connect_ex((_HOST, port))

    def send(self) -> bool:
        """Send on; return whether that was all."""
        self._left = self._left[self.socket.send(self._left) :]
        return not self._left

    def receive(self) -> bytes | None:
        """Receive more; return the answer's body if that was all."""
        received = self.socket.recv(_CHUNK)
        self._received += received
        body = _whole(self._received)
        if body is not None:
            if not self._received.startswith(b"HTTP/1.1 200 "):
                raise SystemExit(f"a query failed: {body.decode()}")
            return body
        if not received:
            raise SystemExit(f"a query was not answered: {self._received!r}")
        return None


class Crowd:
    """Clients that each ask as soon as they were answered, on new connections or on kept ones."""

    def __init__(self, port: int, texts: Sequence[str], *, kept: bool) -> None:
        """Take the server's port, and what is asked in turns."""
        self._port = port
        self._requests = cycle([_request(text) for text in texts])
        self._kept = kept
        self.answered = 0
        self.refused = 0
        """Requests that got another answer, or none."""

    def run(self, clients: int, seconds: float) -> float:
        """Ask for a time; return the answers a second."""
        self.answered = self.refused = 0
        received: dict[socket.socket, bytes] = {}
        with DefaultSelector() as selector:
            for _ in range(clients):
                self._ask(selector, received)
            began = time.perf_counter()  # Once all have asked.
            until = began + seconds
            while time.perf_counter() < until:
                for key, _ in selector.select(until - time.perf_counter()):
                    asked = key.fileobj
                    assert isinstance(asked, socket.socket)  # noqa: S101 -- it is one of ours
                    self._go_on(selector, received, asked)
            for asked in received:
                asked.close()
        return self.answered / (time.perf_counter() - began)

    def _ask(
        self,
        selector: DefaultSelector,
        received: dict[socket.socket, bytes],
        kept: socket.socket | None = None,
    ) -> None:
        asked = kept or socket.create_connection((_HOST, self._port), _TIMEOUT)
        asked.sendall(next(self._requests))
        received[asked] = b""
        if kept is None:
            selector.register(asked, EVENT_READ)

    def _go_on(
        self,
        selector: DefaultSelector,
        received: dict[socket.socket, bytes],
        asked: socket.socket,
    ) -> None:
        try:
            part = asked.recv(_CHUNK)
        except ConnectionError:
            part = b""
        received[asked] += part
        whole = _whole(received[asked])
        if part and whole is None:
            return
        answered = whole is not None and received[asked].startswith(b"HTTP/1.1 200 ")
        self.answered += answered
        self.refused += not answered
        if answered and self._kept:
            self._ask(selector, received, asked)
            return
        selector.unregister(asked)
        del received[asked]
        asked.close()
        self._ask(selector, received)


class Asking:
    """Asks about texts at a rate, and notes how long after it was due each answer was there."""

    def __init__(self, port: int, rate: int, texts: Sequence[str]) -> None:
        """Take the server's port, and how many queries a second."""
        self._port = port
        self._rate = rate
        self._texts = texts
        self.times: list[float] = []
        self.cpu = 0.0
        """The seconds of CPU that asking took."""
        self._answers: list[bytes] = []

    @property
    def matched(self) -> int:
        """Return how many texts had a match."""
        return sum(bool(json.loads(one)["answers"][0]["matches"]) for one in self._answers)

    def run(self) -> None:
        """Ask, and wait for all answers."""
        began, cpu = time.perf_counter(), time.process_time()
        number = 0
        # Only this selector takes a timeout of less than a millisecond.
        with ExitStack() as stack, SelectSelector() as selector:
            while len(self.times) < len(self._texts):
                left = _TIMEOUT
                if number < len(self._texts):
                    due = began + number / self._rate
                    left = due - time.perf_counter()
                    if left <= 0:
                        client = _Client(self._port, self._texts[number], due)
                        stack.enter_context(client.socket)
                        selector.register(client.socket, EVENT_WRITE, client)
                        number += 1
                        left = 0
                ready = selector.select(left)
                if not ready and left == _TIMEOUT:
                    raise SystemExit(f"{len(self.times)} of {number} queries were answered")
                for key, events in ready:
                    self._go_on(selector, key.data, events)
        self.cpu = time.process_time() - cpu

    def _go_on(self, selector: SelectSelector, client: _Client, events: int) -> None:
        if events & EVENT_WRITE:
            if client.send():
                selector.modify(client.socket, EVENT_READ, client)
            return
        answer = client.receive()
        if answer is not None:
            self.times.append(time.perf_counter() - client.due)
            self._answers.append(answer)
            selector.unregister(client.socket)
            client.socket.close()
