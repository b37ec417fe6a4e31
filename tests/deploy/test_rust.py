"""Which cargo compiles the core, and what is said if there is none."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.command_line import ROOT

PROGRAM = ROOT / "tools" / "rust.py"


def script(folder: Path, name: str, text: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """Return a folder with all that is on the PATH: a compiler, at first."""
    folder = tmp_path / "bin"
    script(folder, "cc", "exit 0")
    return folder


def run(programs: Path, *command: str) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        "PATH": str(programs),
        "XDG_CACHE_HOME": str(programs.parent / "cache"),
        "RUSTUP_UPDATE_ROOT": "http://127.0.0.1:1",  # Nobody listens there.
        "NO_PROXY": "127.0.0.1",
    }
    arguments = [sys.executable, str(PROGRAM), *command]
    return subprocess.run(arguments, env=environment, capture_output=True, text=True, check=False)


def cargo(version: str) -> str:
    return f'[ "$1" = --version ] && echo "cargo {version} (0123456 2026-01-01)" || echo ran "$@"'


@pytest.mark.parametrize("version", ["1.88.0", "1.100.0", "2.0.1-nightly"])
def test_a_cargo_that_is_new_enough_is_used(programs: Path, version: str) -> None:
    script(programs, "cargo", cargo(version))
    done = run(programs, "cargo", "build")
    assert (done.returncode, done.stdout, done.stderr) == (0, "ran build\n", "")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (cargo("1.87.0"), "cargo 1.87.0"),
        ("echo 'error: rustup could not choose a version of cargo' >&2; exit 1", "no cargo"),
    ],
)
def test_without_one_rust_is_fetched_or_what_to_install_is_said(
    programs: Path, text: str, found: str
) -> None:
    script(programs, "cargo", text)
    done = run(programs, "cargo", "build")
    fetching, failed = done.stderr.splitlines()
    assert done.returncode == 1
    assert done.stdout == ""
    assert fetching.startswith(f"{found} is on the PATH, and 1.88 or newer is needed: fetching ")
    assert failed.startswith("Rust can't be fetched (")
    assert "Connection refused" in failed
    assert "Install Rust 1.88 or newer from https://rustup.rs" in failed


def test_what_was_fetched_before_is_found_without_a_network(programs: Path) -> None:
    home = programs.parent / "cache" / "puccinialin"
    script(home / "cargo" / "bin", "cargo", f"{cargo('1.99.1')} in $CARGO_HOME $RUSTUP_HOME")
    done = run(programs, "cargo", "build")
    assert done.stdout == f"ran build in {home}/cargo {home}/rustup\n"
    assert (done.returncode, done.stderr) == (0, "")


def test_quietly_nothing_is_printed_unless_it_fails(programs: Path) -> None:
    script(programs, "cargo", f"{cargo('1.99.1')}; exit ${{STATUS:-0}}")
    done = run(programs, "--quiet", "cargo", "build")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    script(programs, "maturin-fails", "echo why >&2; exit 3")
    done = run(programs, "--quiet", "maturin-fails")
    assert (done.returncode, done.stdout, done.stderr) == (3, "", "why\n")


def test_without_a_c_compiler_that_is_said(programs: Path) -> None:
    (programs / "cc").unlink()
    done = run(programs, "cargo", "build")
    assert done.returncode == 1
    assert done.stderr.startswith("No C compiler is on the PATH, and Rust links with it. Install ")
