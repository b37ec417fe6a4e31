"""A process that reads documents, and dies of one: ``python -m tests.support.mortal DIR WAY``.

It prints what it has rejected, and the offsets that its frames cover.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final

from lsh import Fingerprinter
from lsh._core import Signed
from tests.support.stages import (
    DOCS,
    LAYOUT,
    PARAMETERS,
    document,
    fingerprint,
    no_watermarks,
    records,
)
from worker.files.journal import Journal
from worker.stages import Deaths
from worker.wire import FingerprintFrame, decode

__all__ = ["DOCUMENTS", "MEMORY_BYTES", "POISON"]

DOCUMENTS: Final = 20
POISON: Final = 13
MEMORY_BYTES: Final = 4 << 30
"""What the process may have, mapped libraries included."""


def killed() -> None:
    """End as the kernel ends a process that takes too much memory."""
    os.kill(os.getpid(), signal.SIGKILL)


def out_of_memory() -> None:
    """Take all memory that there is; bytes that nobody writes cost no time."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    taken = []
    while True:
        taken.append(bytes(256 << 20))


def too_deep() -> None:
    """Never come back."""
    too_deep()


def failed() -> None:
    """Fail as the core does after a panic."""
    raise RuntimeError("the core has failed: index out of bounds")


WAYS: Final[Mapping[str, Callable[[], None]]] = {
    "killed": killed,
    "out of memory": out_of_memory,
    "too deep": too_deep,
    "failed": failed,
}


class Mortal(Fingerprinter):
    """Dies of a text in some way."""

    def __init__(self, die: Callable[[], None]) -> None:
        """Take the way."""
        super().__init__(PARAMETERS)
        self._die = die

    def sign(self, texts: Iterable[str]) -> Signed:
        """See `Fingerprinter`, while it lasts."""
        if any(text.startswith("poison") for text in texts):
            self._die()
        return super().sign(texts)


def _main(directory: Path, way: str) -> None:
    deaths = Deaths("documents", "id", Journal(directory / "journal"))
    stage = fingerprint(fingerprinter=Mortal(WAYS[way]), deaths=deaths)
    stage.adopt({DOCS: 0}, no_watermarks)
    burst = stage.process(
        [document(n, f"{'poison' if n == POISON else 'text'} number {n}") for n in range(DOCUMENTS)]
    )
    stage.committed()
    frames = [
        decode(FingerprintFrame, record.value, LAYOUT)
        for record in records(burst.records, "app.fingerprints")
    ]
    rejected = [dict(record.headers) for record in records(burst.records, "rejected")]
    found = {
        "tiles": [frame.start for frame in frames] == [0, *(frame.end for frame in frames[:-1])],
        "end": frames[-1].end,
        "read": [int(n) for frame in frames for n in frame.start + frame.offsets.astype(int)],
        "rejected": [
            [int(headers["neardup-error-offset"] or b""), str(headers["neardup-error-reason"])]
            for headers in rejected
        ],
    }
    print(json.dumps(found))  # noqa: T201 -- read by the test


if __name__ == "__main__":
    _main(Path(sys.argv[1]), sys.argv[2])
