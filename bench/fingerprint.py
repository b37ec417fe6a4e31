"""Fingerprints per second on one core, compared with tuned datasketch.

    python -m bench.fingerprint

Both get the same documents of 2,000 characters, in turns, on one core; the measure is CPU time.
datasketch gets normalised texts, and only its signatures are timed: a set of 5-byte shingles,
MurmurHash3 in C as the hash function (SHA-1 by default), `update_batch`, and permutations drawn
once. Ours starts from the raw text and ends with band keys, sketches and the key of the exact
text.

NEARDUP_BENCH_DATA may name a folder of `*.jsonl.gz` files whose objects have a `text`; the
texts are joined and cut. Without it, the text is generated from a word list.
"""

from __future__ import annotations

import gzip
import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

for _threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_threads] = "1"  # numpy reads them once, when it is imported.

import mmh3  # noqa: E402 -- after the variables above
from datasketch import MinHash  # noqa: E402 -- after the variables above

from bench.report import Figures, Target, show  # noqa: E402 -- after the variables above
from lsh import Fingerprinter, Parameters  # noqa: E402 -- after the variables above

LENGTH = 2_000
OURS = 6_000  # documents a turn
THEIRS = 300
TURNS = 9
RATIO = 100.0  # the target
FREQUENT_FIRST = (
    "the of and to in a is that it was for on are as with his they at be this from have or by one "
    "had not but what all were when we there can an your which their said if do will each about "
    "how up out them then she many some so these would other into has more her two like him see "
    "time could no make than first been its who now people my made over did down only way find "
    "use may water long little very after words called just where most know market company "
    "government president million dollars quarter shares interest report trade agreement "
    "production increase officials foreign statement results exchange expected growth annual"
)
WORDS = FREQUENT_FIRST.split()


def documents(count: int) -> list[str]:
    """Return `count` texts of `LENGTH` characters; texts repeat if there are too few."""
    folder = os.environ.get("NEARDUP_BENCH_DATA")
    pieces = _read(Path(folder)) if folder else _synthetic()
    text, size = [], 0
    for piece in pieces:
        text.append(piece)
        size += len(piece) + 1
        if size > count * LENGTH:
            break
    joined = " ".join(text)
    cut = [joined[at : at + LENGTH] for at in range(0, len(joined) - LENGTH, LENGTH)]
    if not cut:
        message = f"NEARDUP_BENCH_DATA: *.jsonl.gz in {folder} have under {LENGTH} characters"
        raise SystemExit(message)
    return [cut[at % len(cut)] for at in range(count)]


def _read(folder: Path) -> Iterator[str]:
    for path in sorted(folder.glob("**/*.jsonl.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for line in lines:
                yield json.loads(line)["text"]


def _synthetic() -> Iterator[str]:
    """Yield sentences of random words, frequent ones more often, from a fixed generator."""
    state = 1
    while True:
        sentence = []
        for _ in range(12):
            state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
            share = (state >> 32) / 2**32
            sentence.append(WORDS[int(share**2 * len(WORDS))])
        yield " ".join(sentence).capitalize() + "."


def sign_with_datasketch(texts: list[str], empty: MinHash) -> None:
    """Sign normalised texts, each as its set of shingles."""
    for text in texts:
        data = text.encode()
        signature = empty.copy()
        signature.update_batch({data[at : at + 5] for at in range(len(data) - 4)})


def seconds(work: Callable[[], object]) -> float:
    """Return the CPU time of `work` in seconds, which other programs disturb little."""
    start = time.process_time()
    work()
    return time.process_time() - start


def run(*, quick: bool = False) -> list[Target]:
    """Measure in turns, print the medians, and return the target."""
    turns = 3 if quick else TURNS
    fingerprinter = Fingerprinter(Parameters())
    raw = documents(OURS)
    normal = [fingerprinter.normalise(text) for text in raw[:THEIRS]]
    empty = MinHash(num_perm=128, hashfunc=mmh3.mmh3_32_uintdigest)
    ours, theirs = [], []
    for turn in range(turns + 1):
        a = len(normal) / seconds(lambda: sign_with_datasketch(normal, empty))
        b = len(raw) / seconds(lambda: fingerprinter.fingerprint(raw))
        if turn:  # The first turn is a warm-up.
            theirs.append(a)
            ours.append(b)
    ratios = [b / a for a, b in zip(theirs, ours, strict=True)]
    source = "NEARDUP_BENCH_DATA" if os.environ.get("NEARDUP_BENCH_DATA") else "synthetic"
    ascii_share = sum(text.isascii() for text in raw) / len(raw)
    ratio = Figures("ratio, turn by turn", ratios, ".1f")
    show(
        f"Documents of {LENGTH:,} characters ({source}, {ascii_share:.0%} ASCII), one core,"
        " 128 slots, 5-character shingles",
        [Figures("datasketch, documents/s", theirs), Figures("neardup, documents/s", ours), ratio],
    )
    return [
        Target("signatures, neardup to datasketch", ratio.median, RATIO, at_least=True, form=".1f")
    ]


if __name__ == "__main__":
    run()
