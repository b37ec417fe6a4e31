"""Find the documents that hold a quote, by sketches and in full.

    python -m bench.containment                                # the samples that neardup ships
    NEARDUP_ACCURACY_DATA=FOLDER python -m bench.containment   # each CORPUS/docs.jsonl.gz in FOLDER

A quote is a part of a document, 10 % to 100 % of its words but at least five, and behind it words
of another document, up to a fifth as many. Shingles are five characters. *holding* are the
documents with an exact containment of t or more, and *found* is the share of them that a query for
t returns, with no standard errors of slack, two, or three. *right* is the share of returned
documents that are holding; in an exact index, it is all of them. *error / theory* is the root mean
square of estimate minus exact, in standard errors for independent slots, of all documents that
are holding.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bench.corpora import corpora, name_of, texts_of
from lsh import (
    ContainmentIndex,
    Fingerprinter,
    Parameters,
    Sized,
    containment,
    containment_error,
    sized,
)
from lsh.exact import jaccard, shingle_sets

_THRESHOLDS = (0.5, 0.9)
_SLOTS = (128, 256)
_SLACKS = (0.0, 2.0, 3.0)
_LEAST = 5  # words of a quote


def main() -> None:
    """Print a table of all corpora."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=_Plain)
    parser.add_argument("corpora", nargs="*", help="names of corpora; default: all")
    parser.add_argument("--queries", type=int, default=100)
    given = parser.parse_args()
    slacks = " | ".join(f"slack {slack:g}: found, % | right, %" for slack in _SLACKS)
    print(f"| corpus | slots | t | holding | {slacks} | error / theory |")
    print("|---|" + "--:|" * (4 + 2 * len(_SLACKS)))
    for path in corpora(given.corpora):
        for line in _lines(path, given.queries):
            print(line, flush=True)


_Plain = argparse.RawDescriptionHelpFormatter


def _lines(path: Path, queries: int) -> Iterator[str]:
    fingerprinter = Fingerprinter(Parameters())
    texts = [text for text in texts_of(path) if fingerprinter.normalise(text)]
    quotes = _quotes(texts, queries)
    exact = _exact(texts, quotes)
    for slots in _SLOTS:
        parameters = Parameters(slots=slots)
        index = ContainmentIndex(parameters)
        documents = sized(Fingerprinter(parameters), texts)
        index.add_sketches(range(len(texts)), *documents)
        asked = sized(Fingerprinter(parameters), quotes)
        for threshold in _THRESHOLDS:
            holding = exact >= threshold
            columns = [f"{int(holding.sum()):,}"]
            for slack in _SLACKS:
                returned = np.zeros_like(holding)
                for quote, (sketch, size) in enumerate(zip(*asked, strict=True)):
                    found = index.query_sketch(sketch, int(size), threshold, slack=slack)
                    returned[quote, [int(str(one.id)) for one in found]] = True
                both = int((holding & returned).sum())
                columns += [_share(both, int(holding.sum())), _share(both, int(returned.sum()))]
            columns.append(f"{_spread(documents, asked, exact, threshold):.2f}")
            yield f"| {name_of(path)} | {slots} | {threshold:g} | {' | '.join(columns)} |"


def _spread(documents: Sized, asked: Sized, exact: NDArray[np.float64], threshold: float) -> float:
    """Return the root mean square of errors, in standard errors."""
    scores = []
    for sketch, size, truth in zip(*asked, exact, strict=True):
        rows = np.flatnonzero((truth >= threshold) & (truth < 1))
        sizes = documents.sizes[rows]
        estimates = containment(sketch, int(size), documents.sketches[rows], sizes)
        errors = containment_error(truth[rows], sizes / size, len(sketch))
        scores.append((estimates - truth[rows]) / errors)
    return float(np.sqrt((np.concatenate(scores) ** 2).mean()))


def _share(part: int, whole: int) -> str:
    return f"{100 * part / max(whole, 1):.1f}"


def _quotes(texts: list[str], count: int) -> list[str]:
    """Return parts of documents, each with a few words of another one."""
    rng = np.random.default_rng(1)
    words = [text.split() for text in texts]
    quotes: list[str] = []
    while len(quotes) < count:
        source, other = (words[int(rng.integers(len(words)))] for _ in range(2))
        length = int(len(source) * rng.uniform(0.1, 1.0))
        begin = int(rng.integers(len(source) - length + 1))
        foreign = other[: int(length * rng.uniform(0, 0.2))]
        if length >= _LEAST:
            quotes.append(" ".join(source[begin : begin + length] + foreign))
    return quotes


def _exact(texts: list[str], quotes: list[str]) -> NDArray[np.float64]:
    """Return float64[quotes, documents], how much of each quote is in each document."""
    shingles = Fingerprinter(Parameters()).shingles([*texts, *quotes])
    sets = shingle_sets(shingles.hashes, shingles.starts)
    documents, sizes = np.arange(len(texts)), sets.sizes
    rows = []
    for quote in range(len(texts), len(texts) + len(quotes)):
        alike = jaccard(sets, np.full(len(texts), quote), documents)
        common = alike / (1 + alike) * (sizes[quote] + sizes[: len(texts)])
        rows.append(np.rint(common) / sizes[quote])
    return np.stack(rows)


if __name__ == "__main__":
    main()
