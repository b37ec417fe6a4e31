"""Files that take long begin first, and those that wait for a broker before those that don't."""

from __future__ import annotations

from tests.support.order import LONGEST, longest_first
from tests.support.worker_process import ROOT


def test_the_files_that_take_longest_exist() -> None:
    assert [name for name in LONGEST if not (ROOT / name).is_file()] == []


def test_what_takes_long_or_waits_comes_first() -> None:
    files = ["a.py", "b.py", LONGEST[1], "c.py", "d.py", LONGEST[0]]
    assert longest_first(files, {"b.py", "d.py", LONGEST[0]}) == [
        *LONGEST[:2],
        "b.py",
        "d.py",
        "a.py",
        "c.py",
    ]
