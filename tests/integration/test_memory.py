"""A worker with little memory goes through a backlog that is as large."""

from __future__ import annotations

import os
from pathlib import Path
from random import Random

import pytest

from tests.integration.conftest import Launch
from tests.support.proof import prove

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.timeout(600),
    pytest.mark.exhaustive,
    pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peaks are in /proc"),
]

MIB = 1 << 20
MEMORY = 256 * MIB
SHORT, LONG = 20_000, 4_000
"""Documents of 500 bytes, where objects are the bulk, and of 50 kB, where bytes are."""


def peak_bytes(pid: int) -> int:
    """Return the most memory that a process has had resident."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    (kib,) = (line.split()[1] for line in lines if line.startswith("VmHWM:"))
    return int(kib) << 10


def texts(seed: int) -> list[tuple[str, str]]:
    """Return documents with little in common, in a random order."""
    sizes = [240] * SHORT + [24_000] * LONG
    Random(seed).shuffle(sizes)
    return [(f"d{number}", os.urandom(size).hex()) for number, size in enumerate(sizes)]


def test_a_worker_stays_within_its_memory(launch: Launch) -> None:
    application = launch(partitions=4, settings={"worker": {"memory": "256MiB"}})
    fed = application.feed(application.documents(texts(1)))
    assert sum(len(record.value or b"") for record in fed) > 200_000_000
    application.start("alpha")
    application.audit.finish(300)
    process = application.worker("alpha").process
    assert process is not None
    peak = peak_bytes(process.pid)
    assert application.worker("alpha").stop() == 0
    assert peak < MEMORY, f"{peak / MIB:.0f} MiB"
    prove(application)
