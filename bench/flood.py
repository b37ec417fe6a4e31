"""What a flood costs one index shard: copies of one text, variants of one template or of many.

As many other documents are in the index before. Documents are synthetic keys and sketches, as of
the benchmark *index*. What a flood costs is compared with as many new documents.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile

from rich import box
from rich.table import Table

from bench.flood_feed import KINDS
from bench.index_feed import Checkpoint
from bench.report import Target, console

__all__ = ["run"]

_DOCUMENTS = 1_000_000
_COPIES_TARGET = 1.0
_COPIES_DISK_TARGET = 0.01
_VARIANTS_TARGET = 2.0
_VARIANTS_DISK_TARGET = 1.0


def run(*, quick: bool = False, documents: int = _DOCUMENTS) -> list[Target]:
    """Measure, print the figures, and return the targets."""
    count = 10_000 if quick else documents
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("flood", no_wrap=True)
    for column in ("CPU µs", "index", "RocksDB", "times new", "matched", "burst s", "disk B"):
        table.add_column(column, justify="right", no_wrap=True)
    found = {}
    for kind in KINDS:
        before, after = _fed(kind, count)
        found[kind] = _cpu(after), (after.disk - before.disk) / count
        cpu, disk = found[kind]
        table.add_row(
            kind,
            f"{cpu:.1f}",
            f"{after.own:.1f}",
            f"{after.others:.1f}",
            f"{cpu / found['unique'][0]:.2f}",
            f"{after.duplicates / count:.1%}",
            f"{after.stall:.2f}",
            f"{disk:,.1f}",
        )
        console.print(f"{kind}: {cpu:.1f} µs a document", style="dim")
    console.print(f"\n[bold]One shard with all bands, {count:,} documents, then as many of a flood")
    console.print(table)
    console.print(
        "CPU microseconds a document of the flood: in all, of the thread that judges and inserts,"
        " and of RocksDB's threads; disk that it adds, bytes a document.",
        style="dim",
    )
    return _targets(found)


def _fed(kind: str, count: int) -> tuple[Checkpoint, Checkpoint]:
    """Return the costs of the documents before, and of those of the flood."""
    with tempfile.TemporaryDirectory(prefix="neardup-bench-") as folder:
        command = [sys.executable, "-m", "bench.flood_feed", kind, str(count), folder]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)  # noqa: S603 -- our own
    before, after = (Checkpoint(**json.loads(line)) for line in done.stdout.splitlines())
    return before, after


def _cpu(one: Checkpoint) -> float:
    return one.own + one.others


def _targets(found: dict[str, tuple[float, float]]) -> list[Target]:
    new_cpu, new_disk = found["unique"]
    targets = []
    for kind in KINDS[1:]:
        copies = kind == "copies"
        cpu, disk = (part / new for part, new in zip(found[kind], (new_cpu, new_disk), strict=True))
        most = _COPIES_TARGET if copies else _VARIANTS_TARGET
        most_disk = _COPIES_DISK_TARGET if copies else _VARIANTS_DISK_TARGET
        targets += [
            Target(f"flood: CPU of {kind} to new ones", cpu, most, at_least=False, form=".2f"),
            Target(
                f"flood: disk of {kind} to new ones", disk, most_disk, at_least=False, form=".3f"
            ),
        ]
    return targets
