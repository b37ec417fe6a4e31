"""What the fuzzer of signing found interesting has the oracle's fingerprints.

`core/fuzz/src/sign.rs` reads the same bytes in the same way. What was found on this machine,
in `core/fuzz/corpus`, is replayed along with the seeds that are committed.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from random import Random
from typing import Final
from unicodedata import category

import pytest

from lsh import Parameters
from tests.oracle.subjects import SIGNERS, NaiveSigner, Signer
from tests.support.corpus import examples

FUZZ: Final = Path(__file__).resolve().parents[2] / "core" / "fuzz"
SEEDS: Final = sorted((FUZZ / "seeds" / "sign").iterdir())
FOUND: Final = sorted((FUZZ / "corpus" / "sign").glob("*"))
SWITCHES: Final = (
    *("nfkc", "casefold", "collapse_whitespace", "drop_invisible", "drop_overlays"),
    *("fold_confusables", "fold_digits", "fold_accents", "fold_turkish_i", "drop_symbols"),
    *("join_letters", "strip_html", "reduce_urls"),
)
SETS: Final = (0, 0x1F, 0x1BFF, 0x1FFF)
FLIPS: Final = 14
LISTED: Final = frozenset(
    ["share this", "\u00e9t\u00e9 \u2014 5", "\u03b9", "- -", "\ufb01 \u1fb3", "<b>x</b>"]
)
MOST_TEXTS: Final = 8
MOST_BYTES: Final = 1 << 12


def parameters(data: bytes) -> Parameters:
    """Return how texts are signed. Words need white space, so their letters are not joined."""
    which, others, size, slots = data[:4].ljust(4, b"\0")
    bits = SETS[which % 4] ^ 1 << which // 8 % FLIPS
    switches = {name: bool(bits >> at & 1) for at, name in enumerate(SWITCHES)}
    words = others & 1 == 1
    if words:
        switches["join_letters"] = False
    return Parameters(
        **switches,  # type: ignore[arg-type] # only bool
        shingle="word" if words else "char",
        shingle_size=1 + size % 64,
        slots=1 + slots,
        bands=1,
        rows=1,
        containment=0.8 if others & 2 else None,
        boilerplate=LISTED if which // 4 % 2 else frozenset(),
    )


def texts(data: bytes) -> list[str]:
    """Return the texts, without the characters that only the core's version of Unicode knows."""

    def text(encoded: bytes) -> str:
        try:
            decoded = encoded.decode("utf-8", "surrogatepass")
        except UnicodeDecodeError:
            decoded = encoded.decode("utf-8", "replace")
        return "".join(char for char in decoded if category(char) != "Cn")

    return [text(one) for one in data[4 : 4 + MOST_BYTES].split(b"\0", MOST_TEXTS - 1)]


def changed(data: bytes, random: Random) -> bytes:
    """Return a seed with some bytes replaced, left out, or repeated."""
    some = bytearray(data)
    for _ in range(random.randrange(1, 6)):
        at = random.randrange(len(some) + 1)
        match random.randrange(3):
            case 0:
                some[at : at + 1] = random.randbytes(1)
            case 1:
                del some[at : at + random.randrange(4)]
            case _:
                some[at:at] = some[at : at + random.randrange(12)]
    return bytes(some)


@cache
def signers(given: Parameters) -> list[tuple[Signer, NaiveSigner]]:
    """Return each signer with the oracle. It takes time to make their tables."""
    return [(subject(given), NaiveSigner(given)) for subject in SIGNERS]


def compare(data: bytes) -> None:
    for signer, naive in signers(parameters(data)):
        some = texts(data)
        assert list(map(signer.normalise, some)) == list(map(naive.normalise, some)), data
        assert signer.sign(some) == naive.sign(some), data


@pytest.mark.slow
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("paths", [SEEDS, FOUND], ids=["seeds", "found"])
def test_what_was_fuzzed_has_the_oracles_fingerprints(paths: list[Path]) -> None:
    for path in paths:
        compare(path.read_bytes())


@pytest.mark.slow
@pytest.mark.timeout(1_800)
def test_so_have_changes_of_it() -> None:
    random = Random(1)
    for _ in range(examples(1_000, 20_000)):
        compare(changed(random.choice(SEEDS).read_bytes(), random))
