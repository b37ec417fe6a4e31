"""What floods of documents that resemble one another cost one index shard with all bands.

Somebody who sends the same text a million times, or variants of it, must not take more of the index
than the same number of new documents would. Without Kafka and without texts, as `bench.index`.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass

from rich import box
from rich.table import Table

from bench.index_costs import Checkpoint
from bench.report import Target, console
from bench.synthetic_floods import FLOODS

_DOCUMENTS = 1_000_000
_QUICK = (20_000, 4_000)
_CPU_TARGETS = {"copies": 1.0, "variants": 1.5, "templates": 1.5}
_DISK_TARGETS = {"copies": 0.01, "variants": 1.0, "templates": 1.0}
"""Those of new documents, times these."""
_MEANINGS = (
    "CPU microseconds a document of the flood: in all, of the thread that judges and inserts, of"
    " RocksDB's threads; how many times that of new documents; bytes a document that the flood adds"
    " to the disk; the share that has matches; the longest burst of 2,000 documents."
)


@dataclass(frozen=True, slots=True)
class _Flood:
    """The costs of a flood, and the size of the index before it."""

    costs: Checkpoint
    before: Checkpoint

    @property
    def documents(self) -> int:
        return self.costs.documents - self.before.documents

    @property
    def disk(self) -> float:
        """Return the bytes a document that it has added to the disk."""
        return (self.costs.disk - self.before.disk) / self.documents

    @property
    def matched(self) -> float:
        """Return the share of its documents that have matches."""
        return self.costs.duplicates / self.documents


def run(*, quick: bool = False, documents: int = _DOCUMENTS) -> list[Target]:
    """Measure, print the figures, and return the targets.

    documents: how many are in the index before, and how many each flood has.
    """
    before, more = _QUICK if quick else (documents, documents)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column(f"{more:,} after {before:,}", no_wrap=True)
    for column in ("CPU µs", "index", "RocksDB", "times", "disk B", "matched", "burst s"):
        table.add_column(column, justify="right", no_wrap=True)
    found: dict[str, _Flood] = {}
    for kind in FLOODS:
        one = found[kind] = _fed(kind, before, more)
        table.add_row(kind, *_row(one, found["unique"]))
        console.print(f"{kind}: {one.costs.cpu:.1f} µs a document", style="dim")
    console.print(f"\n[bold]One shard with all bands, {before:,} documents and then a flood")
    console.print(table)
    console.print(_MEANINGS, style="dim")
    return [target for kind in _CPU_TARGETS for target in _targets(kind, found)]


def _fed(kind: str, before: int, documents: int) -> _Flood:
    with tempfile.TemporaryDirectory(prefix="neardup-bench-") as folder:
        command = [sys.executable, "-m", "bench.flood_feed", kind, str(before), str(documents)]
        fed = subprocess.run([*command, folder], stdout=subprocess.PIPE, text=True, check=False)  # noqa: S603 -- our own
    if fed.returncode:
        raise SystemExit(f"bench.flood_feed {kind} failed")
    first, last = (Checkpoint(**json.loads(line)) for line in fed.stdout.splitlines())
    return _Flood(last, first)


def _row(one: _Flood, unique: _Flood) -> list[str]:
    return [
        f"{one.costs.cpu:.1f}",
        f"{one.costs.own:.1f}",
        f"{one.costs.others:.1f}",
        f"{one.costs.cpu / unique.costs.cpu:.2f}",
        f"{one.disk:,.0f}",
        f"{one.matched:.1%}",
        f"{one.costs.stall:.2f}",
    ]


def _targets(kind: str, found: dict[str, _Flood]) -> list[Target]:
    one, unique = found[kind], found["unique"]
    return [
        Target(
            f"flood: CPU of {kind} to that of new documents",
            one.costs.cpu / unique.costs.cpu,
            _CPU_TARGETS[kind],
            at_least=False,
            form=".2f",
        ),
        Target(
            f"flood: disk that {kind} add to that of new documents",
            one.disk / unique.disk,
            _DISK_TARGETS[kind],
            at_least=False,
            form=".3f",
        ),
    ]
