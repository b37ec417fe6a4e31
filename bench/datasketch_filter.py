"""A hand-written near-duplicate filter on datasketch, tuned; as a script, of a file.

    python -m bench.datasketch_filter DOCUMENTS VERDICTS

MinHash with MurmurHash3 in C (SHA-1 by default), a set of 5-byte shingles of the normalised
text, `update_batch`, permutations drawn once; `MinHashLSH` in memory with our bands and rows;
candidates verified by their signatures. The script takes a file of JSON lines with ``id`` and
``text``, and writes a line with a verdict for each.
"""

from __future__ import annotations

import sys
from pathlib import Path

import mmh3
import msgspec
from datasketch import MinHash, MinHashLSH

from lsh import Fingerprinter, Parameters

PERMUTATIONS = 128
THRESHOLD = 0.8
BANDS_AND_ROWS = (18, 7)


class Payload(msgspec.Struct):
    """The fields of a document that the filter reads."""

    id: str
    text: str


class Filter:
    """An index in memory."""

    def __init__(self) -> None:
        """Start with an empty index."""
        self._normalise = Fingerprinter(Parameters()).normalise
        self._empty = MinHash(num_perm=PERMUTATIONS, hashfunc=mmh3.mmh3_32_uintdigest)
        self._index = MinHashLSH(num_perm=PERMUTATIONS, params=BANDS_AND_ROWS)
        self._signatures: dict[str, MinHash] = {}

    def matches(self, payload: Payload) -> list[tuple[str, float]]:
        """Query, verify, insert; return the ids of what matches, with the similarities."""
        data = self._normalise(payload.text).encode()
        signature = self._empty.copy()
        signature.update_batch({data[at : at + 5] for at in range(max(1, len(data) - 4))})
        matches = [
            (key, similarity)
            for key in self._index.query(signature)
            if (similarity := signature.jaccard(self._signatures[key])) >= THRESHOLD
        ]
        self._index.insert(payload.id, signature, check_duplication=False)
        self._signatures[payload.id] = signature
        return matches


def main() -> None:
    """Judge the documents of a file."""
    documents, verdicts = map(Path, sys.argv[1:])
    judging, decode = Filter(), msgspec.json.Decoder(Payload).decode
    with documents.open("rb") as lines, verdicts.open("wb") as out:
        for line in lines:
            payload = decode(line)
            matches = judging.matches(payload)
            verdict = "duplicate" if matches else "unique"
            out.write(msgspec.json.encode({"id": payload.id, "verdict": verdict, "of": matches}))
            out.write(b"\n")


if __name__ == "__main__":
    main()
