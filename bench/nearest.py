"""Rank the documents of a corpus by their similarity to one, by sketches and in full.

    python -m bench.nearest                                # the samples that neardup ships
    NEARDUP_ACCURACY_DATA=FOLDER python -m bench.nearest   # each CORPUS/docs.jsonl.gz in FOLDER

Some documents of each corpus are queries; they are not neighbours of their own. A neighbour counts
as right if its exact similarity is at least that of the k-th of all documents. *found* is the
share of right ones among the k that `lsh.Forest` returns, *by a look at all* among the k with the
best estimates of all documents, and *of 4 k* among the k that are best in full of the 4 k that it
returns. *within .05* counts neighbours that are at most .05 less similar than the k-th. *compared*
is the share of documents whose sketches were compared for k.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bench.corpora import corpora, name_of, texts_of
from lsh import Fingerprinter, Forest, Parameters
from lsh.exact import ShingleSets, jaccard, shingle_sets

_NEIGHBOURS = (1, 10)
_SLOTS = (128, 256)
_CLOSE = 0.05


class _Score(NamedTuple):
    found: float
    close: float
    by_all: float
    ranked_again: float
    compared: float
    farthest: float


def main() -> None:
    """Print a table of all corpora."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=_Plain)
    parser.add_argument("corpora", nargs="*", help="names of corpora; default: all")
    parser.add_argument("--queries", type=int, default=100)
    given = parser.parse_args()
    print(
        "| corpus | documents | k | similarity of the k-th | slots | found, % | within .05, % |"
        " by a look at all, % | of 4 k, % | compared, % |"
    )
    print("|---|" + "--:|" * 9)
    for path in corpora(given.corpora):
        for line in _lines(path, given.queries):
            print(line, flush=True)


_Plain = argparse.RawDescriptionHelpFormatter


def _lines(path: Path, queries: int) -> Iterator[str]:
    texts = texts_of(path)
    shingles = Fingerprinter(Parameters()).shingles(texts)
    sets = shingle_sets(shingles.hashes, shingles.starts)
    filled = np.flatnonzero(sets.sizes)
    asked = filled[:: max(1, len(filled) // queries)][:queries]
    exact = _exact(sets, asked)
    for slots in _SLOTS:
        prints = Fingerprinter(Parameters(slots=slots)).fingerprint(texts)
        trees = Forest(slots)
        trees.add(prints.sketches)
        for k in _NEIGHBOURS:
            one = _score(trees, asked, exact, k)
            yield (
                f"| {name_of(path)} | {len(texts):,} | {k} | {one.farthest:.2f} | {slots}"
                f" | {100 * one.found:.1f} | {100 * one.close:.1f} | {100 * one.by_all:.1f}"
                f" | {100 * one.ranked_again:.1f} | {100 * one.compared:.1f} |"
            )


def _exact(sets: ShingleSets, asked: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return float64[queries, n], the similarity of each query with each document, not itself."""
    count = len(sets.sizes)
    rows = [jaccard(sets, np.full(count, row), np.arange(count)) for row in asked.tolist()]
    exact = np.stack(rows)
    exact[np.arange(len(asked)), asked] = -1.0
    return exact


def _score(trees: Forest, asked: NDArray[np.int64], exact: NDArray[np.float64], k: int) -> _Score:
    scores = []
    for row, similarity in zip(asked.tolist(), exact, strict=True):
        best = np.sort(similarity)[-k]
        # One more, since the query is among the documents.
        sketch = trees.sketches[row]
        ranked = trees.nearest(sketch, k + 1)
        many = trees.nearest(sketch, 4 * k + 1)
        every = trees.nearest(sketch, k + 1, recall=1.0)
        one, again, other = (
            similarity[given.rows[given.rows != row]] for given in (ranked, many, every)
        )
        scores.append(
            _Score(
                float((one[:k] >= best).mean()),
                float((one[:k] >= best - _CLOSE).mean()),
                float((other[:k] >= best).mean()),
                float((np.sort(again)[-k:] >= best).mean()),
                ranked.compared / len(trees),
                float(best),
            )
        )
    return _Score(*np.mean(scores, axis=0).tolist())


if __name__ == "__main__":
    main()
