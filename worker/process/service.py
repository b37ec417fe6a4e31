"""A worker process: the threads of its stages, its health, and how it exits."""

from __future__ import annotations

import faulthandler
import logging
import os
import sys
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, time

from worker.admin.problem import Problem
from worker.bus import Bus, BusError, TopicPartition
from worker.generations.generation import Generation
from worker.generations.log import FollowedPlan
from worker.generations.modes import Part, parts
from worker.generations.plan import Plan
from worker.index.leftovers import keep_looking
from worker.loop.loop import Loop
from worker.loop.tracing import Trace
from worker.metrics import table
from worker.metrics.metrics import Metrics
from worker.probes.probes import Health
from worker.process.heap import collect_until, show_memory
from worker.process.parts import Assembly, PartThread
from worker.process.state_directory import show_disk
from worker.process.watchdog import Alarm, Pulse, SettingsWatch, Watchdog, where
from worker.settings.errors import ConfigurationError
from worker.settings.model import Settings
from worker.stages.base import StageError
from worker.topology import Topology
from worker.visible import counted

_log = logging.getLogger(__name__)

EXIT_HUNG = 3
"""The exit status of a worker with a stage that hangs in a call, and so can't stop cleanly."""

_LOOK_SECONDS = 1.0
_RETRY_SECONDS = 10.0
_DISCARD_SECONDS = 3_600.0
_LOOKS = 6
"""Snapshots that nobody ships any more are looked for each hour, or so often in the time within
which forgotten documents must be gone."""
_LOCKED_UP = 1.5
"""Multiple of ``watchdog.poll_seconds`` after which faulthandler ends a locked-up process."""
_REPORT_SECONDS = 60.0
_VERDICTS = ("unique", "duplicate", "rejected")


@dataclass(frozen=True, slots=True)
class Seats:
    """The partitions and shards that a worker owns, of how many; None for stages not run."""

    partitions: int | None
    of_partitions: int
    shards: int | None
    of_shards: int

    def __str__(self) -> str:
        """Return both in words."""
        parts = []
        if self.partitions is not None:
            parts.append(f"{self.partitions} of {counted(self.of_partitions, 'partition')}")
        if self.shards is not None:
            parts.append(f"{self.shards} of {counted(self.of_shards, 'shard')}")
        return ", ".join(parts)


class Reports:
    """Logs that a worker is ready, then its rates, unless nothing happens."""

    def __init__(
        self,
        stages: Collection[str],
        counts: Callable[[], Mapping[str, float]],
        now: float,
    ) -> None:
        """Take the stages that run, how to count (see `totals`), and the time in seconds."""
        self._stages = stages
        self._counts = counts
        self._began = now
        self._ready = False
        self._reported = now
        self._before = counts()
        self._idle = False

    def look(self, now: float, seats: Seats, behind: Mapping[str, int], *, ready: bool) -> None:
        """Log what is due. Called about once a second.

        ``behind`` is by stage, in records.
        """
        if ready and not self._ready:
            self._ready = True
            _log.info("ready after %.1f s: %s", now - self._began, seats)
        seconds = now - self._reported
        if seconds < _REPORT_SECONDS:
            return
        counts = self._counts()
        rates = {name: (counts[name] - self._before[name]) / seconds for name in counts}
        self._before, self._reported = counts, now
        idle = not any(rates.values()) and not any(behind.values())
        if not (idle and self._idle):
            self._report(rates, behind)
        self._idle = idle

    def _report(self, rates: Mapping[str, float], behind: Mapping[str, int]) -> None:
        shown = []
        if "fingerprint" in self._stages:
            shown.append(f"{rates['fingerprint']:,.1f} documents/s in")
        if "route" in self._stages:
            shown += [f"{verdict} {rates[verdict]:,.1f}/s" for verdict in _VERDICTS]
        elif "fingerprint" in self._stages:
            shown.append(f"rejected {rates['rejected']:,.1f}/s")
        else:
            shown.append(f"{rates['index']:,.1f} frames/s in")
        lag = ", ".join(f"{stage} {records:,}" for stage, records in behind.items())
        rounded = {name: round(rate, 1) for name, rate in rates.items()}
        _log.info(
            "%s; behind: %s",
            ", ".join(shown),
            lag,
            extra={"per_second": rounded, "behind": dict(behind)},
        )


def totals(metrics: Metrics, stages: Collection[str]) -> dict[str, float]:
    """Return the records that each stage has read, and the documents of each verdict."""
    read = {stage: metrics.value(table.RECORDS, stage) or 0.0 for stage in stages}
    published = {verdict: metrics.value(table.DOCUMENTS, verdict) or 0.0 for verdict in _VERDICTS}
    return read | published


