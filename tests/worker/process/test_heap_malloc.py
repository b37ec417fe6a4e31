"""Freed memory doesn't stay with the process."""

from __future__ import annotations

import platform
import subprocess
import sys

import psutil
import pytest

from worker.process.heap import give_back

MEGABYTE = 1 << 20


pytestmark = pytest.mark.skipif(
    platform.libc_ver()[0] != "glibc", reason="another malloc has other habits"
)

MANY_THREADS = """
import sys, threading
import psutil
from worker.process.heap import give_back, limit

MEGABYTE = 1 << 20
if sys.argv[1] == "limited":
    limit()
bytearray(12 * MEGABYTE)  # From now on malloc takes blocks of that size from its heaps.
process, ended = psutil.Process(), threading.Event()
before = process.memory_info().rss

def work(turn: threading.Lock, done: threading.Event) -> None:
    with turn:
        blocks = [b"x" * (size << 10) for size in range(244, 268)]
    blocks.clear()
    done.set()
    ended.wait()

lock, events = threading.Lock(), [threading.Event() for _ in range(16)]
for event in events:
    threading.Thread(target=work, args=(lock, event)).start()
for event in events:
    event.wait()
give_back()
print((process.memory_info().rss - before) // MEGABYTE)
ended.set()
"""
"""Of 16 threads each needs 6 MB for a moment, one after the other, and then idles."""


def test_what_threads_needed_for_a_moment_does_not_stay() -> None:
    kept = {}
    for how in ("limited", "as it is"):
        program = [sys.executable, "-c", MANY_THREADS, how]
        kept[how] = int(subprocess.check_output(program, text=True))
    assert kept["limited"] <= 20 < kept["as it is"]


def test_what_lies_free_below_what_is_in_use_is_given_back() -> None:
    process = psutil.Process()
    blocks = [bytes(64 << 10) for _ in range(1_024)]
    last = blocks.pop()  # Holds the end of the heap, so that free alone gives nothing back.
    blocks.clear()
    before = process.memory_info().rss
    give_back()
    assert before - process.memory_info().rss > 32 * MEGABYTE
    assert len(last) == 64 << 10
