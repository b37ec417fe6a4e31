"""The cost of one index shard by the number of documents in it, compared with datasketch.

Without Kafka and without texts: the documents are synthetic keys and sketches, so only the index is
measured. One shard has all bands. What a document costs must not depend on how many came before.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator

from rich import box
from rich.table import Table

from bench.index_feed import CHECKPOINTS, Checkpoint
from bench.report import Target, console

__all__ = ["DOCUMENTS", "run"]

DOCUMENTS = 2_000_000
_DATASKETCH_DOCUMENTS = 100_000
_GROWTH_TARGET = 1.5
_CPU_TARGET = 30.0
_RATE_TARGET = 20_000.0
_MEMORY_TARGET_MB = 1_000.0
_DISK_TARGET = 500.0
_STEADY_TARGET = 1.1
_STALL_TARGET = 1.0
_LEANER_TARGET = 5.0
_FASTER_TARGET = 1.0
_MEANINGS = (
    "CPU microseconds a document since the row above: in all, of the thread that judges and"
    " inserts, and of RocksDB's threads; documents a second and the longest burst of that thread;"
    " memory of the process; its growth and the disk, bytes a document that is remembered."
)


def run(
    *, quick: bool = False, documents: int = DOCUMENTS, window: int | None = None
) -> list[Target]:
    """Measure, print the figures, and return the targets.

    window: after how many others a document is forgotten; None: never.
    """
    peer = min(_DATASKETCH_DOCUMENTS, 10_000 if quick else documents)
    total = 50_000 if quick else documents
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("documents", no_wrap=True)
    for column in ("CPU µs", "index", "RocksDB", "per s", "burst s", "MB", "memory B", "disk B"):
        table.add_column(column, justify="right", no_wrap=True)
    found = []
    for one in _feed("neardup", total, *([] if window is None else [window])):
        found.append(one)
        table.add_row(f"{one.documents:,}", *_row(one, window))
        console.print(f"{one.documents:,}: {_cpu(one):.1f} µs a document", style="dim")
    (*_, other) = _feed("datasketch", peer)
    table.add_row(f"datasketch, {peer:,}", *_row(other, None))
    kept = "" if window is None else f", of which the last {window:,} are remembered"
    console.print(f"\n[bold]One shard with all bands, {total:,} synthetic documents{kept}")
    console.print(table)
    console.print(_MEANINGS, style="dim")
    return _targets(found, other) if window is None else _steady(found)


def _feed(kind: str, documents: int, *window: int) -> Iterator[Checkpoint]:
    with tempfile.TemporaryDirectory(prefix="neardup-bench-") as folder:
        arguments = [kind, str(documents), folder, *map(str, window)]
        command = [sys.executable, "-m", "bench.index_feed", *arguments]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as feeding:  # noqa: S603 -- our own
            assert feeding.stdout is not None  # noqa: S101 -- a pipe
            for line in feeding.stdout:
                yield Checkpoint(**json.loads(line))
        if feeding.returncode:
            raise SystemExit(f"bench.index_feed {kind} failed")


def _row(one: Checkpoint, window: int | None) -> list[str]:
    kept = min(one.documents, window or one.documents)
    return [
        f"{_cpu(one):.1f}",
        f"{one.own:.1f}",
        f"{one.others:.1f}",
        f"{one.rate:,.0f}",
        f"{one.stall:.2f}",
        f"{one.memory / 1e6:,.0f}",
        f"{one.grown / kept:,.0f}",
        f"{one.disk / kept:,.0f}",
    ]


def _cpu(one: Checkpoint) -> float:
    return one.own + one.others


def _steady(found: list[Checkpoint]) -> list[Target]:
    """Compare the last window with the second, in which documents are forgotten already."""
    if len(found) < 3:
        return []
    second, last = found[1], found[-1]
    grown = {
        "CPU a document": _cpu(last) / _cpu(second),
        "memory": last.memory / second.memory,
        "disk": last.disk / second.disk,
    }
    targets = [
        Target(
            f"index: {name} at {last.documents:,} to that at {second.documents:,}",
            times,
            _STEADY_TARGET,
            at_least=False,
            form=".2f",
        )
        for name, times in grown.items()
    ]
    stall = max(one.stall for one in found)
    longest = Target("index: longest burst, s", stall, _STALL_TARGET, at_least=False, form=".2f")
    return [*targets, longest]


def _targets(found: list[Checkpoint], other: Checkpoint) -> list[Target]:
    first, last = found[0], found[-1]
    at = f"at {last.documents:,}"
    leaner = (other.grown / other.documents) / (last.grown / last.documents)
    targets = [
        Target(f"index: CPU a document {at}, µs", _cpu(last), _CPU_TARGET, at_least=False),
        Target(
            "index: documents/s throughout",
            min(one.rate for one in found),
            _RATE_TARGET,
            at_least=True,
            form=",.0f",
        ),
        Target(
            "index: memory, MB",
            max(one.memory for one in found) / 1e6,
            _MEMORY_TARGET_MB,
            at_least=False,
            form=",.0f",
        ),
        Target(
            f"index: disk a document {at}, bytes",
            last.disk / last.documents,
            _DISK_TARGET,
            at_least=False,
            form=",.0f",
        ),
        Target(
            "index: times less memory a document than datasketch",
            leaner,
            _LEANER_TARGET,
            at_least=True,
        ),
        Target(
            "index: times the speed of datasketch",
            other.own / _cpu(last),
            _FASTER_TARGET,
            at_least=True,
        ),
    ]
    if first.documents == CHECKPOINTS[0] and last is not first:
        growth = _cpu(last) / _cpu(first)
        targets.insert(
            0,
            Target(
                f"index: CPU a document {at} to that at {first.documents:,}",
                growth,
                _GROWTH_TARGET,
                at_least=False,
                form=".2f",
            ),
        )
    return targets
