"""What `import neardup` and the command find, whatever else is called `worker` or `lsh`."""

from __future__ import annotations

import doctest
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import lsh
import neardup
from tests.support.command_line import ROOT

HOSTILE = "raise SystemExit('somebody else has this module')\n"
SPAWN = """
import multiprocessing, sys
from neardup.__main__ import main

def name(queue):
    import worker.settings
    queue.put(worker.settings.__file__)

if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    child = context.Process(target=name, args=(queue,))
    child.start()
    child.join()
    print(queue.get(timeout=30) if child.exitcode == 0 else child.exitcode)
"""


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """Return a folder with modules of somebody's that have our names."""
    for name in ("worker", "lsh"):
        (tmp_path / f"{name}.py").write_text(HOSTILE)
    return tmp_path


def run(elsewhere: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("NEARDUP_")}
    found = {**kept, "PYTHONPATH": f"{elsewhere}{os.pathsep}{ROOT}"}
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=elsewhere,
        env=found,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_modules_of_somebody_else_would_be_found_first(elsewhere: Path) -> None:
    assert "somebody else" in run(elsewhere, "-c", "import worker").stderr
    assert "somebody else" in run(elsewhere, "-c", "import lsh").stderr


def test_the_command_runs_beside_modules_of_its_names(elsewhere: Path) -> None:
    (elsewhere / "texts.txt").write_text("a first line of text\na second line\n")
    done = run(elsewhere, "-m", "neardup", "dedupe", "--format", "lines", "texts.txt")
    assert (done.returncode, done.stdout.count("\n")) == (0, 2), done.stderr


def test_the_installed_command_is_the_same(elsewhere: Path) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    module, _, function = project["scripts"]["neardup"].partition(":")
    done = run(elsewhere, "-c", f"from {module} import {function}; {function}()")
    assert "Find near-duplicate documents" in done.stdout + done.stderr


def test_processes_that_the_command_starts_find_them_too(elsewhere: Path) -> None:
    program = elsewhere / "program.py"
    program.write_text(SPAWN)
    done = run(elsewhere, str(program))
    assert done.stdout.strip() == str(ROOT / "worker" / "settings" / "__init__.py"), done.stderr


def test_the_command_starts_without_numpy(elsewhere: Path) -> None:
    program = "import sys, neardup.__main__; print('numpy' in sys.modules)"
    assert run(elsewhere, "-c", program).stdout == "False\n"


def test_its_example_is_true() -> None:
    assert doctest.testmod(neardup) == doctest.TestResults(failed=0, attempted=4)


def test_what_it_has_is_of_the_library() -> None:
    assert neardup.Index is lsh.Index
    assert neardup.dedupe is lsh.dedupe
    assert not hasattr(neardup, "index")
