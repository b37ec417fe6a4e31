"""`lsh.Index` with 100,000 documents of 1 kB: CPU and memory, compared with datasketch."""

from __future__ import annotations

import json
import subprocess
import sys

from rich import box
from rich.table import Table

from bench.corpus import source
from bench.library_index import ALONE, LENGTH, Costs
from bench.report import Target, console

_DOCUMENTS = 100_000
_FASTER_TARGET = 25.0
_LEANER_TARGET = 5.0


def run(*, quick: bool = False) -> list[Target]:
    """Measure, print the figures, and return the targets."""
    count = 5_000 if quick else _DOCUMENTS
    found = {kind: _measured(kind, count) for kind in ("datasketch", "neardup")}
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("CPU microseconds a document")
    for column in ("sign", "insert", "query", "all", "one by one", "memory B", "matches"):
        table.add_column(column, justify="right")
    for kind, costs in found.items():
        steps = (costs.sign, costs.insert, costs.query, _all(costs))
        table.add_row(
            kind,
            *(f"{step / count * 1e6:,.1f}" for step in steps),
            f"{costs.alone / ALONE * 1e6:,.1f}",
            f"{costs.grown / count:,.0f}",
            f"{costs.matches:,}",
        )
    title = f"{count:,} documents of {LENGTH:,} characters ({source()})"
    console.print(f"\n[bold]{title}, each added and then queried")
    console.print(table)
    theirs, ours = found["datasketch"], found["neardup"]
    faster = _all(theirs) / _all(ours)
    of_index = (theirs.insert + theirs.query) / (ours.insert + ours.query)
    console.print(f"without signatures: {of_index:.1f} times as fast", style="dim")
    leaner = theirs.grown / ours.grown
    return [
        Target("library: times the speed of datasketch", faster, _FASTER_TARGET, at_least=True),
        Target("library: times less memory", leaner, _LEANER_TARGET, at_least=True),
    ]


def _all(costs: Costs) -> float:
    return costs.sign + costs.insert + costs.query


def _measured(kind: str, documents: int) -> Costs:
    command = [sys.executable, "-m", "bench.library_index", kind, str(documents)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)  # noqa: S603 -- our own
    return Costs(**json.loads(done.stdout))


if __name__ == "__main__":
    run()
