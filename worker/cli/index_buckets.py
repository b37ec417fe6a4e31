"""``neardup index stats --buckets``: how large the buckets of a shard are."""

from __future__ import annotations

from typing import Any

from rich.table import Table

from worker.cli.screen import screen, shown
from worker.index.statistics import Statistics

__all__ = ["as_row", "print_buckets"]


def as_row(found: Statistics) -> dict[str, Any]:
    """Return the statistics of a shard's buckets for JSON."""
    return {
        "kept_documents": found.documents,
        "bytes_a_document": round(found.bytes_a_document, 1),
        "eras": found.eras,
        "runs": found.runs,
        "buckets": found.buckets,
        "grown_buckets": found.grown,
        "divided_buckets": found.divided,
        "entries": found.entries,
        "sizes": [
            {"least": _least(most), "most": most, "buckets": count}
            for most, count in sorted(found.sizes.items())
        ],
        "largest": [
            {"band": one.band, "key": f"{one.key:016x}", "entries": one.entries, "id": one.id}
            for one in found.largest
        ],
    }


def print_buckets(shard: int, found: Statistics) -> None:
    """Print the statistics of a shard's buckets."""
    console = screen()
    console.print(
        f"\nshard {shard}: {found.documents:,} documents in the index,"
        f" {found.bytes_a_document:,.0f} bytes each; {found.entries:,} entries in"
        f" {found.buckets:,} buckets, of which {found.grown:,} have grown"
        f" and {found.divided:,} have finer ones; eras: {found.eras}, runs: {found.runs}"
    )
    sizes = Table("entries", "buckets", box=None)
    sizes.columns[0].justify = sizes.columns[1].justify = "right"
    for most, count in sorted(found.sizes.items()):
        least = _least(most)
        sizes.add_row(f"{least:,}" if least == most else f"{least:,}-{most:,}", f"{count:,}")
    console.print(sizes)
    largest = Table("largest", "band", "key", "newest document", box=None)
    for one in found.largest:
        name = "forgotten" if one.id is None else one.id
        largest.add_row(f"{one.entries:,}", str(one.band), f"{one.key:016x}", shown(name))
    console.print(largest)


def _least(most: int) -> int:
    """Return the least number of entries of the class that ends at ``most``."""
    return most // 2 + 1
