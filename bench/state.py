"""CPU of ``neardup dedupe --state``, file after file: what came before must cost little."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from rich import box
from rich.table import Table

from bench.corpus import short_texts
from bench.processes import Program
from bench.report import Target, console

_FILES = 10
_DOCUMENTS = 200_000
_MOST_GROWTH = 1.2


def run(*, quick: bool = False) -> list[Target]:
    """Measure, print the figures, and return the target."""
    count = 5_000 if quick else _DOCUMENTS
    numbered = enumerate(short_texts(_FILES * count))
    with tempfile.TemporaryDirectory(prefix="neardup-bench-") as folder:
        costs = [_cost(Path(folder), islice(numbered, count)) / count for _ in range(_FILES)]
    table = Table(
        f"neardup dedupe --state, files of {count:,} short documents", box=box.SIMPLE_HEAD
    )
    table.add_column("CPU µs a document", justify="right")
    for number, cost in enumerate(costs, 1):
        table.add_row(f"file {number}", f"{cost * 1e6:.1f}")
    console.print(table)
    what = f"dedupe --state: CPU of file {_FILES} to that of file 2"
    return [Target(what, costs[-1] / costs[1], _MOST_GROWTH, at_least=False, form=".2f")]


def _cost(folder: Path, texts: Iterator[tuple[int, str]]) -> float:
    """Return the CPU seconds for another file."""
    documents = folder / "documents.jsonl"
    with documents.open("w", encoding="utf-8") as lines:
        for number, text in texts:
            lines.write(json.dumps({"id": f"doc-{number}", "text": text}) + "\n")
    arguments = ["dedupe", str(documents), "--state", str(folder / "state")]
    with Program(["worker.cli", *arguments, "-o", str(folder / "verdicts.jsonl")]) as program:
        return program.wait().cpu_seconds
