"""Processes that a document kills, one after the other, until it is found."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.breadth import slow
from tests.support.mortal import DOCUMENTS, POISON
from tests.support.worker_process import ROOT


@pytest.mark.parametrize(
    "way",
    [
        "killed",
        "failed",
        slow("out of memory"),
        pytest.param("too deep", marks=pytest.mark.slow(ci=False)),
    ],
)
def test_what_it_dies_of_makes_no_difference(tmp_path: Path, way: str) -> None:
    command = [sys.executable, "-m", "tests.support.mortal", str(tmp_path), way]
    lives = [subprocess.run(command, cwd=ROOT, capture_output=True, check=False) for _ in range(4)]
    assert [life.returncode for life in lives[:3]] == [-9 if way == "killed" else 1] * 3
    assert lives[3].returncode == 0, lives[3].stderr.decode()
    found = json.loads(lives[3].stdout)
    assert found["tiles"]
    assert found["end"] == DOCUMENTS
    assert found["read"] == [n for n in range(DOCUMENTS) if n != POISON]
    ((offset, reason),) = found["rejected"]
    assert offset == POISON
    assert "poison: the worker died twice while it read this document" in reason
    assert b"those of documents[0] before offset 20 are read one at a time" in lives[1].stderr
    assert b"documents[0]@13 " in lives[3].stderr
    assert b"is rejected as poison" in lives[3].stderr
