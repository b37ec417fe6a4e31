"""A real Prometheus: its checker of rules, and a server that scrapes what a test runs."""

import json
import os
import shutil
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from localkafka.broker import wait_until
from localkafka.ports import free_ports

REQUIRED: Final = os.environ.get("NEARDUP_REQUIRE_PROMETHEUS") == "1"
START_SECONDS: Final = 60.0


def program(name: str) -> str:
    """Return the path of ``prometheus`` or ``promtool``.

    Skips the test without it; with ``NEARDUP_REQUIRE_PROMETHEUS=1`` the test fails instead.
    """
    found = shutil.which(name)
    if found is None:
        why = f"{name} is not installed: Debian's package is `prometheus`"
        if REQUIRED:
            pytest.fail(f"REQUIRED BUT: {why}")
        pytest.skip(why)
    return found


class Prometheus:
    """A running server, asked by its HTTP interface."""

    def __init__(self, address: str, targets: Path) -> None:
        """Take where it listens, and the file from which it reads what it scrapes."""
        self._address = address
        self._targets = targets

    def scrape(self, addresses: Iterable[str]) -> None:
        """Have it scrape these HOST:PORT from now on, and no others."""
        written = self._targets.with_suffix(".new")
        written.write_text(json.dumps([{"targets": [*addresses]}]))
        written.replace(self._targets)

    def ready(self) -> bool:
        """Return whether it serves."""
        try:
            with urllib.request.urlopen(f"{self._address}/-/ready", timeout=5) as answer:  # noqa: S310 -- ours
                return bool(answer.status == 200)
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            return False

    def query(self, expression: str) -> list[Any]:
        """Return the series of an expression now."""
        return self._ask("query", query=expression)

    def over(self, expression: str, begin: float, end: float, step: float = 1.0) -> list[Any]:
        """Return the series of an expression from one time to another, each with its values."""
        return self._ask("query_range", query=expression, start=begin, end=end, step=step)

    def firing(self) -> set[str]:
        """Return the names of the alerts that fire now."""
        found = self.query('ALERTS{alertstate="firing"}')
        return {str(one["metric"]["alertname"]) for one in found}

    def _ask(self, what: str, **arguments: str | float) -> list[Any]:
        body = urllib.parse.urlencode(arguments).encode()
        asked = urllib.request.Request(f"{self._address}/api/v1/{what}", body)  # noqa: S310 -- ours
        try:
            with urllib.request.urlopen(asked, timeout=30) as answer:  # noqa: S310 -- ours
                said = json.load(answer)
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{arguments}: {error.read().decode()}") from None
        found: list[Any] = said["data"]["result"]
        return found


@contextmanager
def scraping(
    directory: Path, rules: Mapping[str, Any], *, every: float = 0.5
) -> Iterator[Prometheus]:
    """Run a server that scrapes, and evaluates rules, every so many seconds."""
    (port,), step = free_ports(1), f"{int(every * 1_000)}ms"
    directory.mkdir()
    targets, configuration = directory / "targets.json", directory / "prometheus.yml"
    targets.write_text("[]")
    (directory / "rules.yml").write_text(json.dumps(rules))
    job = {
        "job_name": "neardup",
        "file_sd_configs": [{"files": [str(targets)], "refresh_interval": "1s"}],
    }
    configuration.write_text(
        json.dumps(
            {
                "global": {
                    "scrape_interval": step,
                    "scrape_timeout": step,
                    "evaluation_interval": step,
                },
                "rule_files": [str(directory / "rules.yml")],
                "scrape_configs": [job],
            }
        )
    )
    log = directory / "prometheus.log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            [
                program("prometheus"),
                f"--config.file={configuration}",
                f"--storage.tsdb.path={directory / 'data'}",
                f"--web.listen-address=127.0.0.1:{port}",
                "--log.level=warn",
            ],
            stdout=out,
            stderr=out,
        )
    try:
        server = Prometheus(f"http://127.0.0.1:{port}", targets)
        wait_until(
            lambda: process.poll() is not None or server.ready(), START_SECONDS, "Prometheus"
        )
        assert process.poll() is None, log.read_text()
        yield server
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
