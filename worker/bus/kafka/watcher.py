"""A look from time to time at the topics that a bus's members read."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection
from time import monotonic

from confluent_kafka import KafkaException

from worker.bus.kafka.errors import cause
from worker.bus.kafka.identities import Identities

__all__ = ["Watcher"]

_log = logging.getLogger(__name__)

_EVERY_SECONDS = 2.0
_MISSING_SECONDS = 30.0
_JOIN_SECONDS = 5.0


class Watcher:
    """One thread for all members; it runs while there are any.

    A member hears from its own client when a topic is made anew, if that client logs it. The
    watcher finds out in any case, also for topics that are not read at the moment.
    """

    def __init__(
        self,
        ask: Callable[[Collection[str], float], dict[str, str]],
        *,
        every_seconds: float = _EVERY_SECONDS,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        """Watch nothing yet; ``ask`` gives the ids of those topics that exist, within seconds."""
        self._ask = ask
        self._every = every_seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._members: list[Identities] = []
        self._ending = threading.Event()
        self._missing: dict[str, float] = {}
        self._told: set[str] = set()
        self._blind = False

    def watch(self, member: Identities) -> None:
        """Watch a member's topics, too."""
        with self._lock:
            self._members.append(member)
            if len(self._members) > 1:
                return
            self._ending = threading.Event()
            thread = threading.Thread(
                target=self._run, args=(self._ending,), name="topics", daemon=True
            )
            thread.start()

    def leave(self, member: Identities) -> None:
        """Watch a member's topics no more; with the last one the thread ends."""
        with self._lock:
            if member in self._members:
                self._members.remove(member)
            if not self._members:
                self._ending.set()

    def _run(self, ending: threading.Event) -> None:
        while not ending.wait(self._every):
            self.look()

    def look(self) -> None:
        """Ask once, and tell the members."""
        with self._lock:
            members = list(self._members)
        topics = sorted(frozenset().union(*(member.topics for member in members)))
        try:
            found = self._ask(topics, 2 * self._every)
        except KafkaException as error:
            if not self._blind:
                _log.info("the topics' ids can't be asked for: %s; trying on", cause(error).str())
            self._blind = True
            return
        self._blind = False
        for member in members:
            member.look(found)
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
