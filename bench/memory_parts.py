"""Judge short documents in one process, and print what the parts of its memory took at most.

python -m bench.memory_parts MEMORY DOCUMENTS DIRECTORY

MEMORY is `worker.memory`. The output is one line of JSON: pairs of bytes by part, the most that it
took after any burst, and its largest share. The worker's is resident memory.
"""

from __future__ import annotations

import json
import sys
from itertools import count, islice
from pathlib import Path

from bench.corpus import short_texts
from worker.offline.filter import Line, OfflineFilter, offline_settings
from worker.process.heap import limit, relax, resident_bytes

_BURST = 2_000


def main() -> None:
    """Judge as many documents as the arguments say."""
    limit()
    relax()
    memory, documents, directory = sys.argv[1:]
    settings = offline_settings(overrides={"worker.memory": memory})
    total = settings.memory().total
    most: dict[str, tuple[int, int]] = {}
    numbers = count()
    with OfflineFilter(settings, Path(directory)) as index:
        texts = short_texts(int(documents))
        while some := list(islice(texts, _BURST)):
            index.judge([_line(next(numbers), text) for text in some])
            taken = {**index.memory(), "worker": (resident_bytes() or 0, total)}
            for part, (used, share) in taken.items():
                before, largest = most.get(part, (0, 0))
                most[part] = max(before, used), max(largest, share)
    print(json.dumps(most))


def _line(number: int, text: str) -> Line:
    value = json.dumps({"id": f"doc-{number}", "text": text}).encode()
    return Line(b"%d" % number, value, len(value))


if __name__ == "__main__":
    main()
