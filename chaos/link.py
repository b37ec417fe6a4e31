"""A connection through a proxy: frames in order, either way, but for what rules say."""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final, cast

from chaos.rule import Rule
from chaos.speed import UNHINDERED, Line, Speed
from chaos.wire import Header, Splitter, correlation_of, header_of, without_brokers

HOST: Final = "127.0.0.1"
MOST_HELD: Final = 256 << 10
"""Bytes under way on a slow link, from which on its sender is held back, as TCP would."""


class _Pipe:
    """One direction of a connection: in order, also while something is held up."""

    def __init__(self, loop: asyncio.AbstractEventLoop, speed: Callable[[], Speed]) -> None:
        self._loop = loop
        self._speed = speed
        self._line = Line()
        self._waiting: deque[tuple[float, bytes]] = deque()
        self.held = 0
        self._timer: asyncio.TimerHandle | None = None
        self.source: asyncio.Transport | None = None
        self.sink: asyncio.Transport | None = None

    @property
    def empty(self) -> bool:
        return not self._waiting

    def push(self, frame: bytes, delay: float = 0.0) -> None:
        now = self._loop.time()
        due = now + delay if delay else 0.0
        speed = self._speed()
        if speed is not UNHINDERED:
            due = self._line.arrival(now, len(frame), speed) + delay
            self.held += len(frame)
            if self.held > MOST_HELD and self.source is not None:
                self.source.pause_reading()
        self._waiting.append((due, frame))
        self.flush()

    def flush(self) -> None:
        if self.sink is None or self._timer is not None:
            return
        while self._waiting:
            due = self._waiting[0][0]
            if due > self._loop.time():
                self._timer = self._loop.call_at(due, self._due)
                return
            self._let_go(self._waiting.popleft()[1], self.sink)

    def _let_go(self, frame: bytes, sink: asyncio.Transport) -> None:
        sink.write(frame)
        if not self.held:
            return
        before, self.held = self.held, max(0, self.held - len(frame))
        source = self.source
        if self.held <= MOST_HELD < before and source is not None and not source.is_closing():
            source.resume_reading()

    def _due(self) -> None:
        self._timer = None
        # The clock may be a tick short of when it was set to ring.
        self._waiting[0] = (0.0, self._waiting[0][1])
        self.flush()
        self.drained()

    def drained(self) -> None:
        """Replaced by a link that waits for it."""

    def drop(self) -> None:
        self._waiting.clear()
        self.held = 0
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class Link:
    """A client's connection, and the one that is made for it to its broker."""

    def __init__(
        self,
        fate: Callable[[Header], Rule | None],
        loop: asyncio.AbstractEventLoop,
        reach: int,
        links: "set[Link]",
        speed: Callable[[], Speed] = lambda: UNHINDERED,
    ) -> None:
        self._fate = fate
        self._loop = loop
        self._reach = reach
        self._links = links
        self._fates: dict[int, tuple[Rule, Header]] = {}
        self._there = _Pipe(loop, speed)
        self._back = _Pipe(loop, speed)
        self._there.drained = self._close_if_done  # type: ignore[method-assign]
        self._client_gone = False
        self.client = _Side(self._request, self._client_up, self._client_down)
        self._broker = _Side(self._response, self._broker_up, self.cut)
        self._connecting: asyncio.Task[None] | None = None

    @property
    def held(self) -> int:
        """Give how many bytes are under way, both ways together."""
        return self._there.held + self._back.held

    def _client_up(self, transport: asyncio.Transport) -> None:
        self._links.add(self)
        self._back.sink = self._there.source = transport
        self._broker.other = transport
        self._connecting = self._loop.create_task(self._connect())

    async def _connect(self) -> None:
        try:
            await self._loop.create_connection(lambda: self._broker, HOST, self._reach)
        except OSError:  # The broker is down, and the client is to see that.
            self.cut()

    def _broker_up(self, transport: asyncio.Transport) -> None:
        self._there.sink = self._back.source = transport
        self.client.other = transport
        self._there.flush()
        self._close_if_done()

    def _request(self, frame: bytes) -> None:
        header = header_of(frame)
        rule = self._fate(header)
        if rule is None:
            self._there.push(frame)
        elif rule.of == "response":
            self._fates[header.correlation] = rule, header
            self._there.push(frame)
        elif rule.act == "delay":
            self._there.push(frame, rule.seconds)
        elif rule.act == "late":
            self._there.push(frame, rule.seconds)
            if self._back.sink is not None:
                self._back.sink.abort()
        elif rule.act == "cut":
            self.cut()

    def _response(self, frame: bytes) -> None:
        met = self._fates.pop(correlation_of(frame), None)
        if met is None:
            self._back.push(frame)
            return
        rule, header = met
        if rule.act == "alone":
            self._back.push(without_brokers(frame, header.version))
        elif rule.act == "delay":
            self._back.push(frame, rule.seconds)
        elif rule.act == "cut":
            self.cut()

    def _client_down(self) -> None:
        self._client_gone = True
        self._back.drop()
        self._close_if_done()

    def _close_if_done(self) -> None:
        """Hang up on the broker once it has all that the client has sent."""
        if self._client_gone and self._there.empty and self._there.sink is not None:
            self._there.sink.close()

    def cut(self) -> None:
        """End both connections at once, and forget what was held up."""
        self._links.discard(self)
        self._there.drop()
        self._back.drop()
        for sink in (self._there.sink, self._back.sink):
            if sink is not None:
                sink.abort()


class _Side(asyncio.Protocol):
    """One end of a link: cuts what comes into frames, and slows the other end if need be."""

    def __init__(
        self,
        take: Callable[[bytes], None],
        up: Callable[[asyncio.Transport], None],
        down: Callable[[], None],
    ) -> None:
        self._splitter = Splitter()
        self._take = take
        self._up = up
        self._down = down
        self.other: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._up(cast("asyncio.Transport", transport))

    def data_received(self, data: bytes) -> None:
        for frame in self._splitter.feed(data):
            self._take(frame)

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self._down()

    def pause_writing(self) -> None:
        if self.other is not None:
            self.other.pause_reading()

    def resume_writing(self) -> None:
        if self.other is not None and not self.other.is_closing():
            self.other.resume_reading()
