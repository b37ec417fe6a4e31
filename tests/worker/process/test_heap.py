"""How much memory the process has, as the system says it."""

import mmap
import sys

import numpy as np
import pytest

from worker.process.heap import resident_bytes

MIB = 1 << 20


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has /proc")
def test_what_is_written_is_resident() -> None:
    before = resident_bytes()
    written = mmap.mmap(-1, 64 * MIB)  # From the system: malloc may have as much that is resident.
    np.frombuffer(written, np.uint8)[:] = 1
    after = resident_bytes()
    assert before is not None
    assert after is not None
    assert 48 * MIB < after - before < 128 * MIB
    assert written[-1] == 1
