"""Excerpts that the filter finds by containment, and what it costs to look for them.

    python -m bench.excerpts                                # the samples that neardup ships
    NEARDUP_ACCURACY_DATA=FOLDER python -m bench.excerpts   # each CORPUS/docs.jsonl.gz in FOLDER

The filter judges a corpus, then each excerpt as if it came alone. An excerpt is a part of a
document in one piece, of half of its characters or more. It is found if it matches anything.

*ratio* is ``similarity.containment_ratio``; without one, containment is off. *bytes* are those of a
document in a frame of the fingerprints, without its id. *compared* is the number of comparisons
for a document of the corpus. *fingerprint* and *index* are CPU time for a document, in µs. *alone*
are the matches in the corpus that are published for their containment alone, for 1,000 documents.
*wrong* is the share of them with an exact containment more than 0.1 below the least one, and
*below* the share below it at all.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from itertools import pairwise
from time import process_time
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bench.corpora import corpora, name_of, texts_of
from lsh import Fingerprinter, Fingerprints, Parameters
from lsh._core import MemoryIndex
from lsh.exact import ShingleSets, jaccard, shingle_sets
from lsh.index import BucketRules
from worker.wire.fingerprints import document_bytes

_RATIOS = (None, 1.0, 1.25, 1.5, 2.0, 3.0)
_EDGES = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
_LEAST = 200  # characters of a document that is cut
_WARM = 100  # documents that are fingerprinted before time is taken
_WRONG = 0.1


class _Judged(NamedTuple):
    """A corpus that was judged, and what that took.

    Its m matches: later, earlier: int64[m], the rows of both documents. alike: float64[m].
    """

    corpus: MemoryIndex
    later: NDArray[np.int64]
    earlier: NDArray[np.int64]
    alike: NDArray[np.float64]
    seconds: float


def main() -> None:
    """Print a table of all corpora."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("corpora", nargs="*", help="names of corpora; default: all")
    parser.add_argument("--excerpts", type=int, default=1_000)
    parser.add_argument("--containment", type=float, default=0.9)
    parser.add_argument("--threshold", type=float, default=0.8)
    given = parser.parse_args()
    parts = " | ".join(f"{low:.0%} to {high:.0%} kept" for low, high in pairwise(_EDGES))
    print(
        f"| corpus | ratio | bands | slots | bytes | compared | fingerprint | index | {parts}"
        " | alone | wrong | below |"
    )
    print("|---|" + "--:|" * (10 + len(_EDGES)))
    for path in corpora(given.corpora):
        texts = [text for text in texts_of(path) if Fingerprinter(Parameters()).normalise(text)]
        excerpts, kept = _excerpts(texts, given.excerpts)
        sets = _sets(texts)
        for ratio in _RATIOS:
            options = {} if ratio is None else {"containment": given.containment}
            parameters = Parameters.for_threshold(
                given.threshold, containment_ratio=ratio or 1.0, **options
            )
            columns = _line(parameters, texts, excerpts, kept, sets)
            shown = "off" if ratio is None else f"{ratio:g}"
            print(f"| {name_of(path)} | {shown} | {' | '.join(columns)} |", flush=True)


def _line(
    parameters: Parameters,
    texts: list[str],
    excerpts: list[str],
    kept: NDArray[np.float64],
    sets: ShingleSets,
) -> Iterator[str]:
    fingerprinter = Fingerprinter(parameters)
    fingerprinter.fingerprint(texts[:_WARM])
    began = process_time()
    prints = fingerprinter.fingerprint(texts)
    seconds = process_time() - began
    rules = BucketRules(parameters.threshold, containment=parameters.containment)
    judged = _judged(prints, rules)
    count = len(texts)
    yield f"{parameters.bands}x{parameters.rows}"
    yield str(parameters.slots)
    yield str(document_bytes(parameters.slots))
    yield f"{judged.corpus.compared / count:.2f}"
    yield f"{1e6 * seconds / count:.0f}"
    yield f"{1e6 * judged.seconds / count:.0f}"
    found = _found(judged.corpus, fingerprinter.fingerprint(excerpts))
    for low, high in pairwise(_EDGES):
        part = (kept >= low) & (kept < high)
        yield f"{100 * found[part].mean():.1f}"
    yield from _alone(judged, parameters, sets, count)


def _alone(judged: _Judged, parameters: Parameters, sets: ShingleSets, count: int) -> Iterator[str]:
    """Yield how many matches are by containment alone, and the shares that should not be."""
    alone = judged.alike < parameters.threshold
    later, earlier = judged.later[alone], judged.earlier[alone]
    alike, sizes = jaccard(sets, later, earlier), sets.sizes
    common = np.rint(alike / (1 + alike) * (sizes[later] + sizes[earlier]))
    exact = common / np.maximum(sizes[later], 1)
    least = parameters.containment or 0.0
    yield f"{1_000 * len(later) / count:.1f}"
    for bound in (least - _WRONG, least):
        yield f"{100 * (exact < bound - 1e-9).mean():.1f}" if len(later) else "-"


def _judged(prints: Fingerprints, rules: BucketRules) -> _Judged:
    """Judge documents, none of which is blank, in an empty index."""
    index = MemoryIndex(rules, prints.keys.shape[1], prints.sketches.shape[1])
    began = process_time()
    later, earlier, alike, _ = index.judge(
        prints.keys, prints.sketches, prints.shingle_counts, prints.blank
    )
    return _Judged(index, later, earlier, alike, process_time() - began)


def _found(index: MemoryIndex, excerpts: Fingerprints) -> NDArray[np.bool_]:
    """Return which excerpts match something: bool[n]."""
    found = np.zeros(len(excerpts.blank), np.bool_)
    found[index.matches(excerpts.keys, excerpts.sketches, excerpts.shingle_counts)[0]] = True
    return found


def _excerpts(texts: list[str], count: int) -> tuple[list[str], NDArray[np.float64]]:
    """Return parts of documents, and which share of its document each is: float64[n]."""
    rng = np.random.default_rng(1)
    long = [text for text in texts if len(text) >= _LEAST]
    parts, kept = [], rng.uniform(_EDGES[0], _EDGES[-1], count)
    for share in kept.tolist():
        text = long[int(rng.integers(len(long)))]
        size = int(share * len(text))
        begin = int(rng.integers(len(text) - size + 1))
        parts.append(text[begin : begin + size])
    return parts, kept


def _sets(texts: list[str]) -> ShingleSets:
    shingles = Fingerprinter(Parameters()).shingles(texts)
    return shingle_sets(shingles.hashes, shingles.starts)


if __name__ == "__main__":
    main()
