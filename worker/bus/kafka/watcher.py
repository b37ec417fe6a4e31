"""A look from time to time at the logs that a bus's members read."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection
from time import monotonic
from typing import NamedTuple

from confluent_kafka import KafkaException

from worker.bus.kafka.ends import Ends
from worker.bus.kafka.errors import cause
from worker.bus.kafka.identities import Identities
from worker.bus.port import BusError

__all__ = ["Watched", "Watcher"]

_log = logging.getLogger(__name__)

_EVERY_SECONDS = 2.0
_MISSING_SECONDS = 30.0
_JOIN_SECONDS = 5.0


class Watched(NamedTuple):
    """What a member wants to be told."""

    identities: Identities
    ends: Ends


class Watcher:
    """One thread for all members; it runs while there are any.

    A member hears from its own client when a topic is made anew, if that client logs it. The
    watcher finds out in any case, also for topics that are not read at the moment.
    """

    def __init__(
        self,
        ask: Callable[[Collection[str], float], dict[str, str]],
        survey: Callable[[Ends, float], None],
        *,
        every_seconds: float = _EVERY_SECONDS,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        """Watch nothing yet.

        ``ask`` gives the ids of those topics that exist, ``survey`` finds the ends that are
        wanted; both within seconds.
        """
        self._ask = ask
        self._survey = survey
        self._every = every_seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._members: list[Watched] = []
        self._ending = threading.Event()
        self._missing: dict[str, float] = {}
        self._told: set[str] = set()
        self._blind = False

    def watch(self, member: Watched) -> None:
        """Watch a member's logs, too."""
        with self._lock:
            self._members.append(member)
            if len(self._members) > 1:
                return
            self._ending = threading.Event()
            thread = threading.Thread(
                target=self._run, args=(self._ending,), name="watcher", daemon=True
            )
            thread.start()

    def leave(self, member: Watched) -> None:
        """Watch a member's logs no more; with the last one the thread ends."""
        with self._lock:
            if member in self._members:
                self._members.remove(member)
            if not self._members:
                self._ending.set()

    def _run(self, ending: threading.Event) -> None:
        while not ending.wait(self._every):
            try:
                self.look()
            except Exception as error:  # noqa: BLE001 -- carried to the members, which raise it
                for member in self._watched():
                    member.identities.wrong = BusError(f"the watcher of topics failed: {error!r}")
                return

    def _watched(self) -> list[Watched]:
        with self._lock:
            return list(self._members)

    def look(self) -> None:
        """Ask once, and tell the members."""
        members = self._watched()
        topics = sorted(frozenset().union(*(member.identities.topics for member in members)))
        try:
            found = self._ask(topics, 2 * self._every)
            for member in members:
                member.identities.look(found)
            for member in members:
                self._survey(member.ends, self._every)
        except KafkaException as error:
            if not self._blind:
                _log.info("the brokers tell nothing of topics: %s; trying on", cause(error).str())
            self._blind = True
            return
        self._blind = False
        self._note([topic for topic in topics if topic not in found])

    def _note(self, missing: Collection[str]) -> None:
        """Say once of a topic that it is gone: for a moment it may be."""
        now = self._clock()
        self._missing = {topic: self._missing.get(topic, now) for topic in missing}
        self._told &= self._missing.keys()
        for topic, since in self._missing.items():
            if topic not in self._told and now - since >= _MISSING_SECONDS:
                self._told.add(topic)
                _log.error(
                    "%s has not existed for %.0f s; was it deleted? What reads it waits. See"
                    " docs/runbook.md, 'A topic was made anew'",
                    topic,
                    now - since,
                )
