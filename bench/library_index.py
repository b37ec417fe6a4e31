"""Put texts into one index in memory and query them, and print the costs as a line of JSON.

    python -m bench.library_index neardup|datasketch DOCUMENTS

A process of its own, so that its memory is that of the index. datasketch is used at its best:
normalised texts for which it doesn't pay, sets of 5-byte shingles, MurmurHash3 in C (SHA-1 by
default), `update_batch`, permutations drawn once, `LeanMinHash` to keep signatures in, `insert`
without its check, and neardup's bands and rows. Its candidates are verified by their signatures, as
neardup's are.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import ParamSpec, TypeVar

for _threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_threads] = "1"  # numpy reads them once, when it is imported.

import mmh3  # noqa: E402 -- after the variables above
from datasketch import LeanMinHash, MinHash, MinHashLSH  # noqa: E402 -- the same

from bench.corpus import texts  # noqa: E402 -- the same
from lsh import Fingerprinter, Fingerprints, Index, Parameters  # noqa: E402 -- the same

LENGTH = 1_000
ALONE = 1_000
_BATCH = 8_192
_THRESHOLD = 0.8
_BANDS_AND_ROWS = (18, 7)
_SLOTS = 128
_PAGE = resource.getpagesize()
_Given = ParamSpec("_Given")
_Result = TypeVar("_Result")


@dataclass(slots=True)
class Costs:
    """What all documents cost: CPU seconds, growth of memory in bytes, and the matches found.

    A document matches itself when it is queried. ``alone`` is for `ALONE` further documents that
    are signed, queried and inserted one at a time.
    """

    documents: int
    sign: float = 0.0
    insert: float = 0.0
    query: float = 0.0
    alone: float = 0.0
    grown: int = 0
    matches: int = 0

    def timed(
        self,
        step: str,
        work: Callable[_Given, _Result],
        *given: _Given.args,
        **named: _Given.kwargs,
    ) -> _Result:
        """Add the CPU time of some work to a step."""
        before = time.process_time()
        result = work(*given, **named)
        setattr(self, step, getattr(self, step) + time.process_time() - before)
        return result


def main() -> None:
    """Measure the index that the arguments name."""
    kind, count = sys.argv[1], int(sys.argv[2])
    documents = [text[:LENGTH] for text in texts(count + ALONE)]
    measure = {"neardup": _neardup, "datasketch": _datasketch}[kind]
    measured = measure(documents[:count], documents[count:])
    print(json.dumps(asdict(measured)))


def _neardup(documents: list[str], others: list[str]) -> Costs:
    costs, index = Costs(len(documents)), Index()
    fingerprinter = Fingerprinter(index.parameters)
    fingerprinter.fingerprint(documents[:100])  # Buffers and tables are made once.
    empty = _memory()

    def signed(low: int) -> Fingerprints:
        return fingerprinter.fingerprint(documents[low : low + _BATCH])

    for low in range(0, len(documents), _BATCH):
        prints = costs.timed("sign", signed, low)
        ids = range(low, low + len(prints.blank))
        costs.timed("insert", index.add_fingerprints, ids, prints)
    del prints
    costs.grown = _memory() - empty
    for low in range(0, len(documents), _BATCH):
        prints = signed(low)
        found = costs.timed("query", index.query_fingerprints, prints)
        costs.matches += sum(map(len, found))
    for number, text in enumerate(others, len(documents)):
        costs.timed("alone", index.add, number, text)
    return costs


def _datasketch(documents: list[str], others: list[str]) -> Costs:
    costs = Costs(len(documents))
    empty = MinHash(num_perm=_SLOTS, hashfunc=mmh3.mmh3_32_uintdigest)
    normalise = Fingerprinter(Parameters()).normalise
    documents, others = ([normalise(text) for text in some] for some in (documents, others))
    index = MinHashLSH(num_perm=_SLOTS, params=_BANDS_AND_ROWS)
    kept: list[LeanMinHash] = []
    before = _memory()

    def sign(text: str) -> LeanMinHash:
        data, signature = text.encode(), empty.copy()
        signature.update_batch({data[at : at + 5] for at in range(max(1, len(data) - 4))})
        return LeanMinHash(signature)

    def sign_all(texts: list[str]) -> list[LeanMinHash]:
        return [sign(text) for text in texts]

    def insert(first: int) -> None:
        for number, signature in enumerate(kept[first:], first):
            index.insert(number, signature, check_duplication=False)

    def query(signatures: list[LeanMinHash]) -> int:
        return sum(
            signature.jaccard(kept[other]) >= _THRESHOLD
            for signature in signatures
            for other in index.query(signature)
        )

    for low in range(0, len(documents), _BATCH):
        some = documents[low : low + _BATCH]
        kept += costs.timed("sign", sign_all, some)
        costs.timed("insert", insert, low)
    costs.grown = _memory() - before
    for low in range(0, len(documents), _BATCH):
        part = kept[low : low + _BATCH]
        costs.matches += costs.timed("query", query, part)
    for number, text in enumerate(others, len(documents)):
        kept += costs.timed("alone", sign_all, [text])
        costs.timed("alone", query, kept[number:])
        costs.timed("alone", insert, number)
    return costs


def _memory() -> int:
    gc.collect()
    try:
        return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * _PAGE
    except OSError:  # not Linux: the peak
        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


if __name__ == "__main__":
    main()
