"""Clients that ask at a rate, whether or not they were answered: one thread with many sockets.

Threads that wait for each other's Python would add their own waits to the times that are measured.
"""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Sequence
from contextlib import ExitStack
from selectors import EVENT_READ, EVENT_WRITE, SelectSelector

__all__ = ["Asking"]

_HOST = "127.0.0.1"
_TIMEOUT = 30.0
_CHUNK = 64 << 10
_HEAD = "POST /v1/query HTTP/1.1\r\nHost: {host}\r\nContent-Length: {length}\r\n\r\n"


class _Client:
    """One query on a connection of its own."""

    def __init__(self, port: int, text: str, due: float) -> None:
        self.due = due
        body = json.dumps({"text": text}).encode()
        self._left = _HEAD.format(host=_HOST, length=len(body)).encode() + body
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
        head, _, body = self._received.partition(b"\r\n\r\n")
        lengths = [line for line in head.split(b"\r\n") if line.startswith(b"Content-Length: ")]
        if lengths and len(body) == int(lengths[0].split()[1]):
            if not head.startswith(b"HTTP/1.1 200 "):
                raise SystemExit(f"a query failed: {body.decode()}")
            return body
        if not received:
            raise SystemExit(f"a query was not answered: {self._received!r}")
        return None


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
