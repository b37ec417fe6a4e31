"""A TCP proxy in front of each broker, which loses, delays or cuts the requests it is told to.

It can also be slow: see `Speed`.

Everything that a worker says to a broker goes through here; brokers among themselves, the
feeder and the auditor go past it. A delayed request is delivered even if its sender has
given up and gone meanwhile: that is how an EndTxn ends a transaction it was not meant for.
"""

import asyncio
import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from functools import partial
from typing import Final, Self

from chaos.link import HOST, Link
from chaos.rule import Rule
from chaos.speed import UNHINDERED, Speed
from chaos.wire import Header
from worker.closing import Closing

CALL_SECONDS: Final = 10.0


class Proxies(Closing):
    """A listener for each broker, all in one thread. Use as a context manager."""

    def __init__(self, ports: Mapping[int, tuple[int, int]]) -> None:
        """Take by node the port to listen on, and the one to reach (`KafkaCluster.proxied`)."""
        self._ports = dict(ports)
        self._rules: list[Rule] = []
        self._speed = UNHINDERED
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxies", daemon=True)
        self._servers: list[asyncio.Server] = []
        self._links: set[Link] = set()

    @contextlib.contextmanager
    def rule(self, rule: Rule) -> Iterator[Rule]:
        """Have a rule apply for a while."""
        self.add(rule)
        try:
            yield rule
        finally:
            self.remove(rule)

    def add(self, rule: Rule) -> None:
        """Have a rule apply from now on; the first that meets a request is taken."""
        self._call(lambda: self._rules.append(rule))

    def remove(self, rule: Rule) -> None:
        """Let requests pass again; what is delayed already still is."""
        self._call(lambda: self._rules.remove(rule))

    @contextlib.contextmanager
    def speed(self, speed: Speed) -> Iterator[None]:
        """Have all links be this fast for a while; what is under way arrives when it would."""
        self._call(lambda: setattr(self, "_speed", speed))
        try:
            yield
        finally:
            self._call(lambda: setattr(self, "_speed", UNHINDERED))

    def fate(self, header: Header) -> Rule | None:
        """Give the rule that a request meets, if any."""
        return next((rule for rule in self._rules if rule.meets(header)), None)

    def _call(self, function: Callable[[], object]) -> None:
        done: Future[object] = Future()

        def run() -> None:
            try:
                done.set_result(function())
            except BaseException as error:  # noqa: BLE001 -- carried to the caller
                done.set_exception(error)

        self._loop.call_soon_threadsafe(run)
        done.result(CALL_SECONDS)

    async def _listen(self) -> None:
        for listen, reach in self._ports.values():
            server = await self._loop.create_server(partial(self._accept, reach), HOST, listen)
            self._servers.append(server)

    def _accept(self, reach: int) -> asyncio.Protocol:
        return Link(self.fate, self._loop, reach, self._links, lambda: self._speed).client

    async def _leave(self) -> None:
        for server in self._servers:
            server.close()
        for link in list(self._links):
            link.cut()
        ours = asyncio.current_task()
        pending = [task for task in asyncio.all_tasks() if task is not ours]
        await asyncio.gather(*pending, return_exceptions=True)

    def __enter__(self) -> Self:
        """Listen."""
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result(CALL_SECONDS)
        return self

    def close(self) -> None:
        """Cut everything, and stop."""
        asyncio.run_coroutine_threadsafe(self._leave(), self._loop).result(CALL_SECONDS)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(CALL_SECONDS)
        self._loop.close()
