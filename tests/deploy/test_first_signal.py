"""SIGTERM ends a worker whenever it comes, also while Python is still importing."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.command_line import environment


@pytest.mark.parametrize(
    "module",
    ["encodings", "worker.cli.errors", "typer", "worker.settings.sections", "confluent_kafka"],
)
def test_sigterm_ends_a_worker_that_is_still_importing(module: str, tmp_path: Path) -> None:
    """`-X importtime` says when a module has just been imported."""
    line = ["-X", "importtime", "-m", "worker.cli", "run", "--bootstrap", "127.0.0.1:1"]
    with subprocess.Popen(
        [sys.executable, *line],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env=environment(),
        start_new_session=True,
    ) as worker:
        assert worker.stderr is not None
        for said in worker.stderr:
            if said.rpartition("|")[2].strip() == module:
                break
        else:
            pytest.fail(f"{module} was never imported")
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(30) in {0, -signal.SIGTERM}
