"""A hand-written near-duplicate filter on datasketch, tuned, with exactly-once output.

    python -m bench.datasketch_worker BOOTSTRAP GROUP SOURCE UNIQUE DUPLICATE

MinHash with MurmurHash3 in C (SHA-1 by default), a set of 5-byte shingles of the normalised
text, `update_batch`, permutations drawn once; `MinHashLSH` in memory with our bands and rows;
candidates verified by their signatures. The index is in memory, so there is only one
consumer: it can't use a second core, and a restart begins with an empty index.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import mmh3
import msgspec
from confluent_kafka import Message
from datasketch import MinHash, MinHashLSH

from bench.exactly_once import Output, copy
from lsh import Fingerprinter, Parameters

PERMUTATIONS = 128
THRESHOLD = 0.8
BANDS_AND_ROWS = (18, 7)


class Payload(msgspec.Struct):
    """The fields of a document that the filter reads."""

    id: str
    text: str


class Filter:
    """The index, and the transformation."""

    def __init__(self, unique: str, duplicate: str) -> None:
        """Start with an empty index."""
        self._unique = Output(unique, [("verdict", b"unique")])
        self._duplicate = duplicate
        self._decode = msgspec.json.Decoder(Payload).decode
        self._normalise = Fingerprinter(Parameters()).normalise
        self._empty = MinHash(num_perm=PERMUTATIONS, hashfunc=mmh3.mmh3_32_uintdigest)
        self._index = MinHashLSH(num_perm=PERMUTATIONS, params=BANDS_AND_ROWS)
        self._signatures: dict[str, MinHash] = {}

    def judge(self, messages: list[Message]) -> Iterator[Output]:
        """Query, verify, insert, one document after the other."""
        for message in messages:
            payload = self._decode(message.value() or b"")
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
            if matches:
                listed = msgspec.json.encode(matches)
                yield Output(self._duplicate, [("verdict", b"duplicate"), ("duplicate-of", listed)])
            else:
                yield self._unique


def main() -> None:
    """Judge documents until SIGTERM."""
    bootstrap, group, source, unique, duplicate = sys.argv[1:]
    judging = Filter(unique, duplicate)
    # Judges the whole batch before its transaction begins, because the transaction has a timeout.
    copy(bootstrap, group, source, lambda messages: list(judging.judge(messages)))


if __name__ == "__main__":
    main()
