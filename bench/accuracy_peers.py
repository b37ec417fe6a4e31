"""What other filters make of the documents that `bench.accuracy` judges.

- *datasketch*: as its documentation shows. `MinHashLSH(threshold)` chooses bands and rows for its
  128 permutations, and each document that shares a band is a match.
- *datasketch, verified*: at its best, with the slots, bands and rows of neardup. A match is a
  document that shares a band and has an estimated similarity at or above the threshold.
- *rensa*: `RMinHashDeduplicator` with 128 permutations, as its documentation shows. It keeps
  unique documents alone, so a document is compared with those. `pip install rensa`: it is no
  dependency of the project, and is left out if it is not here.

All get the same sets of shingles.
"""

from __future__ import annotations

import gzip
import importlib
import json
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from datasketch import MinHash, MinHashLSH
from numpy.typing import NDArray

from lsh import Choice, Fingerprinter
from worker.settings.model import Settings

_DEFAULT = 128
_RENSA_SEED = 42  # that of its documentation; it has no default


class Judged(NamedTuple):
    """The verdicts of a filter on n documents.

    name, parameters: of the filter.
    duplicate: bool[n].
    later, earlier: int64[m], the matches.
    """

    name: str
    parameters: str
    duplicate: NDArray[np.bool_]
    later: NDArray[np.int64]
    earlier: NDArray[np.int64]


class Peers:
    """The other filters, on the documents of one corpus. Documents are signed once."""

    def __init__(self, path: Path, settings: Settings, kept: NDArray[np.bool_]) -> None:
        """Name the documents.

        kept: bool[n], those that take part.
        """
        self._path, self._settings, self._kept = path, settings, kept
        self._signed: dict[int, list[MinHash | None]] = {}
        self._rensa: list[Any] = []

    def judge(self, threshold: float, choice: Choice) -> Iterator[Judged]:
        """Yield the verdicts of each filter.

        choice: the slots, bands and rows of neardup.
        """
        yield self._plain(threshold)
        yield self._verified(threshold, choice)
        if find_spec("rensa") is not None:
            yield self._deduplicated(threshold)

    def _plain(self, threshold: float) -> Judged:
        index = MinHashLSH(threshold=threshold)

        def matches(number: int, signature: MinHash) -> list[int]:
            found: list[int] = index.query(signature)
            index.insert(number, signature)
            return found

        name = f"{_DEFAULT}, {index.b} x {index.r}"
        return _judged("datasketch", name, self._signatures(_DEFAULT), matches)

    def _verified(self, threshold: float, choice: Choice) -> Judged:
        slots, bands, rows = choice
        index = MinHashLSH(num_perm=slots, params=(bands, rows))
        signed = self._signatures(slots)

        def matches(number: int, signature: MinHash) -> list[int]:
            met: list[int] = index.query(signature)
            index.insert(number, signature)
            return [other for other in met if signature.jaccard(signed[other]) >= threshold]

        return _judged("datasketch, verified", f"{slots}, {bands} x {rows}", signed, matches)

    def _deduplicated(self, threshold: float) -> Judged:
        rensa = importlib.import_module("rensa")
        if not self._rensa:
            make = rensa.RMinHash.from_token_sets
            self._rensa = [
                None if each is None else make([each], num_perm=_DEFAULT, seed=_RENSA_SEED)[0]
                for each in self._shingles()
            ]
        index = rensa.RMinHashDeduplicator(threshold, _DEFAULT, use_lsh=True)

        def matches(number: int, signature: object) -> list[int]:
            found = [int(key) for key in index.get_duplicates(signature)]
            index.add(str(number), signature)
            return found

        return _judged("rensa", f"{_DEFAULT}", self._rensa, matches)

    def _signatures(self, slots: int) -> list[MinHash | None]:
        """Return datasketch's signatures; None for a document that takes no part."""
        if slots not in self._signed:
            empty = MinHash(num_perm=slots)
            signed: list[MinHash | None] = []
            for shingles in self._shingles():
                signature = None
                if shingles is not None:
                    signature = empty.copy()
                    signature.update_batch([shingle.encode() for shingle in shingles])
                signed.append(signature)
            self._signed[slots] = signed
        return self._signed[slots]

    def _shingles(self) -> Iterator[list[str] | None]:
        normalise = Fingerprinter(self._settings.parameters()).normalise
        with gzip.open(self._path, "rt", encoding="utf-8") as lines:
            for line, kept in zip(lines, self._kept.tolist(), strict=True):
                text = normalise(json.loads(line)["text"]) if kept else ""
                yield sorted(self._cut(text)) if kept else None

    def _cut(self, text: str) -> set[str]:
        size = self._settings.similarity.shingle_size
        if self._settings.similarity.shingle == "char":
            return {text[at : at + size] for at in range(max(1, len(text) - size + 1))}
        words = text.split()
        return {" ".join(words[at : at + size]) for at in range(max(1, len(words) - size + 1))}


def _judged(
    name: str,
    parameters: str,
    signed: Sequence[Any],
    matches: Callable[[int, Any], list[int]],
) -> Judged:
    """Judge documents in order.

    matches: returns the matches of a document among the earlier ones, and inserts it.
    """
    duplicate = np.zeros(len(signed), np.bool_)
    later: list[int] = []
    earlier: list[int] = []
    for number, signature in enumerate(signed):
        if signature is None:
            continue
        found = matches(number, signature)
        duplicate[number] = bool(found)
        later += [number] * len(found)
        earlier += found
    pairs = np.array(later, np.int64), np.array(earlier, np.int64)
    return Judged(name, parameters, duplicate, *pairs)
