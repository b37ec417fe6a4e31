"""``neardup reindex`` as a process: begun, killed, run again."""

import subprocess
import sys
from collections.abc import Callable, Sequence
from threading import Event
from typing import Final

from localkafka.broker import wait_until
from tests.support.application import ApplicationUnderTest
from tests.support.worker_process import ROOT
from worker.admin import Cluster
from worker.admin.reindex.in_use import planned
from worker.files.closing import Closing
from worker.generations import Plan

__all__ = ["Reindexing"]

DONE_SECONDS: Final = 180.0
ADMIN_SECONDS: Final = 30.0
NOTHING_LEFT: Final = "nothing would change"
"""What a command says whose predecessor was killed after its last step."""


class Reindexing(Closing):
    """Runs one command at a time. Belongs to the thread that strikes."""

    def __init__(self, application: ApplicationUnderTest, over: Event) -> None:
        """Take whose index is replaced; once ``over`` is set, nothing is waited for."""
        self._application = application
        self._over = over
        self._log = application.directory / "reindex.log"
        self._said_before = 0
        self._arguments: Sequence[str] = ()
        self._process: subprocess.Popen[bytes] | None = None
        self._killed = False
        self.done = 0
        """How many generations have been taken up."""

    def begin(self, arguments: Sequence[str]) -> None:
        """Begin another generation, once the one before is in use."""
        self.finish()
        self._arguments, self._killed = arguments, False
        self.run()

    def run(self) -> None:
        """Run the command that was begun last, if it was killed."""
        if self._process is not None:
            return
        config = self._application.config
        command = [sys.executable, "-m", "worker.cli", "reindex", "--config", str(config)]
        with self._log.open("ab") as log:
            self._said_before = log.tell()
            self._process = subprocess.Popen(
                [*command, *self._arguments],
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def kill(self) -> bool:
        """Kill the command (SIGKILL); return False if it had ended."""
        process = self._process
        if process is None or process.poll() is not None:
            return False
        process.kill()
        process.wait()
        self._process, self._killed = None, True
        return True

    def await_plan(self, holds: Callable[[Plan], bool], what: str) -> None:
        """Wait until the plan of generations is so, or the command has ended."""

        def so() -> bool:
            plan = self._plan()
            ended = self._process is None or self._process.poll() is not None
            return self._over.is_set() or ended or (plan is not None and holds(plan))

        wait_until(so, DONE_SECONDS, what)

    def finish(self) -> None:
        """Wait until the generation that was begun last is in use.

        Raises:
            AssertionError: the command has failed.
            TimeoutError: it takes too long.
        """
        process = self._process
        if process is None:
            return
        wait_until(
            lambda: self._over.is_set() or process.poll() is not None,
            DONE_SECONDS,
            f"neardup reindex {' '.join(self._arguments)}",
        )
        if self._over.is_set():
            return
        said = self._said()
        assert process.returncode == 0 or (self._killed and NOTHING_LEFT in said), said
        self._process = None
        self.done += 1
        plan = self._plan()
        assert plan is not None, "no generation was recorded"
        state = (plan.current.number, plan.following)
        assert state == (self.done, None), f"generation {self.done} isn't in use: {plan}"

    def _plan(self) -> Plan | None:
        settings = self._application.settings
        return planned(Cluster(settings.kafka_options(), ADMIN_SECONDS), settings)

    def _said(self) -> str:
        """Return what the command has said since it was last run."""
        with self._log.open("rb") as log:
            log.seek(self._said_before)
            return log.read().decode(errors="replace")

    def close(self) -> None:
        """End the command."""
        self.kill()
