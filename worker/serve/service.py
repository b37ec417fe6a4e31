"""The process that answers queries: its parts, its health, and how it ends."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from threading import Event
from time import monotonic
from typing import TypeVar

from worker.app import Application
from worker.bus import Bus
from worker.closing import Closing
from worker.groups.reading import GroupsReader
from worker.metrics import table
from worker.metrics.metrics import Metrics
from worker.observe.flow import Owners
from worker.probes.probes import Health
from worker.process.heap import show_memory
from worker.process.state_directory import show_disk
from worker.serve.asking import Asker, Questions
from worker.serve.desk import Desk, Pool, waits
from worker.serve.following import Following
from worker.serve.groups import groups_of
from worker.serve.queries import QueryPages, Said
from worker.serve.shard_lock import ShardLock
from worker.settings.model import Settings
from worker.stages.base import Status
from worker.stages.shard_reports import ShardFigures

T = TypeVar("T")

_log = logging.getLogger(__name__)

TURN_SECONDS = 0.0005
"""After so long, a thread that waits for Python gets it. A query waits for it several times."""
_LOOK_SECONDS = 0.5
_HEAD_BYTES = 64 << 10
"""Of a request's body, besides the document: JSON around and within it."""


class QueryService(Closing):
    """Answers queries from the time when `begin` was called; before that it says it isn't ready."""

    def __init__(self, settings: Settings, metrics: Metrics, stopping: Event) -> None:
        """Take the settings, what is exported, and what ends the process."""
        self._settings = settings
        self._metrics = metrics
        self._stopping = stopping
        self._application: Application | None = None
        self._following: Following | None = None
        self._pages: QueryPages | None = None
        self._desk: Desk | None = None
        self._failed = False
        self._figures = ShardFigures()

    @property
    def most_bytes(self) -> int:
        """Return the size of a body at most. A document has room in one, also with escapes."""
        return 2 * self._settings.limits.record_bytes + _HEAD_BYTES

    def begin(
        self,
        application: Application,
        clock: Callable[[], float] = monotonic,
        lock: Callable[[], ShardLock] = ShardLock,
    ) -> Following:
        """Begin to follow the log, and to answer; return what follows. See `Following`."""
        self._application = application
        self._following = following = Following(application, clock, lock)
        asker = Asker(application.topology.layout, application.settings.rules())
        questions = Questions(self._settings)
        self._pages = QueryPages(questions, asker, following, self._metrics)
        return following

    def show(self, bus: Bus, owners: Owners, pool: Pool | None = None) -> Desk:
        """Begin to answer what is read beside queries; call it after `begin`. See `Desk`."""
        application, following = self._application, self._following
        assert application is not None  # noqa: S101 -- `begin` comes first
        assert following is not None  # noqa: S101
        self._desk = Desk(application, bus, following, owners, pool)
        return self._desk

    def run(self, bus: Bus) -> None:
        """Follow the log until the process is told to stop.

        Raises:
            BaseException: what ended the thread that follows the log.
        """
        following = self._following
        assert following is not None  # noqa: S101 -- `begin` comes first
        sys.setswitchinterval(TURN_SECONDS)
        while not self._stopping.is_set():
            try:
                following.check()
            except BaseException:
                self._failed = True
                raise
            self.export(bus)
            self._stopping.wait(_LOOK_SECONDS)

    def export(self, bus: Bus) -> None:
        """Export how far the shards are, how large, and what the process takes of its memory."""
        following, application = self._following, self._application
        if following is None or application is None:
            return
        metrics, figures = self._metrics, self._figures
        metrics.set(table.KAFKA_SILENT_SECONDS, bus.silent_seconds)
        self._measure(bus, application)
        show_disk(metrics, self._settings.worker.state_dir)
        figures.status(metrics, Status(standby_lag=following.reached().behind))
        try:
            following.use(partial(figures.stores, metrics))
        except Exception as why:  # noqa: BLE001 -- a store was closed meanwhile: the next look will do
            _log.debug("no sizes: %s", why)

    def _measure(self, bus: Bus, application: Application) -> None:
        """Export what the process and its parts take of their memory."""
        shares = application.shares
        # Each shard has a reader of its own until it has caught up.
        readers = application.topology.layout.shards * shares.log_reader
        queues = bus.queued(), {"fetched": readers}
        show_memory(self._metrics, application.memory(), *queues, shares.total)

    def query(self, bodies: Sequence[bytes]) -> list[Said]:
        """Return the answers to some queries; see `QueryPages.query`."""
        if self._pages is None:
            return [waits()] * len(bodies)
        return self._pages.query(bodies)

    def groups(self, ask: Callable[[GroupsReader], T], /) -> T:
        """Return what is asked of the groups; see `AskGroups`."""
        if self._following is None:
            raise waits()
        return groups_of(self._following, ask)

    def desk(self) -> Desk:
        """Return what answers beside queries.

        Raises:
            Refused: it isn't there yet.
        """
        if self._desk is None:
            raise waits()
        return self._desk

    def health(self) -> Health:
        """Return the state of the server; a shard that is warming up is being restored."""
        following = self._following
        if following is None:
            return Health(stopping=self._stopping.is_set(), waiting=["shards"])
        reached = following.reached()
        silent = reached.checked_seconds
        longest = self._settings.kafka.session_timeout_ms / 1_000
        return Health(
            failed="shards" if self._failed else None,
            stopping=self._stopping.is_set(),
            unanswered=silent is not None and silent > longest,
            restoring=[f"shard {number}" for number in reached.warming],
        )

    def close(self) -> None:
        """End the thread and close the stores, within a bounded time."""
        with ExitStack() as stack:
            if self._following is not None:
                stack.callback(self._following.close)
            if self._desk is not None:
                stack.callback(self._desk.close)
