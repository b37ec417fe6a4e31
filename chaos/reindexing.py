"""``neardup reindex`` as a process: begun, killed, run again."""

import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from threading import Event
from typing import Final

from localkafka.broker import wait_until
from tests.support.application import ApplicationUnderTest
from tests.support.worker_process import ROOT
from worker.admin.cluster import Cluster
from worker.admin.reindex.in_use import planned
from worker.bus import BusError
from worker.closing import Closing
from worker.generations.plan import Plan
from worker.topology import Topology

DONE_SECONDS: Final = 180.0
LONG_SECONDS: Final = 600.0
"""The same where brokers fail, and the log to build from is that of an hour."""
ADMIN_SECONDS: Final = 30.0
NOTHING_LEFT: Final = "nothing would change"
"""What a command says whose predecessor was killed after its last step."""
FAILED: Final = 1
"""How a command ends whom a broker has failed."""


def failed_of_brokers(status: int, said: str) -> bool:
    """Tell whether a command that ended so may be run again: its one line is no traceback."""
    last = said.splitlines()[-1] if said else ""
    return status == FAILED and last.startswith("neardup: ")


class Reindexing(Closing):
    """Runs one command at a time. Belongs to the thread that strikes."""

    def __init__(
        self, application: ApplicationUnderTest, over: Event, allowed_failures: int = 0
    ) -> None:
        """Take whose index is replaced.

        Args:
            application: has workers that run.
            over: once it is set, nothing is waited for.
            allowed_failures: how often the command may fail, and is run again.
        """
        self._application = application
        self._over = over
        self._allowed = allowed_failures
        self._seconds = LONG_SECONDS if allowed_failures else DONE_SECONDS
        self._log = application.directory / "reindex.log"
        self._said_before = 0
        self._arguments: Sequence[str] = ()
        self._process: subprocess.Popen[bytes] | None = None
        self._killed = False
        self.done = 0
        """How many generations have been taken up."""
        self.failures: list[str] = []
        """What commands have said that failed, and were run again."""

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

        wait_until(so, self._seconds, what)

    def run_again(self) -> None:
        """Run the command again if it has failed, and may.

        Raises:
            AssertionError: it has failed otherwise, or too often.
        """
        process = self._process
        if process is None or process.poll() in {None, 0} or self._through():
            return
        said = self._said()
        assert failed_of_brokers(process.returncode, said), said
        self.failures.append(said.splitlines()[-1])
        assert len(self.failures) <= self._allowed, said
        self._process, self._killed = None, True  # It may have failed after its last step.
        self.run()

    def _through(self) -> bool:
        """Tell whether a command has ended whose predecessor had done all of it."""
        return self._killed and NOTHING_LEFT in self._said()

    def finish(self) -> None:
        """Wait until the generation that was begun last is in use.

        Raises:
            AssertionError: the command has failed.
            TimeoutError: it takes too long.
        """
        if self._process is None:
            return
        wait_until(self._ended, self._seconds, f"neardup reindex {' '.join(self._arguments)}")
        if self._over.is_set():
            return
        self._process = None
        self.done += 1
        plan = self._plan()
        assert plan is not None, "no generation was recorded"
        state = (plan.current.number, plan.following)
        assert state == (self.done, None), f"generation {self.done} isn't in use: {plan}"

    def _ended(self) -> bool:
        self.run_again()
        process = self._process
        return self._over.is_set() or process is None or process.poll() is not None

    def in_use(self) -> Topology:
        """Return the topics of the generation that is in use."""
        plan = self._plan()
        base = self._application.topology
        return base if plan is None else plan.current.topology(base)

    def _plan(self) -> Plan | None:
        settings = self._application.settings
        found: list[Plan | None] = []

        def told() -> bool:
            with suppress(BusError):  # A broker is away.
                found.append(planned(Cluster(settings.kafka_options(), ADMIN_SECONDS), settings))
            return bool(found)

        wait_until(told, 3 * ADMIN_SECONDS, "the plan of generations")
        return found[-1]

    def _said(self) -> str:
        """Return what the command has said since it was last run."""
        with self._log.open("rb") as log:
            log.seek(self._said_before)
            return log.read().decode(errors="replace")

    def close(self) -> None:
        """End the command."""
        self.kill()
