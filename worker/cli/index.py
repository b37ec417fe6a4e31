"""``neardup index stats`` and ``verify``: what shards hold, and whether they are sound."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from worker.cli.errors import EXIT_FAILED, CommandError
from worker.settings import Settings
from worker.snapshots.inspection import inspect
from worker.snapshots.inspection import verify as verify_store
from worker.store import StoreDamaged

__all__ = ["console", "size", "stats", "stores", "time_of", "verify"]

_PLAIN_WIDTH = 10_000  # Nobody folds lines for a pipe.


def console() -> Console:
    """Give a screen, which folds no lines for a pipe."""
    width = None if sys.stdout.isatty() else _PLAIN_WIDTH
    return Console(width=width, highlight=False, soft_wrap=not sys.stdout.isatty())


def stores(settings: Settings, only: list[int] | None) -> dict[int, Path]:
    """Find the stores of a state directory by shard."""
    state_dir = settings.worker.state_dir
    found = {
        int(path.name.removeprefix("shard-")): path
        for path in sorted(state_dir.glob("shard-[0-9][0-9][0-9]"))
    }
    chosen = {shard: path for shard, path in found.items() if only is None or shard in only}
    if not chosen:
        which = "no shard" if only is None else f"no shard {', '.join(map(str, only))}"
        raise CommandError(f"worker.state_dir: {state_dir} has {which}")
    return chosen


def stats(settings: Settings, *, as_json: bool) -> None:
    """Print what each store says of itself."""
    rows: list[dict[str, Any]] = []
    for shard, path in stores(settings, None).items():
        facts = inspect(path)
        rows.append(
            {
                "shard": shard,
                "offset": facts.offset,
                "documents": facts.documents,
                "keys": facts.keys,
                "bytes": facts.size_bytes,
                "now": facts.now,
                "header": facts.header,
            }
        )
    if as_json:
        sys.stdout.write(json.dumps(rows, indent=2) + "\n")
        return
    table = Table("shard", "offset", "documents", "keys", "size", "newest", box=None)
    for row in rows:
        table.add_row(
            str(row["shard"]),
            str(row["offset"]),
            f"{row['documents']:,}",
            f"{row['keys']:,}",
            size(row["bytes"]),
            time_of(row["now"] / 1000) if row["now"] else "",
        )
    console().print(table)


def verify(settings: Settings, only: list[int] | None) -> None:
    """Read every store; fail if one is unsound."""
    screen = console()
    wrong = 0
    for shard, path in stores(settings, only).items():
        try:
            findings = verify_store(path)
        except StoreDamaged as error:
            screen.print(f"[bold red]damaged[/]  shard {shard}: {error}")
            wrong += 1
            continue
        told = (
            f"{findings.buckets:,} buckets, {findings.entries:,} entries,"
            f" {findings.records:,} records, offset {findings.facts.offset}"
        )
        if not findings.faults:
            screen.print(f"[green]ok[/]       shard {shard}: {told}")
            continue
        wrong += 1
        screen.print(f"[bold red]wrong[/]    shard {shard}: {told}")
        for fault in findings.faults:
            screen.print(f"         {fault}", markup=False)
        if findings.more_faults:
            screen.print(f"         and {findings.more_faults:,} more")
    if wrong:
        raise CommandError(
            f"{wrong} of {len(stores(settings, only))} shards are unsound: stop the worker, move"
            " the directory away, and start it again",
            EXIT_FAILED,
        )


def size(count: int) -> str:
    """Write a number of bytes."""
    return f"{count / (1 << 30):.2f} GiB" if count >= 1 << 30 else f"{count / (1 << 20):.1f} MiB"


def time_of(seconds: float) -> str:
    """Write a time, in seconds since the epoch."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