class Service:
    """Runs each stage in its own thread until `stop` is called or a stage fails."""

    def __init__(  # noqa: PLR0913 -- what all stages share, and what may exist before them
        self,
        settings: Settings,
        topology: Topology,
        bus: Bus,
        state_dir: Path,
        instance: str,
        *,
        followed: FollowedPlan | None = None,
        metrics: Metrics | None = None,
        stopping: threading.Event | None = None,
        check: Callable[[], Sequence[Problem]] = tuple,
        trace: Trace | None = None,
    ) -> None:
        """Take what all stages share; no stage joins its group yet.

        ``topology`` is that of the index's generation 0; ``followed`` says which generations are
        run, and has been read. Without it, that is all there is. ``stopping`` is what `stop` sets;
        it may exist before the service does. ``check`` returns what is wrong with the topics, and
        may block.
        """
        self._settings = settings
        self._bus = bus
        self._base = topology
        self._state_dir = state_dir
        self._followed = followed
        self._plan = (followed and followed.plan) or Plan.of(settings)
        self.metrics = metrics or Metrics(settings.app, time, threading.Lock())
        self._assembly = Assembly(
            settings,
            topology,
            bus,
            state_dir,
            metrics=self.metrics,
            background=True,
            watch=True,
            trace=trace,
        )
        self._instance = instance
        self._parts: dict[str, PartThread] = {}
        self._leaving: list[PartThread] = []
        self._watchdog = Watchdog(settings.watchdog.limits())
        self._alarms: list[Alarm] = []
        self._stopping = stopping or threading.Event()
        self._failure: BaseException | None = None
        self._failed: str | None = None
        stages = settings.worker.stages
        self._reports = Reports(stages, lambda: totals(self.metrics, stages), monotonic())
        self._discarding = 0.0
        self._lock = threading.Lock()
        self._settings_watch = SettingsWatch(check, settings.worker.check_seconds, self._refuse)

    def stop(self) -> None:
        """Ask all stages to finish their current step and leave their groups."""
        self._stopping.set()

    def run(self) -> None:
        """Run until `stop`, or until a stage fails.

        Raises:
            StageError: a stage did not finish within ``worker.shutdown_seconds``.
            BaseException: the error of the stage that failed; all others have been stopped.
        """
        for watch, limit in self._settings.watchdog.limits().items():
            self.metrics.set(table.WATCHDOG_LIMIT_SECONDS, limit, watch)
        self._arm()
        self._take_up(self._plan)
        if self._followed is not None:
            threading.Thread(target=self._follow, name="plan", daemon=True).start()
        collecting = threading.Thread(
            target=collect_until, args=(self._stopping,), name="collector", daemon=True
        )
        collecting.start()
        seconds = self._settings.index.erasure_seconds
        threading.Thread(
            target=keep_looking,
            args=(self._tidy, seconds, self._stopping),
            name="tidy",
            daemon=True,
        ).start()
        looked = monotonic()
        while any(one.thread.is_alive() for one in self._running()) and not self._stopping.wait(
            0.2
        ):
            # At once: documents may wait for a plan to be taken up.
            if self._followed is not None and self._followed.plan not in (None, self._plan):
                self._take_up(self._followed.plan)
            if monotonic() - looked >= _LOOK_SECONDS:
                looked = monotonic()
                self._watch()
        faulthandler.cancel_dump_traceback_later()
        deadline = monotonic() + self._settings.worker.shutdown_seconds
        threads = [one.thread for one in self._running()]
        for thread in threads:
            thread.join(max(0.0, deadline - monotonic()))
        late = [thread.name for thread in threads if thread.is_alive()]
        if not late:
            self._assembly.end()
        else:
            given = f"worker.shutdown_seconds ({self._settings.worker.shutdown_seconds:g})"
            unfinished = StageError(f"{', '.join(late)} did not finish within {given}")
            if self._failure is None:
                raise unfinished
            _log.error("%s", unfinished)
        if self._failure is not None:
            raise self._failure

    def _running(self) -> list[PartThread]:
        return [*self._parts.values(), *self._leaving]

    def _follow(self) -> None:
        """Read the plan as it changes."""
        assert self._followed is not None  # noqa: S101 -- only then is it called
        while not self._stopping.is_set():
            try:
                self._followed.look(_LOOK_SECONDS)
            except BusError as error:
                _log.warning("the plan of generations can't be read: %s; trying again", error)
                self._stopping.wait(_RETRY_SECONDS)
        self._followed.close()

    def _take_up(self, plan: Plan) -> None:
        """Run what the plan says: leave the parts that it doesn't have, begin the others."""
        former, self._plan = self._plan, plan
        wanted = {part.name: part for part in parts(self._settings.worker.stages, plan, self._base)}
        self._leaving = [one for one in self._leaving if one.thread.is_alive()]
        for name in self._parts.keys() - wanted.keys():
            one = self._parts[name]
            self._leaving.append(one)
            del self._parts[name]
            one.leave()
        if former != plan:
            _log.info("the index: %s", _described(plan))
        for name, part in wanted.items():
            # Nothing waits yet for what is made ahead.
            spare = part.mode.ahead and not plan.handed_over
            if name not in self._parts:
                self._begin(part, spare=spare)
            one = self._parts[name]
            one.spare = spare
            if one.part != part:
                one.change(part)
        self.metrics.set(table.INDEX_GENERATION, plan.current.number)

    def _begin(self, part: Part, *, spare: bool) -> None:
        """Run a part in a thread of its own."""
        one = PartThread(
            part,
            self._build,
            self._stopping,
            lambda error: self._fail(part.name, error),
            spare=spare,
        )
        self.add(one)
        one.thread.start()

    def add(self, one: PartThread) -> None:
        """Watch a part, report its health, and end it with the others."""
        self._parts[one.part.name] = one

    def _build(self, part: Part, former: Loop | None) -> Loop:
        """Build a part's loop, in the seat of a former one if there is one."""
        if former is not None:
            return self._assembly.succeed(part, former)
        return self._assembly.loop(part, self._instance)

    def _tidy(self) -> None:
        """Delete stores and snapshots that nobody uses."""
        self._assembly.tidy(self._plan, self._indexes())
        if "index" in self._settings.worker.stages and monotonic() >= self._discarding:
            seconds = self._settings.index.erasure_seconds
            self._discarding = monotonic() + min(_DISCARD_SECONDS, seconds / _LOOKS)
            self._assembly.discard_snapshots(self._plan)

    def _indexes(self) -> dict[Generation, Loop | None]:
        """Return the loops of *index* by generation; those that end are not open any more."""
        ending = {one.part: None for one in list(self._leaving) if one.thread.is_alive()}
        found = ending | {one.part: one.loop for one in list(self._parts.values())}
        return {
            part.generation: loop
            for part, loop in found.items()
            if part.stage == "index" and part.generation is not None
        }

    def _label(self, one: PartThread) -> str:
        """Return the stage for which a part counts, in metrics and health."""
        part = one.part
        return part.name if part.mode.ahead else part.stage

    def _loops(self) -> dict[str, Loop]:
        """Return the open loops by label."""
        found = {self._label(one): one.loop for one in list(self._parts.values())}
        return {label: loop for label, loop in found.items() if loop is not None}

    def _arm(self) -> None:
        """Arm faulthandler: it ends the process if a call hangs while it holds the GIL."""
        seconds = _LOCKED_UP * self._settings.watchdog.poll_seconds
        faulthandler.dump_traceback_later(seconds, exit=True)

    def _watch(self) -> None:
        """Check the stages; end the worker if one has exceeded a limit."""
        self._arm()
        self.metrics.set(table.KAFKA_SILENT_SECONDS, self._bus.silent_seconds)
        self._settings_watch.look()
        self.metrics.set(table.REFUSED_SETTINGS, self._settings_watch.errors)
        self._measure()
        ahead = [one for one in list(self._parts.values()) if one.part.mode.ahead]
        lags = {one.part.stage: one.loop.lags for one in ahead if one.loop is not None}
        show_what_is_built(self.metrics, lags)
        # The worker goes on without what is being built.
        spare = {self._label(one) for one in list(self._parts.values()) if one.spare}
        threads = {self._label(one): one.thread.ident or 0 for one in list(self._parts.values())}
        pulses = {name: _pulse(loop) for name, loop in self._loops().items() if name not in spare}
        for stage, pulse in pulses.items():
            for watch, age in self._watchdog.ages(stage, pulse).items():
                self.metrics.set(table.WATCHDOG_SECONDS, age, stage, watch)
        behind = {name: pulse.behind for name, pulse in pulses.items()}
        self._reports.look(monotonic(), self._seats(), behind, ready=self.health().ready)
        self._alarms = self._watchdog.look(pulses)
        for alarm in self._alarms:
            if not alarm.over:
                continue
            if alarm.hangs:
                self._end(alarm, threads[alarm.stage])
            self._fail(alarm.stage, StageError(alarm.text))

    def _measure(self) -> None:
        """Export what the worker and its parts take of their memory, and what the disk has left."""
        shares = self._assembly.shares
        self.metrics.set(table.MEMORY_SHARE_BYTES, shares.lanes, "lanes")  # *route* sets the rest.
        most = {
            "fetched": shares.clients,
            "produced": len(self._settings.worker.stages) * shares.produced,
        }
        show_memory(self.metrics, self._assembly.memory(), self._bus.queued(), most, shares.total)
        show_disk(self.metrics, self._state_dir)

    def _seats(self) -> Seats:
        """Return how many partitions of the documents, and how many shards, this worker has."""
        owned = [partition for loop in self._loops().values() for partition in loop.owned]
        stages, plan = self._settings.worker.stages, self._plan
        topology = plan.widened(plan.current.topology(self._base))
        layout = topology.layout
        documents = {partition for partition in owned if partition.topic == topology.documents}
        shards = [partition for partition in owned if partition.topic == topology.seats]
        return Seats(
            partitions=None if tuple(stages) == ("index",) else len(documents),
            of_partitions=layout.partitions,
            shards=len(shards) if "index" in stages else None,
            of_shards=layout.shards,
        )

    def _end(self, alarm: Alarm, thread: int) -> None:
        """End the process at once: a stage that hangs in a call can't stop cleanly."""
        _log.critical(
            "%s. The worker exits with status %d. The stage hangs at:",
            alarm.text,
            EXIT_HUNG,
            extra={"details": list(where(thread))},
        )
        logging.shutdown()
        sys.stderr.flush()
        os._exit(EXIT_HUNG)

    def _fail(self, name: str, error: BaseException) -> None:
        with self._lock:
            if self._failure is None:
                self._failure, self._failed = error, name
                _log.error("stage %s failed, stopping the worker: %s", name, error)
            else:
                _log.error("stage %s also failed: %s", name, error)
        self._stopping.set()

    def _refuse(self, error: ConfigurationError) -> None:
        """Stop because of a setting with which no worker would start."""
        with self._lock:
            self._failure = self._failure or error
        _log.error("stopping the worker: %s", error)
        self._stopping.set()

    def health(self) -> Health:
        """Return the state of all stages."""
        loops = self._loops()
        stages = self._settings.worker.stages
        if not self._plan.handed_over:  # Nothing waits for what is being built.
            loops = {name: loop for name, loop in loops.items() if name in stages}
        held = {self._label(one) for one in list(self._parts.values()) if one.part.mode.holds}
        waiting = [name for name in stages if name not in loops or not loops[name].seated]
        return Health(
            failed=self._failed,
            stopping=self._stopping.is_set(),
            unanswered=1_000 * self._bus.silent_seconds > self._settings.kafka.session_timeout_ms,
            waiting=waiting,
            restoring=[name for name, loop in loops.items() if loop.status.restoring],
            catching_up=[
                name for name, loop in loops.items() if loop.catching_up and name not in held
            ],
            stalled=sorted({alarm.stage for alarm in self._alarms if alarm.watch == "poll"}),
        )


