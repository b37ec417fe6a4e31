"""A worker process: the threads of its stages, its health, and how it exits."""

from __future__ import annotations

import faulthandler
import logging
import os
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from time import monotonic

from worker.app import Application
from worker.bus import Bus
from worker.http.health import Health
from worker.loop import Loop
from worker.metrics import Metrics
from worker.process.gc import collect_until
from worker.process.memory import resident_bytes
from worker.process.outage import until_answered
from worker.process.reports import Reports, Seats, totals
from worker.process.watchdog import Alarm, Pulse, Watchdog, where
from worker.settings import Settings
from worker.stages import StageError
from worker.topology import Topology

__all__ = ["EXIT_HUNG", "Service", "starting"]

_log = logging.getLogger(__name__)

EXIT_HUNG = 3
"""The exit status of a worker with a stage that hangs in a call, and so can't stop cleanly."""

_LOOK_SECONDS = 1.0
_HURRY_SECONDS = 0.2
"""Between checks of a stage that catches up: a rolling restart waits for it."""
_LOCKED_UP = 1.5
"""Multiple of ``watchdog.poll_seconds`` after which faulthandler ends a locked-up process."""


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
        metrics: Metrics | None = None,
        stopping: threading.Event | None = None,
    ) -> None:
        """Build the application; no stage joins its group yet.

        ``stopping`` is what `stop` sets; it may exist before the service does.
        """
        self._settings = settings
        self._bus = bus
        self._topology = topology
        self.metrics = metrics or Metrics()
        self._application = Application(
            settings,
            topology,
            bus,
            state_dir,
            metrics=self.metrics,
            background=True,
            journal=True,
            watch=True,
        )
        self._instance = instance
        self._loops: dict[str, Loop] = {}
        self._watchdog = Watchdog(settings.watchdog.limits())
        self._alarms: list[Alarm] = []
        self._stopping = stopping or threading.Event()
        self._failure: BaseException | None = None
        self._failed: str | None = None
        stages, registry = settings.worker.stages, self.metrics.registry
        self._reports = Reports(stages, lambda: totals(registry, stages), monotonic())
        self._lock = threading.Lock()

    def stop(self) -> None:
        """Ask all stages to finish their current step and leave their groups."""
        self._stopping.set()

    def run(self) -> None:
        """Run until `stop`, or until a stage fails.

        Raises:
            BaseException: the error of the stage that failed; all others have been stopped.
        """
        threads = [
            threading.Thread(target=self._stage, args=(name,), name=name, daemon=True)
            for name in self._settings.worker.stages
        ]
        for watch, limit in self._settings.watchdog.limits().items():
            self.metrics.process.limit(watch, limit)
        self._arm()
        for thread in threads:
            thread.start()
        collecting = threading.Thread(
            target=collect_until, args=(self._stopping,), name="collector", daemon=True
        )
        collecting.start()
        looked = monotonic()
        while any(thread.is_alive() for thread in threads) and not self._stopping.wait(0.2):
            if monotonic() - looked >= _LOOK_SECONDS:
                looked = monotonic()
                self._watch({thread.name: thread.ident or 0 for thread in threads})
        faulthandler.cancel_dump_traceback_later()
        deadline = monotonic() + self._settings.worker.shutdown_seconds
        for thread in threads:
            thread.join(max(0.0, deadline - monotonic()))
        late = [thread.name for thread in threads if thread.is_alive()]
        if late:
            _log.error(
                "%s did not finish within worker.shutdown_seconds (%.0f); exiting anyway",
                ", ".join(late),
                self._settings.worker.shutdown_seconds,
            )
        if self._failure is not None:
            raise self._failure

    def _arm(self) -> None:
        """Arm faulthandler: it ends the process if a call hangs while it holds the GIL."""
        seconds = _LOCKED_UP * self._settings.watchdog.poll_seconds
        faulthandler.dump_traceback_later(seconds, exit=True)

    def _watch(self, threads: Mapping[str, int]) -> None:
        """Check the stages; end the worker if one has exceeded a limit."""
        self._arm()
        self.metrics.process.silent(self._bus.silent_seconds)
        self._measure()
        pulses = {name: _pulse(loop) for name, loop in list(self._loops.items())}
        for stage, pulse in pulses.items():
            for watch, age in self._watchdog.ages(stage, pulse).items():
                self.metrics.process.watched(stage, watch, age)
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
        """Export what the worker and its parts take of their memory."""
        application, export = self._application, self.metrics.process
        for part, (used, share) in application.memory().items():
            export.memory(part, used, share)
        export.share("lanes", application.shares.lanes)  # *route* says what they take.
        resident = resident_bytes()
        if resident is not None:
            export.memory("worker", resident, application.shares.total)

    def _seats(self) -> Seats:
        """Return how many partitions of the documents, and how many shards, this worker has."""
        owned = [place for loop in list(self._loops.values()) for place in loop.owned]
        stages, layout = self._settings.worker.stages, self._topology.layout
        documents = {place for place in owned if place.topic == self._topology.documents}
        shards = [place for place in owned if place.topic == self._topology.seats]
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

    def _stage(self, name: str) -> None:
        loop: Loop | None = None
        try:
            loop = until_answered(
                lambda: self._application.loop(name, self._instance), self._stopping
            )
            if loop is None:
                return
            self._loops[name] = loop
            seen = monotonic()
            while not self._stopping.is_set():
                loop.step()
                if monotonic() - seen >= (_HURRY_SECONDS if loop.catching_up else _LOOK_SECONDS):
                    seen = monotonic()
                    loop.lag()
            loop.finish()
        except BaseException as error:  # noqa: BLE001 -- carried to the main thread, which raises it
            self._fail(name, error)
        finally:
            if loop is not None:
                self._close(name, loop)

    def _close(self, name: str, loop: Loop) -> None:
        try:
            loop.close()
        except Exception as error:  # noqa: BLE001 -- carried to the main thread, which raises it
            self._fail(name, error)

    def _fail(self, name: str, error: BaseException) -> None:
        with self._lock:
            if self._failure is None:
                self._failure, self._failed = error, name
                _log.error("stage %s failed, stopping the worker: %s", name, error)
            else:
                _log.error("stage %s also failed: %s", name, error)
        self._stopping.set()

    def health(self) -> Health:
        """Return the state of all stages."""
        loops = dict(self._loops)
        stages = self._settings.worker.stages
        waiting = [name for name in stages if name not in loops or not loops[name].seated]
        return Health(
            failed=self._failed,
            stopping=self._stopping.is_set(),
            unanswered=1_000 * self._bus.silent_seconds > self._settings.kafka.session_timeout_ms,
            waiting=waiting,
            restoring=[name for name, loop in loops.items() if loop.stage.status().restoring],
            catching_up=[name for name, loop in loops.items() if loop.catching_up],
            stalled=sorted({alarm.stage for alarm in self._alarms if alarm.watch == "poll"}),
        )


def starting(settings: Settings) -> Health:
    """Return the state of a worker whose service doesn't exist yet: it may be waiting for Kafka."""
    return Health(waiting=list(settings.worker.stages))


def _pulse(loop: Loop) -> Pulse:
    """Read the progress of a stage that runs in another thread, without blocking it."""
    status = loop.stage.status()
    return Pulse(
        beat=loop.beat,
        transacting=loop.transacting,
        moved=loop.moved,
        behind=loop.behind,
        restored=status.restored if status.restoring else None,
    )
