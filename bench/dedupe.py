"""``neardup dedupe`` on documents of a kilobyte, compared with a script on datasketch.

The script gets the first documents alone: what a document costs it grows with their number, so the
ratio is rather too low than too high.
"""

from __future__ import annotations

import json
import tempfile
import time
from itertools import islice
from pathlib import Path

from bench.corpus import source, texts
from bench.processes import Program
from bench.report import Figures, Target, show

_DOCUMENTS = 1_000_000
_THEIRS = 50_000
_QUICK = 20, 5
"""How many times fewer documents, and of the script, with --quick."""
_LENGTH = 1_000  # characters
_FASTER_TARGET = 35.0
_MEMORY_TARGET_MB = 500.0


def run(*, quick: bool = False) -> list[Target]:
    """Measure, print the figures, and return the targets."""
    fewer, fewer_theirs = _QUICK if quick else (1, 1)
    ours, theirs = _DOCUMENTS // fewer, _THEIRS // fewer_theirs
    with tempfile.TemporaryDirectory(prefix="neardup-bench-") as name:
        folder = Path(name)
        documents, first = folder / "documents.jsonl", folder / "first.jsonl"
        with documents.open("w", encoding="utf-8") as lines:
            for number, text in enumerate(texts(ours)):
                lines.write(json.dumps({"id": f"doc-{number}", "text": text[:_LENGTH]}) + "\n")
        with documents.open("rb") as lines:
            first.write_bytes(b"".join(islice(lines, theirs)))
        verdicts = str(folder / "verdicts.jsonl")
        rate, cpu, peak = _measured(["worker.cli", "dedupe", str(documents), "-o", verdicts], ours)
        other, other_cpu, _ = _measured(["bench.datasketch_filter", str(first), verdicts], theirs)
    show(
        f"neardup dedupe, {ours:,} documents of {_LENGTH:,} characters ({source()}); a script on"
        f" datasketch, the first {theirs:,}",
        [
            Figures("neardup, documents/s", [rate]),
            Figures("datasketch, documents/s", [other]),
            Figures("times as fast", [rate / other], ".1f"),
            Figures("neardup, CPU µs a document", [cpu], ".1f"),
            Figures("datasketch, CPU µs a document", [other_cpu], ".1f"),
            Figures("neardup, peak memory, MB", [peak]),
        ],
    )
    return [
        Target(
            "dedupe: times the speed of datasketch", rate / other, _FASTER_TARGET, at_least=True
        ),
        Target("dedupe: peak memory, MB", peak, _MEMORY_TARGET_MB, at_least=False, form=",.0f"),
    ]


def _measured(arguments: list[str], documents: int) -> tuple[float, float, float]:
    """Return the documents a second, CPU µs a document, and peak memory in MB, of a program."""
    began = time.monotonic()
    with Program(arguments) as program:
        usage = program.wait()
        seconds = time.monotonic() - began
    return documents / seconds, usage.cpu_seconds / documents * 1e6, usage.peak_bytes / 1e6
