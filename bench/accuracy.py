"""Compare the verdicts of ``neardup dedupe`` with exact similarities.

    NEARDUP_BENCH_DATA=DIR python -m bench.accuracy      # DIR holds docs.jsonl.gz
    python -m bench.accuracy FILE [--threshold 0.8]

This module computes the truth: the exact Jaccard similarity of the shingle sets of the
normalised texts, for every pair at or above the threshold minus 0.1. Prefix filtering makes
that feasible and stays exact (Chaudhuri et al. 2006, "A primitive operator for similarity
joins in data cleaning"; Xiao et al. 2008, PPJoin): with shingles ordered from rare to
common, two sets with Jaccard >= t share k of the first ``n - ceil(t * n) + k`` shingles of each.
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import os
import sys
import tempfile
from collections import Counter, defaultdict
from itertools import chain
from pathlib import Path

from rich.console import Console
from rich.table import Table

from lsh import normalise
from worker.cli.dedupe import Job, run_job
from worker.offline import offline_settings
from worker.settings import Settings

_SHARED = 16
"""Shingles that two prefixes must share (k), limited by the smaller set."""
_BELOW = 0.1
"""A duplicate is wrong if its best earlier document is this far below the threshold."""


def main() -> None:
    """Run the filter, compute the truth, and compare them."""
    arguments = _arguments()
    settings = offline_settings(None, {"similarity.threshold": arguments.threshold})
    documents = _documents(arguments.file, settings)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "verdicts.jsonl"
        run_job(Job(files=[arguments.file], out=out), settings)
        verdicts = [json.loads(line) for line in out.read_text().splitlines()]
    floor = arguments.threshold - _BELOW
    truth = _best_earlier([shingles for _, shingles in documents], floor)
    _report(arguments.threshold, documents, verdicts, truth)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    folder = os.environ.get("NEARDUP_BENCH_DATA")
    default = Path(folder) / "docs.jsonl.gz" if folder else None
    parser.add_argument("file", type=Path, nargs="?", default=default)
    parser.add_argument("--threshold", type=float, default=0.8)
    arguments = parser.parse_args()
    if arguments.file is None:
        sys.exit("name a FILE, or set NEARDUP_BENCH_DATA to a folder with docs.jsonl.gz")
    return arguments


def _documents(path: Path, settings: Settings) -> list[tuple[str, frozenset[int]]]:
    """Return each document's id and the set of its shingles, as numbers from rare to common."""
    similarity = settings.similarity
    if similarity.shingle != "char":
        sys.exit("this benchmark supports only character shingles")
    parameters = settings.parameters()
    data = path.read_bytes()
    if path.suffix == ".gz":
        data = gzip.decompress(data)
    documents = [json.loads(line) for line in data.splitlines() if line.strip()]
    texts = [normalise(document["text"], parameters) for document in documents]
    sets = [_shingles(text, similarity.shingle_size) for text in texts]
    frequency = Counter(shingle for shingles in sets for shingle in shingles)
    order = sorted(frequency, key=lambda shingle: (frequency[shingle], shingle))
    rank = {shingle: place for place, shingle in enumerate(order)}
    return [
        (str(document["id"]), frozenset(map(rank.__getitem__, shingles)))
        for document, shingles in zip(documents, sets, strict=True)
    ]


def _shingles(text: str, size: int) -> set[str]:
    count = max(1, len(text) - size + 1)
    return {text[start : start + size] for start in range(count) if text}


def _best_earlier(sets: list[frozenset[int]], floor: float) -> list[float]:
    """Return each document's highest Jaccard similarity to an earlier one; 0 below ``floor``."""
    postings: dict[int, list[int]] = defaultdict(list)
    asked: list[int] = []
    best = []
    for number, shingles in enumerate(sets):
        size = len(shingles)
        least = math.ceil(floor * size)
        asked.append(min(_SHARED, least))
        prefix = sorted(shingles)[: size - least + asked[-1]]
        candidates = Counter(chain.from_iterable(postings[shingle] for shingle in prefix))
        highest = 0.0
        for other, count in candidates.items():
            length = len(sets[other])
            possible = floor * max(size, length) <= min(size, length)
            if possible and count >= min(asked[-1], asked[other]):
                shared = len(shingles & sets[other])
                highest = max(highest, shared / (size + length - shared))
        best.append(highest if highest >= floor else 0.0)
        for shingle in prefix:
            postings[shingle].append(number)
    return best


def _report(
    threshold: float,
    documents: list[tuple[str, frozenset[int]]],
    verdicts: list[dict[str, object]],
    truth: list[float],
) -> None:
    judged = [verdict["verdict"] for verdict in verdicts]
    if [verdict["id"] for verdict in verdicts] != [name for name, _ in documents]:
        sys.exit("the verdicts don't match the documents and their order")
    table = Table(title=f"{len(documents):,} documents, threshold {threshold:g}")
    table.add_column("best exact Jaccard to an earlier document")
    for name in ("documents", "duplicate", "share"):
        table.add_column(name, justify="right")
    steps = math.floor((1 - threshold + _BELOW) / 0.05 + 1e-9)
    edges = [0.0, *(round(threshold - _BELOW + 0.05 * step, 2) for step in range(steps)), 1.0]
    for low, high in zip(edges, [*edges[1:], math.inf], strict=True):
        kinds = [kind for kind, best in zip(judged, truth, strict=True) if low <= best < high]
        duplicates = kinds.count("duplicate")
        part = f"{duplicates / len(kinds):.2%}" if kinds else "-"
        label = f"{low:.2f} up to {high:.2f}" if high <= 1 else "1 (equal)"
        label = f"none, or below {threshold - _BELOW:.2f}" if low == 0 else label
        table.add_row(label, f"{len(kinds):,}", f"{duplicates:,}", part)
    console = Console()
    console.print(table)
    clear = [kind for kind, best in zip(judged, truth, strict=True) if best >= threshold + 0.05]
    found = clear.count("duplicate")
    wrong = [
        (verdict["id"], best)
        for verdict, best in zip(verdicts, truth, strict=True)
        if verdict["verdict"] == "duplicate" and best < threshold - _BELOW
    ]
    if clear:
        share = found / len(clear)
        console.print(
            f"at {threshold + 0.05:.2f} or above: {found:,} of {len(clear):,} are duplicates,"
            f" {share:.2%}"
        )
    console.print(
        f"duplicates without an earlier document at {threshold - _BELOW:.2f} or above: {len(wrong)}"
    )
    for ident, best in wrong[:10]:
        console.print(f"  {ident}: {best:.3f}")


if __name__ == "__main__":
    main()
