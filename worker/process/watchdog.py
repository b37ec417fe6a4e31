"""Watchdogs: whether each stage makes progress, and whether the topics keep their settings.

====================  =========================================================
``poll``              the stage doesn't poll
``transaction``       a transaction doesn't end; readers of its outputs wait
``progress``          records are waiting, but the stage handles none
``restore``           the restore or replay of a shard makes no progress
====================  =========================================================

Each has a limit. At a quarter of it, a log line says what to check. At the limit the worker
exits: another worker, or this one after a restart, may do better.
"""

from __future__ import annotations

import logging
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Final, NamedTuple

from worker.admin.problem import Problem
from worker.bus import BusError
from worker.settings.errors import ConfigurationError
from worker.settings.sections import Watch
from worker.visible import counted

_log = logging.getLogger(__name__)

_WARNED_AT: Final = 0.25
AGAIN_SECONDS = 30.0
"""After so long the second look comes, once the first has found an error."""

_ADVICE: Final[Mapping[Watch, str]] = {
    "poll": "has not polled for {age:.0f} s: it hangs in a call, or this machine is overloaded",
    "transaction": (
        "has been in a transaction for {age:.0f} s: the brokers do not answer. Check the brokers"
        " and the network"
    ),
    "progress": (
        "has made no progress for {age:.0f} s, although {waiting} waiting: most often an"
        " open transaction of another client blocks the log; see the runbook, 'A stuck"
        " transaction'"
    ),
    "restore": (
        "is restoring a shard, without progress for {age:.0f} s: check the snapshots' storage, the"
        " disk and the brokers"
    ),
}


class Pulse(NamedTuple):
    """The observable state of a stage; times are in seconds of the monotonic clock.

    ``beat``: its last poll. ``transacting``: the start of its open transaction, if any.
    ``moved``: when it last handled a record. ``behind``: records that it could read.
    ``restored``: a number that grows while a shard is being restored; None otherwise.
    """

    beat: float
    transacting: float | None = None
    moved: float = 0.0
    behind: int = 0
    restored: int | None = None


@dataclass(frozen=True, slots=True)
class Alarm:
    """A stage without progress for ``age`` seconds; if ``over``, the worker must exit."""

    stage: str
    watch: Watch
    age: float
    over: bool
    text: str

    @property
    def hangs(self) -> bool:
        """Return whether the stage is in a call that doesn't return, and so can't stop cleanly."""
        return self.watch in {"poll", "transaction"}


class Watchdog:
    """Checks the stages' pulses; logs each alarm once, and when it is over."""

    def __init__(
        self, limits: Mapping[Watch, float], clock: Callable[[], float] = monotonic
    ) -> None:
        """Start with ``limits`` in seconds, by watch."""
        self._limits = limits
        self._clock = clock
        self._restored: dict[str, tuple[int, float]] = {}
        self._waiting: dict[str, float] = {}
        self._warned: set[tuple[str, Watch]] = set()

    def look(self, pulses: Mapping[str, Pulse]) -> list[Alarm]:
        """Return the current alarms, worst first; call it about once a second."""
        alarms = []
        for stage, pulse in pulses.items():
            for watch, age in self.ages(stage, pulse).items():
                limit = self._limits[watch]
                about = (stage, watch)
                if age < _WARNED_AT * limit:
                    if about in self._warned:
                        self._warned.discard(about)
                        _log.info("stage %s: the watchdog %s sees progress again", stage, watch)
                    continue
                waiting = counted(pulse.behind, "record is", "records are")
                what = _ADVICE[watch].format(age=age, waiting=waiting)
                over = age >= limit
                text = f"stage {stage} {what}"
                alarms.append(Alarm(stage, watch, age, over, text))
                if about not in self._warned:
                    self._warned.add(about)
                    _log.warning("%s. At %.0f s this worker exits", text, limit)
        return sorted(alarms, key=lambda alarm: (not alarm.over, not alarm.hangs, -alarm.age))

    def ages(self, stage: str, pulse: Pulse) -> dict[Watch, float]:
        """Return for how long, in seconds, each watch has seen no progress."""
        now = self._clock()
        if not pulse.behind:
            self._waiting.pop(stage, None)
        waiting = self._waiting.setdefault(stage, now) if pulse.behind else now
        if pulse.restored is None:
            self._restored.pop(stage, None)
        elif stage not in self._restored or self._restored[stage][0] != pulse.restored:
            self._restored[stage] = (pulse.restored, now)
        return {
            "poll": now - pulse.beat,
            "transaction": now - pulse.transacting if pulse.transacting is not None else 0.0,
            "progress": now - max(waiting, pulse.moved),
            "restore": now - self._restored[stage][1] if stage in self._restored else 0.0,
        }


def where(thread: int) -> Iterator[str]:
    """Yield the lines of code that a thread is executing, the innermost last."""
    frame = sys._current_frames().get(thread)  # noqa: SLF001 -- public, despite its name
    for entry in traceback.extract_stack(frame) if frame is not None else ():
        yield f"{entry.filename}:{entry.lineno} {entry.name}"


class SettingsWatch:
    """Has the worker end if a setting stays as no worker would start with.

    `look` never blocks: each check runs in a thread of its own, which ends with it. The first
    check is due after one interval, since every worker has just made it at its start.

    Attributes:
        errors: how many errors the last check has found.
    """

    def __init__(
        self,
        check: Callable[[], Sequence[Problem]],
        every_seconds: float,
        fail: Callable[[ConfigurationError], None],
        *,
        again_seconds: float = AGAIN_SECONDS,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        """Take the check, and what is told of an error that two checks have found."""
        self._check = check
        self._every = every_seconds
        self._again = min(again_seconds, every_seconds)
        self._fail = fail
        self._clock = clock
        self._due = clock() + every_seconds
        self._thread: threading.Thread | None = None
        self._found: set[Problem] | None = None
        self.errors = 0

    def look(self) -> None:
        """Start a check if one is due."""
        if self._clock() < self._due or (self._thread is not None and self._thread.is_alive()):
            return
        self._due = self._clock() + self._every
        self._thread = threading.Thread(target=self.check, name="settings", daemon=True)
        self._thread.start()

    def check(self) -> None:
        """Check once, and log what has not been found before."""
        try:
            found = set(self._check())
        except (BusError, ConfigurationError) as error:
            _log.warning("the topics' settings can't be checked: %s; trying again", error)
            return
        errors = {problem for problem in found if problem.severity == "error"}
        # The worker has started without errors, and has logged the warnings that there were then.
        known = found - errors if self._found is None else self._found
        for problem in sorted(found - known, key=str):
            level = logging.ERROR if problem in errors else logging.WARNING
            _log.log(level, "changed while the worker runs: %s", problem)
        lasting = sorted(map(str, errors & known))
        self._found = found
        self.errors = len(errors)
        if lasting:
            self._fail(ConfigurationError(f"{lasting[0]}; see `neardup topics verify`"))
        elif errors:
            self._due = min(self._due, self._clock() + self._again)
