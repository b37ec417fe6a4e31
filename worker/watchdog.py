"""Watchdogs: whether each stage gets on, and not only lives.

====================  ===========================================================
``poll``              the stage has not come round to polling
``transaction``       it is in one transaction; readers of its outputs wait for it
``progress``          there are records to read, and it deals with none
``restore``           a shard is fetched or replayed, and comes no further
====================  ===========================================================

Each has a limit. At a quarter of it a line says what to look at; at the limit the worker
ends itself, since another one, or this one started again, may do better.
"""

from __future__ import annotations

import logging
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from time import monotonic
from typing import Final, Literal, NamedTuple

__all__ = ["Alarm", "Pulse", "Watch", "Watchdog", "where"]

_log = logging.getLogger(__name__)

Watch = Literal["poll", "transaction", "progress", "restore"]

_WARNED_AT: Final = 0.25

_ADVICE: Final[Mapping[Watch, str]] = {
    "poll": "has not come round for {age:.0f} s: it hangs in a call, or this machine is overloaded",
    "transaction": (
        "is in a transaction for {age:.0f} s: the brokers do not answer it. Look at them, and at"
        " the network in between"
    ),
    "progress": (
        "has dealt with nothing for {age:.0f} s, though {behind} records wait: most often an open"
        " transaction of another client holds the log back; see docs/runbook.md, 'A stuck"
        " transaction'"
    ),
    "restore": (
        "restores a shard, and is no further than {age:.0f} s ago: look at the snapshots' storage,"
        " the disk, and the brokers"
    ),
}


class Pulse(NamedTuple):
    """What a stage shows of itself; times are of the monotonic clock.

    ``beat``: when it last came round. ``transacting``: since when it is in a transaction.
    ``moved``: when it last dealt with a record. ``behind``: records that it could read.
    ``restored``: a number that grows while a shard is restored; None when none is.
    """

    beat: float
    transacting: float | None = None
    moved: float = 0.0
    behind: int = 0
    restored: int | None = None


@dataclass(frozen=True, slots=True)
class Alarm:
    """What is wrong; if ``over``, the worker has to end.

    A stage that hangs can't be asked to finish.
    """

    stage: str
    watch: Watch
    age: float
    over: bool
    text: str

    @property
    def hangs(self) -> bool:
        """Tell whether the stage is in a call that has not returned."""
        return self.watch in {"poll", "transaction"}


class Watchdog:
    """Looks at the stages' pulses, and says once what is wrong, and once that it is over."""

    def __init__(
        self, limits: Mapping[Watch, float], clock: Callable[[], float] = monotonic
    ) -> None:
        """Take the limits, in seconds."""
        self._limits = limits
        self._clock = clock
        self._restored: dict[str, tuple[int, float]] = {}
        self._waiting: dict[str, float] = {}
        self._told: set[tuple[str, Watch]] = set()

    def look(self, pulses: Mapping[str, Pulse]) -> list[Alarm]:
        """Give what is wrong now, worst first; call it about once a second."""
        alarms = []
        for stage, pulse in pulses.items():
            for watch, age in self.ages(stage, pulse).items():
                limit = self._limits[watch]
                about = (stage, watch)
                if age < _WARNED_AT * limit:
                    if about in self._told:
                        self._told.discard(about)
                        _log.info("stage %s: %s goes on", stage, watch)
                    continue
                what = _ADVICE[watch].format(age=age, behind=pulse.behind)
                over = age >= limit
                text = f"stage {stage} {what}"
                alarms.append(Alarm(stage, watch, age, over, text))
                if about not in self._told:
                    self._told.add(about)
                    _log.warning("%s. At %.0f s this worker ends itself", text, limit)
        return sorted(alarms, key=lambda alarm: (not alarm.over, not alarm.hangs, -alarm.age))

    def ages(self, stage: str, pulse: Pulse) -> dict[Watch, float]:
        """Give for how long, in seconds, each watch has seen nothing good."""
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
    """Give the lines of code at which a thread is, the innermost last."""
    frame = sys._current_frames().get(thread)  # noqa: SLF001 -- its documented, only name
    for entry in traceback.extract_stack(frame) if frame is not None else ():
        yield f"{entry.filename}:{entry.lineno} {entry.name}"
