"""A real schema registry for tests: Apicurio, which has Confluent's API, too.

One process on 127.0.0.1 that keeps what it has in memory. It ends with the test process: see
`localkafka.reaper`.
"""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any, Final, Self

from localkafka.broker import REAPER, BrokerStartError, wait_until
from localkafka.jars import fetched, java
from localkafka.ports import free_ports

POM: Final = Path(__file__).with_name("apicurio.xml")
START_DEADLINE_SECONDS: Final = 180.0
_JVM: Final = ("-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_JSON: Final = "application/vnd.schemaregistry.v1+json"


class SchemaRegistry:
    """A registry of our own, without any schema. Use as a context manager."""

    def __init__(self) -> None:
        """Take a port; the registry starts on entering the context.

        Raises:
            KafkaUnavailable: no Java 17 or newer, or the registry isn't there and can't be fetched.
        """
        self._runner = next(application().glob("*-runner.jar"))
        self._java = java()
        self._port = next(free_ports(1))
        self._directory = Path(tempfile.mkdtemp(prefix="neardup-registry-"))
        self._log = self._directory / "registry.log"
        self._process: subprocess.Popen[bytes] | None = None
        self._reaper = subprocess.Popen(
            [sys.executable, "-I", "-S", str(REAPER), str(self._directory)],
            stdin=subprocess.PIPE,
            start_new_session=True,
        )

    @property
    def url(self) -> str:
        """Return the address of Confluent's API."""
        return f"http://127.0.0.1:{self._port}/apis/ccompat/v7"

    def __enter__(self) -> Self:
        """Start the registry."""
        try:
            self._start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """End the registry, and remove what it wrote."""
        process, self._process = self._process, None
        if process is not None:
            process.send_signal(signal.SIGKILL)
            process.wait()
            self._tell_reaper(f"-{process.pid}")
        if self._reaper.stdin is not None:
            self._reaper.stdin.close()
        self._reaper.wait()

    def pause(self) -> None:
        """Freeze the registry: its connections stay open, and nothing answers."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let a paused registry go on."""
        self._signal(signal.SIGCONT)

    def _start(self) -> None:
        """Start the registry; return once it answers.

        Raises:
            BrokerStartError: it doesn't.
        """
        own = {
            "QUARKUS_HTTP_HOST": "127.0.0.1",
            "QUARKUS_HTTP_PORT": str(self._port),
            "APICURIO_STORAGE_SNAPSHOT_LOCATION": str(self._directory),
            # By default it opens 20 connections, and gives up if the database in its memory takes
            # 5 s to begin.
            "APICURIO_DATASOURCE_JDBC_INITIAL_SIZE": "1",
            "APICURIO_DATASOURCE_JDBC_MIN_SIZE": "1",
            "QUARKUS_DATASOURCE_H2_JDBC_ACQUISITION_TIMEOUT": "120S",
        }
        with self._log.open("ab") as log:
            process = subprocess.Popen(
                [self._java, *_JVM, "-jar", str(self._runner)],
                cwd=self._directory,
                env={**os.environ, **own},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._process = process
        self._tell_reaper(f"+{process.pid}")
        try:
            wait_until(
                lambda: process.poll() is not None or self._answers(),
                START_DEADLINE_SECONDS,
                "the schema registry to answer",
            )
        except TimeoutError as error:
            raise BrokerStartError(f"{error}\n{self._said()}") from None
        if process.returncode is not None:
            raise BrokerStartError(f"the schema registry ended\n{self._said()}")

    def _signal(self, number: signal.Signals) -> None:
        if self._process is None:
            raise RuntimeError("the schema registry doesn't run")
        self._process.send_signal(number)

    def register(self, subject: str, kind: str, schema: str, *references: tuple[str, str]) -> int:
        """Register a schema as producers do, and return its id.

        ``references`` have the name and the subject of schemas that it refers to.
        """
        named = [{"name": name, "subject": theirs, "version": 1} for name, theirs in references]
        body = {"schemaType": kind, "schema": schema, "references": named}
        return int(self._ask(f"/subjects/{subject}/versions", body)["id"])

    def _answers(self) -> bool:
        try:
            return bool(self._ask("/schemas/types"))
        except (OSError, ValueError):
            return False

    def _ask(self, path: str, body: object = None) -> Any:  # noqa: ANN401 -- JSON
        request = urllib.request.Request(  # noqa: S310 -- ours
            self.url + path,
            None if body is None else json.dumps(body).encode(),
            {"Content-Type": _JSON},
        )
        with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310 -- ours
            return json.load(answer)

    def _said(self) -> str:
        return self._log.read_text(errors="replace")[-4_000:]

    def _tell_reaper(self, line: str) -> None:
        if self._reaper.stdin is not None:
            self._reaper.stdin.write(f"{line}\n".encode())
            self._reaper.stdin.flush()


def application() -> Path:
    """Return the directory of the registry; Maven fetches it the first time.

    Raises:
        KafkaUnavailable: it isn't here, and can't be fetched.
    """
    version = re.search(r"<version>([\d.]+)</version>\s*<type>", POM.read_text())
    if version is None:
        raise ValueError(f"{POM}: no version of the registry")
    return fetched(POM, f"apicurio-{version[1]}", "dependency:unpack")
