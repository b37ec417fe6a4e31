"""Candidates among the first 1,000 documents: 100 slots, 20 bands of 5, shingles of 5 characters.

    python -m bench.first_thousand                                # the samples that neardup ships
    NEARDUP_ACCURACY_DATA=FOLDER python -m bench.first_thousand   # each CORPUS/docs.jsonl.gz

An article that many copy from does this with stories of RCV1. It lists 111 candidates among 499,000
pairs, with all 27 pairs at J >= 0.9 among them. RCV1 can't be had freely; Reuters-21578 is of the
same kind. *expected* is the sum over all pairs of the probability to share a band. Two numbers are
the lowest and the highest of five seeds.
"""

from __future__ import annotations

import argparse
import gzip
import json
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bench.accuracy import corpora, named, seed_number
from lsh import Fingerprinter, Parameters, candidate_chance
from lsh.exact import SetsOfTexts, jaccard

_DOCUMENTS = 1_000
_SEEDS = 5
_HIGH = 0.9
_PARAMETERS = Parameters(slots=100, bands=20, rows=5, shingle_size=5)


def main() -> None:
    """Print a row for each corpus."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("corpora", nargs="*", help="names of corpora; default: all")
    given = parser.parse_args()
    print("| corpus | pairs | candidates | expected | at J ≥ 0.9 | candidates among these |")
    print("|---|--:|--:|--:|--:|--:|")
    for path in corpora(given.corpora):
        print(f"| {named(path)} | {' | '.join(_row(path))} |", flush=True)


def _row(path: Path) -> list[str]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        texts = [json.loads(line)["text"] for line in islice(lines, _DOCUMENTS)]
    sets = SetsOfTexts()
    sets.add(Fingerprinter(_PARAMETERS).shingles(texts))
    one, other = np.triu_indices(len(texts), 1)
    exact = jaccard(sets.finish(), one, other)
    high = exact >= _HIGH
    counts, found = [], []
    for number in range(_SEEDS):
        met = _met(texts, number)[one, other]
        counts.append(int(met.sum()))
        found.append(int((met & high).sum()))
    expected = float(candidate_chance(exact, _PARAMETERS.bands, _PARAMETERS.rows).sum())
    return [f"{len(one):,}", _range(counts), f"{expected:,.0f}", f"{high.sum():,}", _range(found)]


def _met(texts: list[str], number: int) -> NDArray[np.bool_]:
    """Return which of the texts share a band: bool[n, n]."""
    seed = seed_number(number)
    parameters = replace(_PARAMETERS, seed=seed.encode()) if seed else _PARAMETERS
    keys = Fingerprinter(parameters).fingerprint(texts).keys[:, :-1]
    met = np.zeros((len(texts), len(texts)), np.bool_)
    for column in keys.T:
        met |= column[:, None] == column
    return met


def _range(counts: list[int]) -> str:
    low, high = min(counts), max(counts)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


if __name__ == "__main__":
    main()
