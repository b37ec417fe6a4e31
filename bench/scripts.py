"""Signatures by script and length, as a multiple of datasketch's rate, in CPU time on one core.

    python -m bench.scripts
    python -m bench.scripts Thai Greek

Both get the same documents in turns, as in `bench.fingerprint`: datasketch normalised texts and the
set of their shingles of 5 characters; neardup the raw text. Texts are words of letters that are
drawn from each script, frequent letters more often. Each cell is the median of the turns.
"""

from __future__ import annotations

import argparse
import statistics

import mmh3
import numpy as np
from datasketch import MinHash
from numpy.typing import NDArray

from bench.fingerprint import seconds
from bench.report import Target
from lsh import Fingerprinter, Parameters

LENGTHS = (20, 60, 200, 1_000, 2_000, 10_000, 100_000)  # characters
CHARACTERS = 1_500_000  # of a turn of neardup
SHARE = 20  # datasketch gets a part of them
DOCUMENTS = 6_000  # most of a turn
TURNS = 3
RATIO = 18.0  # the target

SCRIPTS = {
    "ASCII": "etaoinshrdlucmfwypvbgkETAOINSHRD",
    "Latin": "etaoinshrdlucmféèàçùâêîôûëïüöäßñåøæščžłńőě",
    "Greek": "αοιετσνηυρπκμλωςδγθχάέήίόύώβφξζψ",
    "Cyrillic": "оеаинтсрвлкмдпуяыьгзбчйхжшюцщэф",
    "Hebrew": "ויהלאתרבנשממעדקכחפטסגזצםןךץ",
    "Arabic": "ايلنمورتبعدسهفكحقجشصطخضذءثزغظةى",
    "Hindi": "रकनतसहमपलयवदबगजटशचडखथभधछठषफणघझािीुूेैोौं्",
    "Thai": "กนรอมลวทสยตงดบปคหพชขผจะาิีึืุูเแโใไ่้็์",
    "Chinese": "".join(map(chr, range(0x4E00, 0x5200))),
    "Japanese": "".join(map(chr, range(0x3041, 0x3094))) + "".join(map(chr, range(0x4E00, 0x4F00))),
    "Korean": "".join(map(chr, range(0xAC00, 0xB000))),
    "emoji": "".join(map(chr, range(0x1F600, 0x1F640))),
}


def main() -> None:
    """Print a row for each script."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("scripts", nargs="*", choices=[*SCRIPTS, []])
    _measure(parser.parse_args().scripts or list(SCRIPTS), LENGTHS)


def run(*, quick: bool) -> list[Target]:
    """Print all ratios, and return the target for the worst of them."""
    return _measure(
        ["ASCII", "Thai"] if quick else list(SCRIPTS), LENGTHS[:3] if quick else LENGTHS
    )


def _measure(scripts: list[str], lengths: tuple[int, ...]) -> list[Target]:
    print("| script | " + " | ".join(f"{length:,}" for length in lengths) + " |")
    print("|---|" + "--:|" * len(lengths))
    worst = float("inf")
    for script in scripts:
        ratios = [_ratio(_texts(SCRIPTS[script], length)) for length in lengths]
        print(f"| {script} | " + " | ".join(f"{ratio:.1f}" for ratio in ratios) + " |", flush=True)
        worst = min(worst, *ratios)
    return [
        Target(
            "signatures, neardup to datasketch, the worst script and length",
            worst,
            RATIO,
            at_least=True,
        )
    ]


def _texts(letters: str, length: int) -> list[str]:
    """Return different texts of so many characters."""
    random = np.random.default_rng(1)
    count = max(2, min(DOCUMENTS, CHARACTERS // length))
    drawn = (random.random((count, length)) ** 1.5 * len(letters)).astype(np.int64)
    table = np.array(list(letters))
    texts: NDArray[np.str_] = table[drawn]
    texts[random.random((count, length)) < 1 / 6] = " "
    return ["".join(row) for row in texts.tolist()]


def _ratio(texts: list[str]) -> float:
    fingerprinter = Fingerprinter(Parameters())
    some = texts[: max(1, len(texts) // SHARE)]
    normal = [fingerprinter.normalise(text) for text in some]
    empty = MinHash(num_perm=128, hashfunc=mmh3.mmh3_32_uintdigest)
    ratios = []
    for turn in range(TURNS + 1):
        theirs = len(some) / seconds(lambda: _sign_with_datasketch(normal, empty))
        ours = len(texts) / seconds(lambda: fingerprinter.fingerprint(texts))
        if turn:  # The first turn is a warm-up.
            ratios.append(ours / theirs)
    return statistics.median(ratios)


def _sign_with_datasketch(texts: list[str], empty: MinHash) -> None:
    """Sign normalised texts, each as its set of shingles."""
    for text in texts:
        shingles = {text[at : at + 5] for at in range(max(1, len(text) - 4))}
        signature = empty.copy()
        signature.update_batch([shingle.encode() for shingle in shingles])


if __name__ == "__main__":
    main()