def starting(settings: Settings) -> Health:
    """Return the state of a worker whose service doesn't exist yet: it may be waiting for Kafka."""
    return Health(waiting=list(settings.worker.stages))


def show_what_is_built(metrics: Metrics, lags: Mapping[str, Mapping[TopicPartition, int]]) -> None:
    """Export how much the next generation, which counts in nothing else, still has to read.

    ``lags`` has the lags of its parts by their stages.
    """
    shards = {(str(seat.partition),): lag for seat, lag in lags.get("index", {}).items()}
    metrics.show(table.BUILDING_REMAINING_RECORDS, shards)
    metrics.set(table.REWRITING_REMAINING_RECORDS, sum(lags.get("refingerprint", {}).values()))


def _pulse(loop: Loop) -> Pulse:
    """Read the progress of a stage that runs in another thread, without blocking it."""
    status = loop.status
    return Pulse(
        beat=loop.beat,
        transacting=loop.transacting,
        moved=loop.moved,
        behind=loop.behind,
        restored=status.restored if status.restoring else None,
    )


def _described(plan: Plan) -> str:
    """Return in words which generations are run."""
    current, following = plan.current, plan.following
    text = f"generation {current.number}, {counted(current.shards, 'shard')}, is in use"
    if plan.partitions:
        text += f", {counted(plan.partitions, 'partition')} of the documents read"
    if following is None:
        return text
    state = "takes over" if plan.handed_over else "is being built"
    return f"{text}; generation {following.number}, {counted(following.shards, 'shard')}, {state}"
