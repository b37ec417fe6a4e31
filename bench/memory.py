"""Peak memory and documents per second of ``neardup dedupe`` on short documents; its parts."""

from __future__ import annotations

import json
import tempfile
import time
from pathlib import Path

from rich import box
from rich.table import Table

from bench.corpus import short_texts
from bench.processes import Program
from bench.report import Figures, Target, console, show

TARGET_MIB = 1_024.0
_MEMORIES = ("256MiB", "1GiB")
_PART_OF_PARTS = 2


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
    _show_parts(total // _PART_OF_PARTS)
    return [Target("peak memory of dedupe, MiB", peak, TARGET_MIB, at_least=False, form=".0f")]


def _show_parts(documents: int) -> None:
    """Print what each part took at most, and its share, with little memory and with more."""
    for memory in _MEMORIES:
        with (
            tempfile.TemporaryDirectory(prefix="neardup-bench-") as folder,
            Program(["bench.memory_parts", memory, str(documents), folder]) as program,
        ):
            program.wait()
            found: dict[str, tuple[int, int]] = json.loads(program.said().splitlines()[-1])
        table = Table("MiB", box=box.SIMPLE_HEAD, pad_edge=False)
        for column in ("at most", "share"):
            table.add_column(column, justify="right")
        for part, sizes in found.items():
            table.add_row(part, *(f"{size / 2**20:,.0f}" for size in sizes))
        console.print(f"\n[bold]worker.memory = {memory}, {documents:,} documents")
        console.print(table)
