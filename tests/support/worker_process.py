"""A worker as a process of its own: started, told to stop, killed, started again."""

import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from localkafka.broker import wait_until

"""In the line that a worker logs once its settings, topics and groups are found good."""

STOP_SECONDS: Final = 40.0
TAIL_LINES: Final = 30
ROOT: Final = Path(__file__).parents[2]


class WorkerProcess:
    """``neardup run``, with a state directory, a name and a log file of its own."""

    def __init__(
        self,
        name: str,
        config: Path,
        directory: Path,
        *,
        instance: str | None = None,
        wrapper: Sequence[str] = (),
    ) -> None:
        """Prepare; ``directory`` outlives restarts, and ``instance`` is the name by default.

        ``wrapper`` is a program that becomes the worker, such as ``nsenter``.
        """
        self.name = name
        self._wrapper = list(wrapper)
        self._began = 0
        self.instance = instance or name
        self.config = config
        self.state_dir = directory / "state"
        self.state_from_outside = self.state_dir
        self.log = directory / "worker.log"
        self.process: subprocess.Popen[bytes] | None = None
        directory.mkdir(parents=True, exist_ok=True)

    def start(self, *arguments: str) -> int:
        """Start it, and give its process id at once."""
        assert self.process is None or self.process.poll() is not None, f"{self.name} runs"
        command = [*self._wrapper, *self.command(arguments)]
        environment = {k: v for k, v in os.environ.items() if not k.startswith("NEARDUP_")}
        environment["PYTHONFAULTHANDLER"] = "1"  # SIGABRT has it write its stacks.
        with self.log.open("ab") as log:
            self._began = log.tell()
            self.process = subprocess.Popen(
                command,
                cwd=ROOT,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        return self.process.pid

    def command(self, arguments: Sequence[str]) -> list[str]:
        """Return the command that starts it."""
        command = [sys.executable, "-m", "worker.cli", "run", "--config", str(self.config)]
        command += ["--instance", self.instance, "--state-dir", str(self.state_dir), *arguments]
        return command if "--http" in arguments else [*command, "--no-http"]

    @property
    def running(self) -> bool:
        """Tell whether it has been started, and has not ended."""
        return self.process is not None and self.process.poll() is None

    def signal(self, number: signal.Signals) -> None:
        """Send a signal."""
        assert self.process is not None
        self.process.send_signal(number)

    def stop(self) -> int:
        """Ask it to finish (SIGTERM), once it listens to that; give its exit status."""
        wait_until(self._listens, STOP_SECONDS, f"{self.name} to listen")
        self.signal(signal.SIGTERM)
        return self.wait(STOP_SECONDS)

    def _listens(self) -> bool:
        return not self.running or "instance " in self.current()

    def kill(self) -> None:
        """End it between any two instructions (SIGKILL)."""
        self.signal(signal.SIGKILL)
        self.wait(STOP_SECONDS)

    def wait(self, seconds: float) -> int:
        """Wait until it has ended; give its exit status (minus the signal that ended it)."""
        assert self.process is not None
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"did not end in {seconds:.0f} s: {self.tail()}") from None

    def output(self) -> str:
        """Give all that it, and its earlier runs, have written."""
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def ready(self) -> bool:
        """Tell whether it says that it is ready (``--http`` is on)."""
        return self.readiness().startswith("200 ")

    def readiness(self) -> str:
        """Give the status and the text of ``/readyz``, or why there is none."""
        if not self.running:
            return "it is not running"
        _, found, rest = self.current().partition("metrics and health on ")
        if not found:
            return "it does not listen yet"
        try:
            with urllib.request.urlopen(f"{rest.split()[0]}/readyz", timeout=1) as answer:  # noqa: S310 -- ours
                return f"{answer.status} {answer.read().decode()}"
        except urllib.error.HTTPError as error:
            return f"{error.code} {error.read().decode()}"
        except (urllib.error.URLError, TimeoutError, ConnectionError) as error:
            return str(error)

    def current(self) -> str:
        """Give what it has written since its last start."""
        if not self.log.exists():
            return ""
        with self.log.open("rb") as log:
            log.seek(self._began)
            return log.read().decode(errors="replace")

    def tail(self) -> str:
        """Give its name, and the end of its log."""
        lines = self.output().splitlines()[-TAIL_LINES:]
        return "\n".join([f"worker {self.name}:", *(f"    {line}" for line in lines)])

    def diagnosis(self) -> str:
        """End it (SIGABRT); give what it last said of its health, its log, and its stacks."""
        if not self.running:
            return f"it has ended: {self.output()}"
        health = f"/readyz: {self.readiness()}"
        self.signal(signal.SIGABRT)
        self.wait(STOP_SECONDS)
        return f"{health}\nlog, and stacks:\n{self.current()}"

    def await_text(self, text: str, seconds: float = 60.0, *, times: int = 1) -> None:
        """Wait until its log holds a text so many times."""

        def found() -> bool:
            assert self.running or text in self.output(), f"ended: {self.tail()}"
            return self.output().count(text) >= times

        wait_until(found, seconds, f"{text!r} from {self.name}")
