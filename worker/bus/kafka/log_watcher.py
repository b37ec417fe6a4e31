"""Checks periodically on the logs that a bus's members read."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection
from time import monotonic
from typing import NamedTuple

from confluent_kafka import KafkaException

from worker.bus import BusError
from worker.bus.kafka.errors import cause
from worker.bus.kafka.identities import Identities
from worker.bus.kafka.log_ends import Ends

_log = logging.getLogger(__name__)

_EVERY_SECONDS = 2.0
_MISSING_SECONDS = 30.0


class Watched(NamedTuple):
    """What is watched for a member."""

    identities: Identities
    ends: Ends


class Watcher:
    """One thread for all members; it runs while there are any.

    A member learns from its own client that a topic was recreated, if that client logs it. The
    watcher finds out in any case, even for topics that are not being read.
    """

    def __init__(
        self,
        ask: Callable[[Collection[str], float], dict[str, str]],
        survey: Callable[[Ends, float], None],
        *,
        every_seconds: float = _EVERY_SECONDS,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        """Take the two look-ups; start no thread.

        ``ask`` returns the ids of the topics that exist, ``survey`` finds the wanted ends; both
        take a timeout in seconds.
        """
        self._ask = ask
        self._survey = survey
        self._every = every_seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._members: list[Watched] = []
        self._ending = threading.Event()
        self._missing: dict[str, float] = {}
        self._reported: set[str] = set()
        self._blind = False
        self._unanswered_since: float | None = None
        self._missed = False

    @property
    def silent_seconds(self) -> float:
        """Return how long ago the first request was sent since which no broker has answered."""
        since = self._unanswered_since
        return 0.0 if since is None else self._clock() - since

    def watch(self, member: Watched) -> None:
        """Start watching a member's logs."""
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
        """Stop watching a member's logs; with the last member the thread ends."""
        with self._lock:
            if member in self._members:
                self._members.remove(member)
            if not self._members:
                self._ending.set()
                self._unanswered_since = None

    def _run(self, ending: threading.Event) -> None:
        while not ending.wait(self._every):
            try:
                self.look()
            except Exception as error:  # noqa: BLE001 -- passed on to the members, which raise it
                for member in self._watched():
                    member.identities.wrong = BusError(f"the watcher of topics failed: {error!r}")
                return

    def _watched(self) -> list[Watched]:
        with self._lock:
            return list(self._members)

    def look(self) -> None:
        """Ask once, and inform the members."""
        members = self._watched()
        topics = sorted(frozenset().union(*(member.identities.topics for member in members)))
        if self._unanswered_since is None:
            self._unanswered_since = self._clock()
        try:
            found = self._ask(topics, 2 * self._every)
            self._hear()
            for member in members:
                member.identities.look(found)
            for member in members:
                self._survey(member.ends, self._every)
        except KafkaException as error:
            why = cause(error)
            refused = why.code() > 0  # This is an answer; librdkafka's own codes are negative.
            if refused:
                self._hear()
            if not self._blind:
                self._missed = not refused
                _log.info("the brokers don't describe the topics: %s; retrying", why.str())
            self._blind = True
            return
        self._blind = False
        self._report_missing([topic for topic in topics if topic not in found])

    def _hear(self) -> None:
        """Note that a broker has answered."""
        if self._missed:
            self._missed = False
            _log.info("the brokers answer again, after %.0f s", self.silent_seconds)
        self._unanswered_since = None

    def _report_missing(self, missing: Collection[str]) -> None:
        """Log once that a topic is missing, if it is missing for more than a moment."""
        now = self._clock()
        self._missing = {topic: self._missing.get(topic, now) for topic in missing}
        self._reported &= self._missing.keys()
        for topic, since in self._missing.items():
            if topic not in self._reported and now - since >= _MISSING_SECONDS:
                self._reported.add(topic)
                _log.error(
                    "%s has not existed for %.0f s; was it deleted? The stages that read it wait."
                    " See the runbook, 'A topic was recreated'",
                    topic,
                    now - since,
                    extra={"topic": topic},
                )
