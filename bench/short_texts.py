"""What one edit does to the similarity of short texts, and what a threshold finds of it.

    python -m bench.short_texts                                # the samples that neardup ships
    NEARDUP_ACCURACY_DATA=FOLDER python -m bench.short_texts   # each CORPUS/docs.jsonl.gz in FOLDER

Texts are whole words from the beginning of documents, at most so many characters. An edit changes
one character, or one word, at random. The figures are the median Jaccard similarity of text and
edited text, by the size of a shingle, and the share of edited texts that an index finds at a
threshold: they share a band, and the estimate reaches it.

The last table is about shingles of another size below a length, the border. Texts on its two
sides would have no shingle in common. It counts the pairs of documents, no copies, that have a
similarity of 0.5 or more with three characters, and a text below the border; *torn* are those
whose other text is above it.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from bench.corpora import corpora, texts_of
from lsh import Fingerprinter, Parameters, exact_jaccard, pairwise_similarity
from lsh.exact import join, shingle_sets

_LENGTHS = (5, 10, 20, 40, 60, 120, 280)
_SIZES = (2, 3, 4, 5)
_THRESHOLDS = (0.5, 0.8)
_BORDERS = (20, 40, 60)
_ALIKE = 0.5
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def main() -> None:
    """Print a table for each kind of edit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=_Plain)
    parser.add_argument("--texts", type=int, default=500, help="of each length")
    given = parser.parse_args()
    documents = [text for path in corpora() for text in texts_of(path)]
    for what, edit in (("one character changed", _character), ("one word changed", _word)):
        print(f"\n{what}\n")
        sizes = " | ".join(f"size {size}" for size in _SIZES)
        found = " | ".join(f"size {size}, t = {t:g}" for size in (3, 5) for t in _THRESHOLDS)
        print(f"| characters | {sizes} | found, %: {found} |")
        print("|" + "--:|" * (1 + len(_SIZES) + 2 * len(_THRESHOLDS)))
        for length in _LENGTHS:
            pairs = _pairs(documents, length, given.texts, edit)
            middle = [f"{_median(pairs, size):.2f}" for size in _SIZES]
            shares = [f"{100 * _found(pairs, size, t):.0f}" for size in (3, 5) for t in _THRESHOLDS]
            print(f"| {length} | {' | '.join([*middle, *shares])} |", flush=True)
    print("\n| border | pairs | torn, % |\n|--:|--:|--:|")
    torn = np.concatenate([_lengths(texts_of(path)) for path in corpora()])
    for border in _BORDERS:
        below = torn < border
        count = int(below.any(axis=1).sum())
        share = 100 * int((below.sum(axis=1) == 1).sum()) / max(count, 1)
        print(f"| {border} | {count:,} | {share:.0f} |")


_Plain = argparse.RawDescriptionHelpFormatter


def _pairs(
    documents: list[str], length: int, count: int, edit: Callable[[str, random.Random], str]
) -> list[tuple[str, str]]:
    """Return beginnings of documents that are nearly so long, and the same, edited."""
    chance = random.Random(length)
    pairs: list[tuple[str, str]] = []
    while len(pairs) < count:
        text = " ".join(chance.choice(documents).lower().split())
        text = text[: length + 1].rpartition(" ")[0]
        if length * 0.8 <= len(text) <= length:
            pairs.append((text, edit(text, chance)))
    return pairs


def _character(text: str, chance: random.Random) -> str:
    places = [at for at, char in enumerate(text) if char != " "]
    at = chance.choice(places)
    letter = chance.choice([letter for letter in _LETTERS if letter != text[at]])
    return text[:at] + letter + text[at + 1 :]


def _word(text: str, chance: random.Random) -> str:
    words = text.split()
    at = chance.randrange(len(words))
    # As long as it was, and without a letter of it.
    letters = [letter for letter in _LETTERS if letter not in words[at]] or list(_LETTERS)
    words[at] = "".join(chance.choices(letters, k=len(words[at])))
    return " ".join(words)


def _median(pairs: list[tuple[str, str]], size: int) -> float:
    parameters = Parameters(shingle_size=size)
    return float(np.median([exact_jaccard(one, other, parameters) for one, other in pairs]))


def _found(pairs: list[tuple[str, str]], size: int, threshold: float) -> float:
    fingerprinter = Fingerprinter(Parameters.for_threshold(threshold, shingle_size=size))
    one, other = (fingerprinter.fingerprint(texts) for texts in zip(*pairs, strict=True))
    met = (one.keys == other.keys).any(axis=1)
    return float((met & (pairwise_similarity(one.sketches, other.sketches) >= threshold)).mean())


def _lengths(texts: list[str]) -> NDArray[np.int64]:
    """Return int64[m, 2], the lengths of the normalised texts of each similar pair."""
    fingerprinter = Fingerprinter(Parameters(shingle_size=3))
    shingles = fingerprinter.shingles(texts)
    lengths = np.array([len(fingerprinter.normalise(text)) for text in texts], dtype=np.int64)
    found = [
        np.column_stack((lengths[block.left], lengths[block.right]))
        for block in join(shingle_sets(shingles.hashes, shingles.starts), _ALIKE)
    ]
    return np.concatenate(found)


if __name__ == "__main__":
    main()
