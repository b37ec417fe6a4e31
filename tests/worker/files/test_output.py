"""Where an output goes, and where it never goes."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.breadth import slow
from tests.support.command_line import ROOT, environment
from worker.files.errors import FileError
from worker.files.output import Output


def write(path: Path, data: bytes = b"new") -> None:
    with Output(path) as output:
        output.write(data)
        output.commit()


def test_a_file_appears_whole_and_keeps_its_mode(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.write_bytes(b"old")
    out.chmod(0o640)
    with Output(out) as output:
        output.write(b"new")
        assert out.read_bytes() == b"old"
        output.commit()
    assert (out.read_bytes(), out.stat().st_mode & 0o777) == (b"new", 0o640)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize("exists", [True, False])
def test_a_link_is_not_followed(tmp_path: Path, *, exists: bool) -> None:
    victim = tmp_path / "victim"
    if exists:
        victim.write_bytes(b"precious")
    (tmp_path / "out").symlink_to(victim)
    with pytest.raises(FileError, match="out: is a symbolic link; name the file"):
        write(tmp_path / "out")
    assert victim.exists() == exists
    assert (tmp_path / "out").is_symlink()


def test_a_link_that_appears_meanwhile_is_replaced(tmp_path: Path) -> None:
    victim, out = tmp_path / "victim", tmp_path / "out"
    victim.write_bytes(b"precious")
    with Output(out) as output:
        output.write(b"new")
        out.symlink_to(victim)
        output.commit()
    assert (victim.read_bytes(), out.read_bytes(), out.is_symlink()) == (b"precious", b"new", False)


def test_a_directory_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    write(tmp_path / "link" / "out")
    assert (tmp_path / "real" / "out").read_bytes() == b"new"


def test_a_planted_temporary_file_is_not_written_to(tmp_path: Path) -> None:
    victim, part = tmp_path / "victim", tmp_path / ".out.part"
    victim.write_bytes(b"precious")
    part.symlink_to(victim)
    with pytest.raises(FileError, match=r"\.out\.part is in the way \(a symbolic link\)"):
        write(tmp_path / "out")
    part.unlink()
    part.hardlink_to(victim)
    write(tmp_path / "out")
    assert victim.read_bytes() == b"precious"
    assert (tmp_path / "out").read_bytes() == b"new"


def test_what_a_killed_run_left_is_replaced_and_what_a_run_holds_is_not(tmp_path: Path) -> None:
    part = tmp_path / ".out.part"
    part.write_bytes(b"a long leftover")
    write(tmp_path / "out")
    assert (tmp_path / "out").read_bytes() == b"new"
    with part.open("wb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(FileError, match="another run is writing this file"):
            write(tmp_path / "out")
        assert part.exists()


def test_a_fifo_is_written_to(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    reading = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write(fifo)
        assert os.read(reading, 10) == b"new"
    finally:
        os.close(reading)
    assert [path.name for path in tmp_path.iterdir()] == ["fifo"]


def test_devices_are_written_to() -> None:
    write(Path("/dev/null"))


@pytest.mark.parametrize("out", ["-", slow("/dev/stdout"), slow("/dev/fd/1")])
def test_standard_output_by_its_names(out: str) -> None:
    run = subprocess.run(
        [sys.executable, "-m", "worker.cli", "dedupe", "-o", out],
        input=b'{"id": "a", "text": "a text"}\n',
        capture_output=True,
        check=True,
        cwd=ROOT,
        env=environment(),
        timeout=60,
    )
    assert run.stdout.count(b"\n") == 1
