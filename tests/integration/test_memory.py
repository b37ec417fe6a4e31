"""What memory a worker takes: with little of it and a large backlog, and after many documents."""

from __future__ import annotations

import os
from pathlib import Path
from random import Random

import pytest

from tests.integration.conftest import Launch
from tests.support.corpus import corpus
from tests.support.proof import prove

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.timeout(600),
    pytest.mark.slow(ci=False),
    pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peaks are in /proc"),
]

MIB = 1 << 20
MEMORY = 256 * MIB
SHORT, LONG = 20_000, 4_000
"""Documents of 500 bytes, where objects are the bulk, and of 50 kB, where bytes are."""

SLICE, SLICES = 20_000, 15
FULL_AFTER = 9
"""After so many slices, the caches of the index are full in a worker of 1 GiB."""


def resident_bytes(pid: int, *, most: bool = False) -> int:
    """Return the memory that a process has resident, or the most that it has had."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    name = "VmHWM:" if most else "VmRSS:"
    (kib,) = (line.split()[1] for line in lines if line.startswith(name))
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
    peak = resident_bytes(process.pid, most=True)
    assert application.worker("alpha").stop() == 0
    assert peak < MEMORY, f"{peak / MIB:.0f} MiB"
    prove(application)


def test_memory_stays_once_the_caches_of_the_index_are_full(launch: Launch) -> None:
    application = launch(settings={"worker": {"memory": "1GiB"}})
    documents = corpus(SLICES * SLICE, 3)
    application.seat("alpha")
    process = application.worker("alpha").process
    assert process is not None
    sizes = []
    for first in range(0, len(documents), SLICE):
        application.feed(application.documents(documents[first : first + SLICE], first))
        application.audit.reach(first + SLICE * 9 // 10, 300)
        sizes.append(resident_bytes(process.pid))
    full = sizes[FULL_AFTER:]
    assert max(full) < 1.15 * min(full), [f"{size / MIB:.0f} MiB" for size in sizes]
    assert resident_bytes(process.pid, most=True) < 1 << 30
