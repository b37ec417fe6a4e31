"""Commands that need no Kafka load no client of it; the list of commands loads nothing heavy."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.breadth import mostly_slow, slow
from tests.support.command_line import ROOT, environment, jsonl

RUN = """
import sys
from worker.cli.root import main

try:
    main()
finally:
    loaded = {name.partition(".")[0] for name in sys.modules}
    assert "confluent_kafka" not in loaded
    assert "worker" in loaded
"""

SHOW = """
import sys
from worker.cli.root import main

try:
    main()
finally:
    print(*sys.modules, file=sys.stderr)
"""

HEAVY = {
    "confluent_kafka",
    "fsspec",
    "lsh",
    "msgspec",
    "numpy",
    "prometheus_client",
    "pydantic_settings",
    "rocksdict",
    "worker.app",
    "worker.settings",
}
SHOWN = ["--version", "--help", "topics --help", "index --help"]


def run(program: str, *arguments: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=cwd,
        env=environment(),
        timeout=120,
    )


@pytest.mark.parametrize(
    ("command", "status"),
    [
        slow("--help", 0),
        ("dedupe docs.jsonl", 0),
        slow("dedupe missing.jsonl", 2),
        slow("config show", 0),
        slow("evaluate docs.jsonl", 0),
        slow("tune docs.jsonl", 1),
        ("index stats", 2),
        slow("explain docs.jsonl docs.jsonl", 0),
        ("index snapshots --url snapshots", 0),
    ],
)
def test_a_command_without_kafka_does_without_its_client(
    command: str, status: int, tmp_path: Path
) -> None:
    (tmp_path / "docs.jsonl").write_bytes(jsonl([{"id": "a", "text": "a few words"}]))
    done = run(RUN, *command.split(), cwd=tmp_path)
    assert "AssertionError" not in done.stderr
    assert done.returncode == status, done.stderr


@pytest.mark.parametrize("command", mostly_slow(SHOWN, "--help", "topics --help"))
def test_what_lists_commands_loads_none(command: str) -> None:
    done = run(SHOW, *command.split())
    assert done.returncode == 0, done.stderr
    loaded = set(done.stderr.split())
    assert "typer" in loaded
    assert not loaded & HEAVY


def test_modules_without_kafka_do_without_its_client() -> None:
    modules = (
        "worker.bus.kafka",
        "worker.cli.demo",
        "worker.cli.index_snapshots",
        "worker.formats.choice",
        "worker.formats.match_writer",
        "worker.offline",
        "worker.settings",
    )
    done = run(f"import sys, {', '.join(modules)}; print('confluent_kafka' in sys.modules)")
    assert done.stdout == "False\n", done.stderr
