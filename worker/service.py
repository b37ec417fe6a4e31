"""A worker process: its stages' threads, what it tells over HTTP, and how it ends."""

from __future__ import annotations

import faulthandler
import fcntl
import logging
import os
import signal
import socket
import sys
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from types import FrameType

from worker.app import Application
from worker.bus import Bus
from worker.collector import collect_until
from worker.health import Health
from worker.loop import Loop
from worker.metrics import Metrics
from worker.settings import ConfigurationError, Settings
from worker.snapshots.storage import sync_directory
from worker.stages import Index, StageError
from worker.topology import Topology
from worker.watchdog import Alarm, Pulse, Watchdog, where

__all__ = ["EXIT_HUNG", "Service", "instance_name", "locked"]

_log = logging.getLogger(__name__)

EXIT_HUNG = 3
"""The exit status of a worker whose stage hangs in a call, and can't be stopped in order."""

_LOOK_SECONDS = 1.0
_HURRY_SECONDS = 0.2
"""Between looks at a stage that catches up: whoever restarts workers in turn waits for it."""
_LOCKED_UP = 1.5


@contextmanager
def locked(state_dir: Path) -> Iterator[None]:
    """Hold the state directory: no two workers may share one.

    Raises:
        ConfigurationError: another process holds it, or it can't be written.
    """
    try:
        state_dir.mkdir(parents=True, exist_ok=True)
        file = os.open(state_dir / "lock", os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise ConfigurationError(f"worker.state_dir: {state_dir}: {error.strerror}") from None
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise ConfigurationError(
                f"worker.state_dir: {state_dir} is in use by another worker; give each its own"
            ) from None
        yield
    finally:
        os.close(file)


def instance_name(settings: Settings, state_dir: Path) -> str:
    """Give the worker's stable name: as set, or the one kept with its state."""
    if settings.worker.instance is not None:
        return settings.worker.instance
    path = state_dir / "instance"
    # An empty one is what a crash may leave of a file that was written in place.
    name = path.read_text().strip() if path.exists() else ""
    if not name:
        name = f"{socket.gethostname().split('.')[0][:60]}-{uuid.uuid4().hex[:8]}"
        _write_durably(path, name + "\n")
    return name


def _write_durably(path: Path, text: str) -> None:
    """Write a file so that after a crash it is there in whole, or as it was before."""
    temporary = path.with_name(path.name + ".new")
    with temporary.open("w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
    sync_directory(path.parent)


class Service:
    """Runs each stage in a thread of its own until told to stop, or one fails."""

    def __init__(
        self, settings: Settings, topology: Topology, bus: Bus, state_dir: Path, instance: str
    ) -> None:
        """Build everything; nothing is joined yet."""
        self._settings = settings
        self.metrics = Metrics()
        self._application = Application(
            settings, topology, bus, state_dir, metrics=self.metrics, background=True
        )
        self._instance = instance
        self._loops: dict[str, Loop] = {}
        self._watchdog = Watchdog(settings.watchdog.limits())
        self._alarms: list[Alarm] = []
        self._stopping = threading.Event()
        self._failure: BaseException | None = None
        self._lock = threading.Lock()

    def stop(self) -> None:
        """Ask all stages to finish what they are at, and leave."""
        self._stopping.set()

    def run(self) -> None:
        """Run until `stop`, or until a stage fails.

        Raises:
            BaseException: what a stage failed with; all others have then been stopped.
        """
        threads = [
            threading.Thread(target=self._stage, args=(name,), name=name, daemon=True)
            for name in self._settings.worker.stages
        ]
        for watch, limit in self._settings.watchdog.limits().items():
            self.metrics.watchdog_limit.labels(watch).set(limit)
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
            _log.error("gave up waiting for %s to finish", ", ".join(late))
        if self._failure is not None:
            raise self._failure

    def _arm(self) -> None:
        """Have the process ended if a call hangs that holds the interpreter's lock."""
        seconds = _LOCKED_UP * self._settings.watchdog.poll_seconds
        faulthandler.dump_traceback_later(seconds, exit=True)

    def _watch(self, threads: Mapping[str, int]) -> None:
        """Look at the stages; end the worker if one is past a limit."""
        self._arm()
        pulses = {name: _pulse(loop) for name, loop in list(self._loops.items())}
        for stage, pulse in pulses.items():
            for watch, age in self._watchdog.ages(stage, pulse).items():
                self.metrics.watchdog.labels(stage, watch).set(age)
        self._alarms = self._watchdog.look(pulses)
        for alarm in self._alarms:
            if not alarm.over:
                continue
            if alarm.hangs:
                self._end(alarm, threads[alarm.stage])
            self._fail(alarm.stage, StageError(alarm.text))

    def _end(self, alarm: Alarm, thread: int) -> None:
        """End the process at once: a call that doesn't return can't be asked to."""
        lines = "".join(f"\n    {line}" for line in where(thread))
        _log.critical("%s. The worker ends. It is at:%s", alarm.text, lines)
        logging.shutdown()
        sys.stderr.flush()
        os._exit(EXIT_HUNG)

    def _stage(self, name: str) -> None:
        loop: Loop | None = None
        try:
            loop = self._application.loop(name, self._instance)
            self._loops[name] = loop
            seen = monotonic()
            while not self._stopping.is_set():
                loop.step()
                if monotonic() - seen >= (_HURRY_SECONDS if loop.catching_up else _LOOK_SECONDS):
                    seen = monotonic()
                    self._observe(loop)
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
                self._failure = error
                _log.error("stage %s failed, the worker stops: %s", name, error)
            else:
                _log.error("stage %s failed, too: %s", name, error)
        self._stopping.set()

    def _observe(self, loop: Loop) -> None:
        self.metrics.lagging(loop.stage.name, loop.lag())
        if isinstance(loop.stage, Index):
            self.metrics.holding(loop.stage.stores(), self._application.cached_bytes)

    def health(self) -> Health:
        """Tell how the stages are doing."""
        loops = dict(self._loops)
        stages = self._settings.worker.stages
        waiting = [name for name in stages if name not in loops or not loops[name].adopted]
        restoring = [
            name
            for name, loop in loops.items()
            if isinstance(loop.stage, Index) and loop.stage.restoring()
        ]
        return Health(
            failed=str(self._failure) if self._failure is not None else None,
            stopping=self._stopping.is_set(),
            waiting=waiting,
            restoring=restoring,
            catching_up=[name for name, loop in loops.items() if loop.catching_up],
            stalled=sorted({alarm.stage for alarm in self._alarms if alarm.watch == "poll"}),
        )


def _pulse(loop: Loop) -> Pulse:
    """Read how a stage gets on; it runs in another thread, and is not disturbed."""
    stage = loop.stage
    restoring = isinstance(stage, Index) and bool(stage.restoring())
    return Pulse(
        beat=loop.beat,
        transacting=loop.transacting,
        moved=loop.moved,
        behind=loop.behind,
        restored=stage.restored() if restoring and isinstance(stage, Index) else None,
    )


@contextmanager
def stopping_on_signals(stop: Callable[[], None]) -> Iterator[None]:
    """Call ``stop`` on SIGTERM and SIGINT; a second one ends the process at once."""
    received = 0

    def on_signal(number: int, frame: FrameType | None) -> None:
        nonlocal received
        del frame
        received += 1
        if received > 1:
            os._exit(128 + number)
        _log.info("%s: finishing", signal.Signals(number).name)
        stop()

    before = {
        number: signal.signal(number, on_signal) for number in (signal.SIGTERM, signal.SIGINT)
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
