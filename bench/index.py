"""The cost of one index shard by the number of documents in it, compared with datasketch.

Without Kafka and without texts: the documents are synthetic keys and sketches, so only the index is
measured. One shard has all bands; or several have their share each, and what they cost is summed.
What a document costs must not depend on how many came before.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator

from rich import box
from rich.table import Table

from bench.index_costs import Checkpoint
from bench.report import Target, console

DOCUMENTS = 2_000_000
_DATASKETCH_DOCUMENTS = 100_000
_CPU_TARGETS = {200_000: 5.0, 2_000_000: 10.0, 20_000_000: 15.0}
"""By the number of documents before, in µs."""
_RATE_TARGET = 60_000.0
_MEMORY_TARGET_MB = 900.0
_DISK_TARGET = 450.0
_DISK_OF_SHARDS_TARGET = 1_000.0
"""Of four shards."""
_STEADY_TARGET = 1.1
_STALL_TARGET = 0.5
_LEANER_TARGET = 5.0
_FASTER_TARGET = 1.0
_MEANINGS = (
    "CPU microseconds a document since the row above: in all, of the thread that judges and"
    " inserts, and of RocksDB's threads; documents a second and the longest burst of that thread;"
    " memory of the process; its growth and the disk, bytes a document that is remembered."
)


def run(
    *,
    quick: bool = False,
    documents: int = DOCUMENTS,
    shards: int = 1,
    window: int | None = None,
) -> list[Target]:
    """Measure, print the figures, and return the targets.

    shards: how many divide the bands. Only a single one is compared with datasketch.
    window: after how many others a document is forgotten; None: never.
    """
    total = 50_000 if quick else documents
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("documents", no_wrap=True)
    for column in ("CPU µs", "index", "RocksDB", "per s", "burst s", "MB", "memory B", "disk B"):
        table.add_column(column, justify="right", no_wrap=True)
    found = []
    options = [f"--shards={shards}", *([] if window is None else [f"--window={window}"])]
    for one in _feed("neardup", total, *options):
        found.append(one)
        table.add_row(f"{one.documents:,}", *_row(one, window))
        console.print(f"{one.documents:,}: {one.cpu:.1f} µs a document", style="dim")
    targets = _steady(found) if window is not None else [_disk(found, shards)]
    if shards == 1:
        peer = min(_DATASKETCH_DOCUMENTS, 10_000 if quick else documents)
        (*_, other) = _feed("datasketch", peer)
        table.add_row(f"datasketch, {peer:,}", *_row(other, None))
        if window is None:
            targets += _of_one_shard(found, other)
    what = "One shard with all bands" if shards == 1 else f"{shards} shards, summed"
    kept = "" if window is None else f", of which the last {window:,} are remembered"
    console.print(f"\n[bold]{what}, {total:,} synthetic documents{kept}")
    console.print(table)
    console.print(_MEANINGS, style="dim")
    return targets


def _feed(kind: str, documents: int, *options: str) -> Iterator[Checkpoint]:
    with tempfile.TemporaryDirectory(prefix="neardup-bench-") as folder:
        arguments = [kind, str(documents), folder, *options]
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
        f"{one.cpu:.1f}",
        f"{one.own:.1f}",
        f"{one.others:.1f}",
        f"{one.rate:,.0f}",
        f"{one.stall:.2f}",
        f"{one.memory / 1e6:,.0f}",
        f"{one.grown / kept:,.0f}",
        f"{one.disk / kept:,.0f}",
    ]


def _steady(found: list[Checkpoint]) -> list[Target]:
    """Compare the last window with the second, in which documents are forgotten already."""
    if len(found) < 3:
        return []
    second, last = found[1], found[-1]
    grown = {
        "CPU a document": last.cpu / second.cpu,
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


def _disk(found: list[Checkpoint], shards: int) -> Target:
    last = found[-1]
    limit, of_shards = _DISK_TARGET, ""
    if shards > 1:
        limit, of_shards = _DISK_OF_SHARDS_TARGET, f" in {shards} shards"
    what = f"index: disk a document{of_shards} at {last.documents:,}, bytes"
    return Target(what, last.disk / last.documents, limit, at_least=False, form=",.0f")


def _of_one_shard(found: list[Checkpoint], other: Checkpoint) -> list[Target]:
    """Compare what one shard with all bands costs with limits, and with datasketch."""
    last = found[-1]
    leaner = (other.grown / other.documents) / (last.grown / last.documents)
    return [
        *(
            Target(
                f"index: CPU a document at {one.documents:,}, µs",
                one.cpu,
                _CPU_TARGETS[one.documents],
                at_least=False,
            )
            for one in found
            if one.documents in _CPU_TARGETS
        ),
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
            "index: times less memory a document than datasketch",
            leaner,
            _LEANER_TARGET,
            at_least=True,
        ),
        Target(
            "index: times the speed of datasketch",
            other.own / last.cpu,
            _FASTER_TARGET,
            at_least=True,
        ),
    ]
