"""The end of a process that has threads: at once, with what was said and its status."""

import subprocess
import sys

import pytest

from tests.support.command_line import ROOT, environment

PROGRAM = """
import atexit, sys
from worker.cli.errors import ending_at_once
from worker.cli.errors import CommandError

atexit.register(print, "Python ended")
with ending_at_once() as begin:
    {begin}
    print("worked")
    {end}
print("went on")
"""


@pytest.mark.parametrize(
    ("begin", "end", "status", "out", "err"),
    [
        ("begin()", "pass", 0, ["worked"], []),
        ("begin()", "raise CommandError('wrong', 2)", 2, ["worked"], ["neardup: wrong"]),
        ("begin()", "raise OSError('gone')", 1, ["worked"], ["neardup: gone"]),
        ("begin()", "raise KeyError('unforeseen')", 1, ["worked"], ["KeyError: 'unforeseen'"]),
        ("pass", "pass", 0, ["worked", "went on", "Python ended"], []),
        ("pass", "raise OSError('gone')", 1, ["worked", "Python ended"], ["neardup: gone"]),
    ],
)
def test_it_ends_at_once_only_when_threads_have_begun(
    begin: str, end: str, status: int, out: list[str], err: list[str]
) -> None:
    program = PROGRAM.format(begin=begin, end=end)
    ended = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.returncode, ended.stdout.splitlines()) == (status, out)
    assert ended.stderr.splitlines()[-1:] == err
