"""``neardup index stats``: the contents of shards; and their verification."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from worker.cli.errors import EXIT_FAILED, CommandError
from worker.cli.options import App, Config, Json, StateDir, settings_of
from worker.cli.screen import line, print_json, screen, shown
from worker.index.directory import stores_in
from worker.index.errors import StoreDamaged
from worker.index.inspection import Statistics, inspect_store, store_statistics, verify_store
from worker.index.read_only import StoreFacts
from worker.offline.state_versions import StateError, current_index
from worker.settings.model import Settings
from worker.visible import counted, tell


def stores(settings: Settings, only: list[int] | None) -> dict[int, Path]:
    """Return the stores of a state directory by shard; ``only`` restricts them.

    Raises:
        CommandError: there are none.
    """
    state_dir = settings.worker.state_dir
    paths = stores_in(state_dir)
    chosen = {shard: path for shard, path in paths.items() if only is None or shard in only}
    if not chosen:
        which = "no shards" if only is None else f"no shard {', '.join(map(str, only))}"
        later = [path.name for path in sorted(state_dir.glob("g*")) if stores_in(path)]
        where = f", or one of its directories after a reindex: {', '.join(later)}" if later else ""
        raise CommandError(f"worker.state_dir: {state_dir} has {which}; set --state-dir{where}")
    return chosen


def stats(
    config: Config = None,
    app: App = None,
    state_dir: StateDir = None,
    state: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="A directory of `dedupe --state` instead."),
    ] = None,
    *,
    buckets: Annotated[
        bool,
        typer.Option("--buckets", help="Read all buckets, and show how large they are."),
    ] = False,
    as_json: Json = False,
) -> None:
    """Show the contents of the shards in a state directory, as of their last flush."""
    settings = settings_of(config, app=app, worker__state_dir=state_dir)
    paths = stores(settings, None) if state is None else _stores_of(state)
    statistics = {shard: store_statistics(path) for shard, path in paths.items()} if buckets else {}
    rows = [
        _row(shard, statistics[shard].facts) | bucket_facts(statistics[shard])
        if buckets
        else _row(shard, inspect_store(path))
        for shard, path in paths.items()
    ]
    if as_json:
        print_json(rows)
        return
    _print_rows(rows)
    for shard, of_shard in statistics.items():
        print_buckets(shard, of_shard)


def _stores_of(state: Path) -> dict[int, Path]:
    try:
        return stores_in(current_index(state))
    except StateError as error:
        raise CommandError(str(error)) from None


def _row(shard: int, facts: StoreFacts) -> dict[str, Any]:
    return {
        "shard": shard,
        "offset": facts.offset,
        "documents": facts.documents,
        "keys": facts.keys,
        "bytes": facts.size_bytes,
        "now": facts.now,
        "header": facts.header,
    }


def _print_rows(rows: list[dict[str, Any]]) -> None:
    table = Table("shard", "offset", "documents", "keys", "size", "now", box=None)
    for row in rows:
        table.add_row(
            str(row["shard"]),
            str(row["offset"]),
            f"{row['documents']:,}",
            f"{row['keys']:,}",
            size(row["bytes"]),
            "" if row["now"] is None else time_of(row["now"] / 1000),
        )
    screen().print(table)


def verify_stores(settings: Settings, only: list[int] | None, *, as_json: bool) -> None:
    """Read every store; raise if one is damaged or inconsistent."""
    rows: list[dict[str, Any]] = []
    for shard, path in stores(settings, only).items():
        row = _verified(shard, path)
        if row["faults"] and _emptied(path):
            tell(f"shard {shard}: {path} is gone: a worker deletes what no shard uses any more")
            continue
        rows.append(row)
        if not as_json:
            _print_verified(row)
    if as_json:
        print_json(rows)
    wrong = sum(row["state"] != "ok" for row in rows)
    if wrong:
        raise CommandError(
            f"{wrong} of {counted(len(rows), 'shard')} failed verification: stop the worker, move"
            " their directories away, and start it again",
            EXIT_FAILED,
        )


def _emptied(path: Path) -> bool:
    """Return whether a store has nothing left. RocksDB makes the directory of one that is gone."""
    return not (path / "CURRENT").exists() and not any(path.glob("*.sst"))


def _verified(shard: int, path: Path) -> dict[str, Any]:
    try:
        findings = verify_store(path)
    except StoreDamaged as error:
        return {"shard": shard, "state": "damaged", "faults": [str(error)], "more_faults": 0}
    return {
        "shard": shard,
        "state": "wrong" if findings.faults else "ok",
        "offset": findings.facts.offset,
        "buckets": findings.buckets,
        "entries": findings.entries,
        "records": findings.records,
        "faults": list(findings.faults),
        "more_faults": findings.more_faults,
    }


def _print_verified(row: dict[str, Any]) -> None:
    console, state, shard = screen(), row["state"], row["shard"]
    mark = (state.ljust(8), "green" if state == "ok" else "bold red")
    if state == "damaged":
        console.print(line(mark, f" shard {shard}: {row['faults'][0]}"))
        return
    summary = (
        f"{counted(row['buckets'], 'bucket')}, {counted(row['entries'], 'entry', 'entries')},"
        f" {counted(row['records'], 'record')}, offset {row['offset']}"
    )
    console.print(line(mark, f" shard {shard}: {summary}"))
    for fault in row["faults"]:
        console.print(shown(f"         {fault}"))
    if row["more_faults"]:
        console.print(f"         and {row['more_faults']:,} more")


def size(count: int) -> str:
    """Return a number of bytes as text."""
    return f"{count / (1 << 30):.2f} GiB" if count >= 1 << 30 else f"{count / (1 << 20):.1f} MiB"


def time_of(seconds: float) -> str:
    """Return a time, given in seconds since the epoch, as ISO 8601."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


