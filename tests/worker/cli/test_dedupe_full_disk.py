"""A disk that takes no more ends a command with what is full, and nothing half-written."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.breadth import slow
from tests.support.command_line import ROOT, dedupe, environment, jsonl, neardup

LINES = jsonl({"id": n, "text": f"{n * 7919 % 10_007} is document {n}"} for n in range(10_000))
_FILLED = """
import resource, signal
# Files may grow to 200 kB and no further, as a quota would have it.
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
from worker.cli.root import main
main()
"""


@pytest.mark.parametrize("kept", [True, slow(False)])
def test_a_full_disk_leaves_output_and_state_as_they_were(*, kept: bool, tmp_path: Path) -> None:
    out, state = tmp_path / "out", tmp_path / "state"
    out.write_bytes(b"earlier")
    options = ["-o", str(out), *(["--state", str(state)] if kept else [])]
    if kept:
        dedupe("--state", state, stdin=LINES[:100_000])
    before = {path: path.stat().st_size for path in tmp_path.rglob("*")}
    done = subprocess.run(
        [sys.executable, "-c", _FILLED, "dedupe", *options],
        check=False,
        input=LINES * 3,
        capture_output=True,
        timeout=120,
        cwd=ROOT,
        env=environment(),
    )
    (line,) = done.stderr.decode().splitlines()
    assert done.returncode == 1
    assert line.startswith(f"neardup: the index can't be read or written: {tmp_path}/")
    assert "File too large" in line
    assert line.endswith(
        "Check that disk's space, quota and permissions, then run the command again"
    )
    assert out.read_bytes() == b"earlier"
    assert {path: path.stat().st_size for path in tmp_path.rglob("*")} == before


def test_a_full_output_is_named_and_is_no_wrong_option() -> None:
    done = neardup("dedupe", "-o", "/dev/full", stdin=LINES[:1_000])
    assert done.returncode == 1
    assert done.stderr == (
        b"neardup: /dev/full: No space left on device. Give that disk space, then run the command"
        b" again\n"
    )


def test_so_it_is_with_what_other_commands_print() -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "worker.cli", "config", "show"],
            check=False,
            stdout=full,
            stderr=subprocess.PIPE,
            cwd=ROOT,
            env=environment(),
        )
    assert done.returncode == 1
    assert done.stderr == (
        b"neardup: No space left on device. Give that disk space, then run the command again\n"
    )
