"""Decoys: texts that share most of an original without matching it. Is the original forgotten?

Originals come first, then the decoys of all of them in turns, then copies. Signatures are drawn: a
slot agrees with that of the original with the wanted similarity. There is no window, so decoys are
the only reason to forget.
"""

from __future__ import annotations

import time
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray
from rich import box
from rich.table import Table

from bench.report import Target, console
from lsh import Parameters, band_keys
from lsh.index import BucketRules, DocumentBatch
from lsh.sketch import compact
from worker.index.store import BandStore

_DECOYS = 20_000
_SIMILARITY = 0.75
"""Of a decoy to its original. The threshold is 0.8."""
_COPY = 0.95
_COPIES = 1_000
_TURN = 500
_RECALL_TARGET = 0.99
_SHOWN = (10, 1_000)
"""Numbers of originals: with 2,000 decoys each, and with 20."""


def run(*, quick: bool = False) -> list[Target]:
    """Measure, print the figures, and return the targets."""
    decoys = _DECOYS // 10 if quick else _DECOYS
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in ("originals", "decoys", "found", "µs a decoy", "µs a document alone", "dropped"):
        table.add_column(column, justify="right")
    targets = []
    for originals in _SHOWN:
        with TemporaryDirectory() as folder, closing(_Fed(Path(folder))) as index:
            found, cost, alone, dropped = _measured(index, originals, decoys)
        table.add_row(
            f"{originals:,}",
            f"{decoys:,}",
            f"{found:.3f}",
            f"{cost:.0f}",
            f"{alone:.0f}",
            f"{dropped:,}",
        )
        name = f"decoys: copies found of {originals:,} originals"
        targets.append(Target(name, found, _RECALL_TARGET, at_least=True, form=".3f"))
    console.print(table)
    console.print(
        f"Decoys have a similarity of {_SIMILARITY} to their original, copies of {_COPY} or more."
        " CPU of one shard with its store; alone: of documents that meet no full bucket.",
        style="dim",
    )
    return targets


def _measured(index: _Fed, originals: int, decoys: int) -> tuple[float, float, float, int]:
    """Return the share of copies whose original is found, costs in µs, and entries dropped."""
    chance = np.random.default_rng(1)
    slots = Parameters().slots
    first = _drawn(chance, originals, slots)
    index.insert(first)
    each = max(1, _TURN // originals)
    done, began, dropped = 0, time.process_time(), index.dropped
    while done < decoys:
        some = np.repeat(first, each, axis=0)[: decoys - done]
        index.insert(_varied(chance, some, _SIMILARITY))
        done += len(some)
    cost = (time.process_time() - began) / decoys * 1e6
    dropped = index.dropped - dropped
    copied = np.repeat(np.arange(originals), -(-_COPIES // originals))
    copies = _varied(chance, first[copied], (1 + _COPY) / 2)
    near = (copies == first[copied]).mean(axis=1) >= _COPY
    found = index.insert(copies)
    hits = [copied[row] in found[row] for row in np.flatnonzero(near).tolist()]
    others, began = _drawn(chance, 5_000, slots), time.process_time()
    for start in range(0, len(others), _TURN):
        index.insert(others[start : start + _TURN])
    alone = (time.process_time() - began) / len(others) * 1e6
    return float(np.mean(hits)), cost, alone, dropped


def _drawn(chance: np.random.Generator, count: int, slots: int) -> NDArray[np.uint64]:
    return chance.integers(0, 1 << 63, (count, slots), np.uint64)


def _varied(
    chance: np.random.Generator, signatures: NDArray[np.uint64], similarity: float
) -> NDArray[np.uint64]:
    """Return signatures of which each slot agrees with a probability of ``similarity``."""
    others = _drawn(chance, *signatures.shape)
    return np.where(chance.random(signatures.shape) < similarity, signatures, others)


class _Fed:
    """One shard with all bands, in a directory."""

    def __init__(self, directory: Path) -> None:
        self._parameters = Parameters()
        self._store = BandStore(directory / "shard", {"bench": 1})
        self._count = 0
        self.dropped = 0

    def close(self) -> None:
        """Close the store."""
        self._store.close(flush=False)

    def insert(self, signatures: NDArray[np.uint64]) -> list[set[int]]:
        """Insert documents; return the sequence numbers that each one matches."""
        count, bands = len(signatures), self._parameters.bands
        sketches = compact(signatures)
        numbers = np.arange(self._count, self._count + count, dtype=np.uint64)
        batch = DocumentBatch(
            sequences=numbers,
            times=numbers.astype(np.int64),
            ids=[b"%d" % number for number in numbers.tolist()],
            shingles=np.ones(count, np.uint32),
            columns=range(bands),
            keys=np.ascontiguousarray(band_keys(sketches, bands, self._parameters.rows).T),
            sketches=sketches,
        )
        rules = BucketRules(threshold=self._parameters.threshold, max_matches=1_024)
        decision = self._store.decide(batch, rules)
        self._store.apply(decision, offset=self._store.offset + 1, documents=count)
        self._count += count
        self.dropped += decision.dropped
        matched = decision.matches.sequences.tolist()
        return [set(matched[low:high]) for low, high in pairwise(decision.matches.starts.tolist())]
