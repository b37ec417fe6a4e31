"""The unit of systemd: that it is understood, how far it is confined, and that it can be run."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.command_line import ROOT, environment, neardup
from worker.settings.loading import load
from worker.settings.model import Settings

UNIT = ROOT / "deploy" / "systemd" / "neardup@.service"
MOST_EXPOSED = 20
"""Of 100: a service that talks to a network has 13 for that."""


@pytest.fixture
def analyze() -> str:
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("no systemd-analyze here (Debian's package systemd)")
    return program


@pytest.fixture
def unit(tmp_path: Path) -> Path:
    """Return the unit of an instance whose program is there."""
    path = tmp_path / "neardup@9464.service"
    path.write_text(UNIT.read_text().replace("/opt/neardup/bin/neardup", "/bin/true"))
    return path


def value(name: str) -> str:
    (found,) = re.findall(rf"^{name}=(.*)$", UNIT.read_text(), re.MULTILINE)
    assert isinstance(found, str)
    return found


def test_systemd_understands_it(analyze: str, unit: Path) -> None:
    done = subprocess.run(
        [analyze, "verify", str(unit)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_it_is_confined(analyze: str, unit: Path) -> None:
    line = [analyze, "security", "--offline=true", f"--threshold={MOST_EXPOSED}", "--no-pager"]
    done = subprocess.run([*line, str(unit)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_the_command_exists() -> None:
    program, *arguments = shlex.split(value("ExecStart"))
    assert program == "/opt/neardup/bin/neardup"
    assert neardup(*arguments, "--help").returncode == 0


def test_it_waits_longer_than_a_worker_takes_to_end() -> None:
    assert int(value("TimeoutStopSec")) > Settings.model_validate({}).worker.shutdown_seconds


def test_wrong_settings_are_not_tried_again() -> None:
    assert neardup("run", "--config", "no-such-file.toml").returncode == int(
        value("RestartPreventExitStatus")
    )


def test_a_secret_of_the_environment_joins_the_settings_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (comment,) = re.findall(r"^#   Environment='(.+)'$", UNIT.read_text(), re.MULTILINE)
    name, _, table = comment.partition("=")
    monkeypatch.setenv(name, table.replace("%d", str(tmp_path)))  # As systemd does.
    config = tmp_path / "neardup.toml"
    config.write_text('[kafka.common]\n"sasl.username" = "worker"\n')
    assert load(config).kafka.common == {
        "sasl.username": "worker",
        "sasl.password_file": str(tmp_path / "password"),
    }


def test_no_memory_is_written_and_executed() -> None:
    """What MemoryDenyWriteExecute forbids, the kernel forbids here, and a filter runs."""
    assert value("MemoryDenyWriteExecute") == "yes"
    program = """
import ctypes, os, sys
if ctypes.CDLL(None).prctl(65, 1, 0, 0, 0):  # PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN
    sys.exit(77)
os.execv(sys.executable, [sys.executable, "-m", "neardup", "demo"])
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=environment(),
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode == 77:
        pytest.skip("the kernel is older than 6.3")
    assert done.returncode == 0, done.stderr
    assert "is a duplicate of" in done.stdout
