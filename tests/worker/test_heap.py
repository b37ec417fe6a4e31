"""Freed memory doesn't stay with the process."""

from __future__ import annotations

import platform

import psutil
import pytest

from worker.heap import give_back

MEGABYTE = 1 << 20


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another malloc has other habits")
def test_what_lies_free_below_what_is_in_use_is_given_back() -> None:
    process = psutil.Process()
    blocks = [bytes(64 << 10) for _ in range(1_024)]
    last = blocks.pop()  # Holds the end of the heap, so that free alone gives nothing back.
    blocks.clear()
    before = process.memory_info().rss
    give_back()
    assert before - process.memory_info().rss > 32 * MEGABYTE
    assert len(last) == 64 << 10