def bucket_facts(stats: Statistics) -> dict[str, Any]:
    """Return the statistics of a shard's buckets for JSON."""
    return {
        "kept_documents": stats.documents,
        "bytes_a_document": round(stats.bytes_a_document, 1),
        "eras": stats.eras,
        "runs": stats.runs,
        "buckets": stats.buckets,
        "grown_buckets": stats.grown,
        "divided_buckets": stats.divided,
        "entries": stats.entries,
        "sizes": [
            {"least": _least(most), "most": most, "buckets": count}
            for most, count in sorted(stats.sizes.items())
        ],
        "largest": [
            {
                "band": bucket.band,
                "key": f"{bucket.key:016x}",
                "entries": bucket.entries,
                "id": bucket.id,
            }
            for bucket in stats.largest
        ],
    }


def print_buckets(shard: int, stats: Statistics) -> None:
    """Print the statistics of a shard's buckets."""
    console = screen()
    console.print(
        f"\nshard {shard}: {counted(stats.documents, 'document')} in the index,"
        f" {stats.bytes_a_document:,.0f} bytes each; {counted(stats.entries, 'entry', 'entries')}"
        f" in {counted(stats.buckets, 'bucket')}, {stats.grown:,} of them grown and"
        f" {stats.divided:,} with finer ones; eras: {stats.eras}, runs: {stats.runs}"
    )
    sizes = Table("entries", "buckets", box=None)
    sizes.columns[0].justify = sizes.columns[1].justify = "right"
    for most, count in sorted(stats.sizes.items()):
        least = _least(most)
        sizes.add_row(f"{least:,}" if least == most else f"{least:,}-{most:,}", f"{count:,}")
    console.print(sizes)
    largest = Table("largest", "band", "key", "newest document", box=None)
    for bucket in stats.largest:
        name = "forgotten" if bucket.id is None else bucket.id
        largest.add_row(f"{bucket.entries:,}", str(bucket.band), f"{bucket.key:016x}", shown(name))
    console.print(largest)


def _least(most: int) -> int:
    """Return the least number of entries of the class that ends at ``most``."""
    return most // 2 + 1
