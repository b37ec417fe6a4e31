"""Peak memory and documents per second of ``neardup dedupe`` on a million short documents."""

from __future__ import annotations

import json
import tempfile
import time
from pathlib import Path

from bench.corpus import short_texts
from bench.processes import Program
from bench.report import Figures, Target, console, show

__all__ = ["run"]

TARGET_MIB = 1_024.0


def run(*, quick: bool = False) -> list[Target]:
    """Measure, print the figures, and return the target."""
    total = 100_000 if quick else 1_000_000
    with tempfile.TemporaryDirectory(prefix="neardup-bench-") as folder:
        documents = Path(folder) / "documents.jsonl"
        with documents.open("w", encoding="utf-8") as lines:
            for number, text in enumerate(short_texts(total)):
                lines.write(json.dumps({"id": f"doc-{number}", "text": text}) + "\n")
        size = documents.stat().st_size
        began = time.monotonic()
        with Program(
            ["worker.cli", "dedupe", str(documents), "-o", str(Path(folder) / "verdicts.jsonl")]
        ) as program:
            usage = program.wait()
            seconds = time.monotonic() - began
            console.print(program.said().strip(), style="dim", markup=False)
    peak = usage.peak_bytes / 2**20
    show(
        f"neardup dedupe, {total:,} documents of {size / total:,.0f} bytes (synthetic text)",
        [
            Figures("peak memory, MiB", [peak]),
            Figures("documents/s", [total / seconds]),
            Figures("CPU microseconds per document", [usage.cpu_seconds / total * 1e6]),
        ],
    )
    return [Target("peak memory of dedupe, MiB", peak, TARGET_MIB, at_least=False, form=".0f")]
