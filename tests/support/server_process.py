"""``neardup serve`` as a process of its own."""

import json
import sys
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.command_line import on_kafka
from tests.support.worker_process import WorkerProcess

ANY_PORTS = ("--listen", "127.0.0.1:0", "--http", "127.0.0.1:0")


class Server(WorkerProcess):
    """A server, with a directory and a log file of its own."""

    def command(self, arguments: Sequence[str]) -> list[str]:
        """Return the command that starts it."""
        place = ["--config", str(self.config), "--state-dir", str(self.state_dir)]
        return [sys.executable, "-m", "worker.cli", "serve", *place, *arguments]

    def _url(self, what: str) -> str:
        return self.current().partition(f"{what} on ")[2].split()[0]

    def ask(self, document: Path) -> Any:  # noqa: ANN401 -- JSON
        """Ask about a document by the command line."""
        place = ("--config", self.config, "--server", self._url("queries"))
        done = on_kafka("query", "--json", *place, "--file", document)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def get(self, path: str) -> Any:  # noqa: ANN401 -- JSON
        """Return what it answers to whoever reads."""
        with urllib.request.urlopen(f"{self._url('queries')}{path}", timeout=30) as answer:  # noqa: S310 -- ours
            return json.loads(answer.read())

    def post(self, path: str, body: object) -> Any:  # noqa: ANN401 -- JSON
        """Return what it answers to whoever corrects."""
        request = urllib.request.Request(  # noqa: S310 -- ours
            f"{self._url('queries')}{path}",
            json.dumps(body).encode(),
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310 -- ours
            return json.loads(answer.read())

    def metrics(self) -> str:
        """Return what it exports."""
        with urllib.request.urlopen(f"{self._url('health')}/metrics", timeout=10) as answer:  # noqa: S310 -- ours
            said: bytes = answer.read()
        return said.decode()


@contextmanager
def serving(config: Path, directory: Path) -> Iterator[Server]:
    server = Server("server", config, directory / "server")
    server.start(*ANY_PORTS)
    try:
        yield server
    finally:
        if server.running:
            server.kill()
