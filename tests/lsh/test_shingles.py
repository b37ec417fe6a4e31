from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from lsh import Fingerprinter, Parameters, Shingler, sized

TEXTS = st.lists(st.text(st.sampled_from("ab \u4e2d\U0001f600"), max_size=20), max_size=6)
Kind = Literal["char", "word"]


def hashes(
    texts: list[str], size: int, kind: Kind = "char", seed: bytes = b"s"
) -> list[NDArray[np.uint64]]:
    found = Shingler(kind, size, seed).shingles(texts)
    assert found.starts[-1] == len(found.hashes)
    return np.split(found.hashes, found.starts[1:-1]) if texts else []


def windows(text: str, size: int, kind: Kind) -> list[tuple[str, ...]]:
    units = tuple(text.split()) if kind == "word" else tuple(text)
    if not units:
        return []
    return [units[at : at + size] for at in range(max(len(units) - size + 1, 1))]


@given(TEXTS, st.integers(1, 12), st.sampled_from(["char", "word"]))
def test_hashes_are_equal_where_windows_are(texts: list[str], size: int, kind: Kind) -> None:
    expected = [window for text in texts for window in windows(text, size, kind)]
    got = [value for part in hashes(texts, size, kind) for value in part.tolist()]
    assert len(got) == len(expected)
    # One-to-one: the same classes of equal items.
    assert len(set(zip(got, expected, strict=True))) == len(set(got)) == len(set(expected))


@given(TEXTS, st.integers(1, 12), st.sampled_from(["char", "word"]))
def test_no_shingle_spans_two_texts(texts: list[str], size: int, kind: Kind) -> None:
    for text, part in zip(texts, hashes(texts, size, kind), strict=True):
        np.testing.assert_array_equal(part, hashes([text], size, kind)[0])


@pytest.mark.parametrize("kind", ["char", "word"])
def test_a_text_longer_than_a_chunk(kind: Kind) -> None:
    text = "".join(f"{number} " for number in range(40_000))
    whole = hashes([text], 5, kind)[0]
    assert len(whole) == len(windows(text, 5, kind))
    for at in (0, 16_383, 16_384, len(whole) - 1):
        window = windows(text, 5, kind)[at]
        joined = (" " if kind == "word" else "").join(window)
        assert hashes([joined], 5, kind)[0].tolist() == [whole[at]]


def test_a_leading_nul_counts() -> None:
    short, long = hashes(["a", "\0\0\0\0a"], 5)
    assert short.tolist() != long.tolist()


@pytest.mark.parametrize("kind", ["char", "word"])
def test_another_seed_gives_other_hashes(kind: Kind) -> None:
    one = hashes(["some words to hash"], 2, kind, b"one")[0]
    two = hashes(["some words to hash"], 2, kind, b"two")[0]
    assert not np.isin(one, two).any()


@pytest.mark.parametrize("kind", ["char", "word"])
def test_every_bit_of_a_hash_is_fair(kind: Kind) -> None:
    text = " ".join(f"word{number:05d}" for number in range(20_000))
    values = np.unique(hashes([text], 5, kind)[0])
    ones = (values[:, None] >> np.arange(64, dtype=np.uint64)) & np.uint64(1)
    error = 0.5 / len(values) ** 0.5
    assert np.abs(ones.mean(axis=0) - 0.5).max() < 5 * error


def test_windows_that_differ_by_one_letter_are_unrelated() -> None:
    texts = [f"abcd{chr(65 + letter)}" for letter in range(58)]
    values = np.array([part[0] for part in hashes(texts, 5)])
    steps = np.diff(values)
    assert len(set(steps.tolist())) > len(steps) - 5  # A linear hash has one.
    flips = np.bitwise_count(values[1:] ^ values[:-1])
    assert flips.mean() == pytest.approx(32, abs=3)


@given(TEXTS, st.integers(1, 3), st.sampled_from(["char", "word"]))
def test_different_hashes_are_the_sets_of_the_texts(
    texts: list[str], size: int, kind: Kind
) -> None:
    sets = Shingler(kind, size, b"s").shingles(texts).distinct()
    expected = [sorted(set(part.tolist())) for part in hashes(texts, size, kind)]
    assert [part.tolist() for part in np.split(sets.hashes, sets.starts[1:-1])][: len(texts)] == (
        expected
    )


def test_a_fingerprint_has_the_number_of_different_shingles_for_a_containment() -> None:
    texts = [
        "abcabcabcabc",
        "",
        "ab",
        "\u4e2d\u6587 \u4e2d\u6587 \u4e2d\u6587 \u4e2d\u6587",
        "a" * 600_000,
    ]
    kinds: tuple[Kind, ...] = ("char", "word")
    for shingle in kinds:
        plain_parameters = Parameters(shingle=shingle, shingle_size=2)
        fingerprinter = Fingerprinter(replace(plain_parameters, containment=0.5))
        prints = fingerprinter.fingerprint(texts)
        plain = Fingerprinter(plain_parameters).fingerprint(texts)
        assert prints.shingle_counts.tolist() == sized(fingerprinter, texts).sizes.tolist()
        assert prints.shingle_counts.tolist() != plain.shingle_counts.tolist()
        assert np.array_equal(prints.keys, plain.keys)
        assert np.array_equal(prints.sketches, plain.sketches)
