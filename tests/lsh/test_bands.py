"""Texts that are alike share a band; without the seed, nobody constructs two with one key."""

from __future__ import annotations

import gzip
import json

import mmh3
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsh import Fingerprinter, Parameters, band_keys, candidate_chance, text_keys
from lsh.exact import SetsOfTexts, jaccard
from tests.support.breadth import slow
from tests.support.command_line import SAMPLES

MOST = 2**64 - 1
C_1, C_2 = 0x87C37B91114253D5, 0x4CF5AD432745937F  # of MurmurHash3 x64 128


def test_the_same_rows_in_another_band_give_another_key() -> None:
    keys = band_keys(np.full((1, 128), 123, dtype=np.uint8), 18, 7)
    assert len(set(keys[0].tolist())) == 18


@given(
    st.sampled_from([(18, 7), (11, 11), (3, 8), (3, 9), (1, 128), (128, 1)]),
    st.integers(0, 127),
    st.integers(0, 7),
)
def test_every_bit_of_a_slot_counts_in_its_band_only(
    division: tuple[int, int], slot: int, bit: int
) -> None:
    bands, rows = division
    sketch = np.random.default_rng(slot).integers(0, 256, size=(1, 128), dtype=np.uint8)
    changed = sketch.copy()
    changed[0, slot] ^= np.uint8(1 << bit)
    differs = band_keys(sketch, bands, rows)[0] != band_keys(changed, bands, rows)[0]
    assert differs.tolist() == [band == slot // rows for band in range(bands)]


@given(st.lists(st.integers(0, 17)), st.integers(0, 3))
def test_the_keys_of_some_bands_are_those_among_all(columns: list[int], count: int) -> None:
    sketches = np.random.default_rng(1).integers(0, 256, size=(count, 128), dtype=np.uint8)
    every = band_keys(sketches, 18, 7)
    np.testing.assert_array_equal(band_keys(sketches, 18, 7, columns), every[:, columns])


def test_band_keys_refuse_more_slots_than_there_are() -> None:
    with pytest.raises(ValueError, match=r"bands \* rows: got 10 \* 2, .* 16"):
        band_keys(np.zeros((1, 16), dtype=np.uint8), 10, 2)


def block(mixed: int, first: int, rotation: int, last: int) -> bytes:
    """Return the eight bytes that MurmurHash3 mixes to `mixed`."""
    word = mixed * pow(last, -1, 2**64) & MOST
    word = (word << (64 - rotation) | word >> rotation) & MOST
    return (word * pow(first, -1, 2**64) & MOST).to_bytes(8, "little")


def text(flips: tuple[int, int, int]) -> bytes:
    """Return 32 bytes whose mixed words differ by `flips` from those of other flips."""
    return (
        block(11 ^ flips[0], C_1, 31, C_2)
        + block(22 ^ flips[1], C_2, 33, C_1)
        + block(33 ^ flips[2], C_1, 31, C_2)
        + b"together"
    )


def test_texts_that_collide_in_murmurhash_for_every_seed_have_keys_of_their_own() -> None:
    # The first block leaves a difference in the top bit of h1 alone; the second undoes it.
    pair = [text((0, 0, 0)), text((1 << 36, 1 << 32, 1 << 63))]
    assert pair[0] != pair[1]
    for seed in range(50):
        assert mmh3.hash64(pair[0], seed) == mmh3.hash64(pair[1], seed)
        one, other = text_keys(pair, f"seed {seed % 3}".encode())
        assert one != other


def test_keys_depend_on_the_seed_and_on_nothing_else() -> None:
    texts = [b"", b"a", b"a" * 5_000]
    ours = text_keys(texts, b"ours")
    assert ours.dtype == np.uint64
    assert len({*ours.tolist(), *text_keys(texts, b"theirs").tolist()}) == 6
    np.testing.assert_array_equal(text_keys(texts[::-1], b"ours")[::-1], ours)


@pytest.mark.parametrize(
    "sample",
    [
        pytest.param("onestop", marks=pytest.mark.slow(ci=False)),
        slow("pypa_advisories"),
        "youtube_spam",
    ],
)
def test_of_1000_real_texts_all_that_are_nearly_equal_share_one_of_20_bands(sample: str) -> None:
    with gzip.open(SAMPLES / f"{sample}.jsonl.gz", "rt", encoding="utf-8") as lines:
        texts = [json.loads(line)["text"] for line in lines][:1000]
    fingerprinter = Fingerprinter(Parameters(slots=100, bands=20, rows=5))
    sets = SetsOfTexts()
    sets.add(fingerprinter.shingles(texts))
    one, other = np.triu_indices(len(texts), 1)
    exact = jaccard(sets.finish(), one, other)
    keys = fingerprinter.fingerprint(texts).keys[:, :-1]
    met = np.zeros(len(one), np.bool_)
    for column in keys.T:
        met |= column[one] == column[other]
    assert met[exact >= 0.9].all()
    assert met.sum() == pytest.approx(candidate_chance(exact, 20, 5).sum(), rel=0.25)
