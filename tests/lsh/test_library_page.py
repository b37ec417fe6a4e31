"""The examples of the library's page run, and say what the page says."""

from __future__ import annotations

import doctest
import re
from contextlib import chdir
from pathlib import Path
from typing import Any

import datasketch

import lsh

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "how-to" / "library.md"


def test_the_examples_run() -> None:
    with chdir(ROOT):
        result = doctest.testfile(str(PAGE), module_relative=False)
    assert result.failed == 0
    assert result.attempted > 40


def named(module: Any, cell: str) -> list[str]:  # noqa: ANN401 -- a module
    """Return the names in a cell of a table that a module doesn't have."""
    missing = []
    for quoted in re.findall(r"`([^`]+)`", cell):
        path = quoted.partition("(")[0].split(".")
        found = module
        for name in path:
            found = getattr(found, name, None)
        if found is None and path[0] not in {"len", "pickle"}:
            missing.append(quoted)
    return missing


def test_the_table_names_what_exists_in_datasketch_and_here() -> None:
    """A name that isn't there in the installed version makes the table wrong."""
    _, _, after = PAGE.read_text(encoding="utf-8").partition("## Coming from datasketch")
    table = after.partition("\n## ")[0]
    rows = [line.split("|")[1:3] for line in table.splitlines() if line.startswith("| `")]
    assert len(rows) > 10
    for theirs, ours in rows:
        assert named(datasketch, theirs) == []
        assert named(lsh, ours) == []
    assert named(datasketch, "`MinHashLSH.pairs`") == ["MinHashLSH.pairs"]
