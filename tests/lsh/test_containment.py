from __future__ import annotations

from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from lsh import (
    Fingerprinter,
    Parameters,
    compact,
    containment,
    containment_error,
    signatures,
    sized,
    standard_error,
)
from lsh.containment import containment_of, error_of, jaccard_of_containment
from lsh.measures import shingle_set

SLOTS = 128


def estimates(sizes: tuple[int, int], common: int, trials: int, seed: int) -> NDArray[np.float64]:
    """Return the estimates for `trials` pairs of random sets of two sizes."""
    size, other = sizes
    rng = np.random.default_rng(seed)
    union = rng.integers(0, 2**64, (trials, size + other - common), dtype=np.uint64)
    tables = []
    for part in (union[:, :size], union[:, size - common :]):
        starts = np.arange(trials + 1, dtype=np.int64) * part.shape[1]
        tables.append(compact(signatures(part.reshape(-1), starts, SLOTS)))
    others = np.array([other])
    found = [containment(a, size, b[None], others)[0] for a, b in zip(*tables, strict=True)]
    return np.array(found)


def check(
    sizes: tuple[int, int], common: int, trials: int, seed: int, most_bias: float | None = None
) -> None:
    """Hold bias and spread against theory."""
    found = estimates(sizes, common, trials, seed)
    true = common / sizes[0]
    error = float(containment_error(true, sizes[1] / sizes[0], SLOTS))
    bias = float(found.mean()) - true
    # What the second order leaves: the third and the fourth moment.
    assert abs(bias) <= (most_bias or 4.5 * error / trials**0.5 + 0.15 * error**2)
    assert found.std() <= error * (1.05 + 4.5 / (2 * trials) ** 0.5)


LAW = [
    ((1000, 1000), 500),
    ((1000, 1000), 900),
    ((300, 900), 200),
    ((900, 300), 200),
    ((100, 1000), 60),
    ((20, 30), 12),
    ((5, 5), 4),
]


@pytest.mark.parametrize(("sizes", "common"), LAW)
def test_estimates_are_unbiased_and_vary_no_more_than_theory(
    sizes: tuple[int, int], common: int
) -> None:
    check(sizes, common, 400, seed=sizes[0] + common)


@pytest.mark.slow(ci=False)
@pytest.mark.parametrize(("sizes", "common"), [*LAW, ((10_000, 10_000), 6000), ((1, 1), 1)])
def test_the_bias_is_below_two_thousandths(sizes: tuple[int, int], common: int) -> None:
    error = float(containment_error(common / sizes[0], sizes[1] / sizes[0], SLOTS))
    trials = 3000 if error < 0.05 else 20_000
    check(sizes, common, trials, seed=7, most_bias=max(0.002, 4 * error / trials**0.5))


@pytest.mark.parametrize(("alike", "ratio"), [(0.5, 1), (0.2, 3), (0.3, 2)])
def test_the_expected_estimate_is_the_containment(alike: float, ratio: int) -> None:
    # Over all numbers of slots that may agree: their chances, and what is estimated then.
    agree = alike + (1 - alike) / 256
    chances = [comb(SLOTS, n) * agree**n * (1 - agree) ** (SLOTS - n) for n in range(SLOTS + 1)]
    sketches = (np.arange(SLOTS) >= np.arange(SLOTS + 1)[:, None]).astype(np.uint8)
    sketch, sizes = np.zeros(SLOTS, dtype=np.uint8), np.full(SLOTS + 1, 1000 * ratio)
    expected = float(containment(sketch, 1000, sketches, sizes) @ np.array(chances))
    assert expected == pytest.approx((1 + ratio) * alike / (1 + alike), abs=0.0007)


@given(st.integers(1, 1000), st.integers(1, 1000), st.data())
def test_containment_and_similarity_determine_each_other(
    size: int, other: int, data: st.DataObject
) -> None:
    common = data.draw(st.integers(0, min(size, other)))
    alike = common / (size + other - common)
    found = float(jaccard_of_containment(common / size, other / size))
    assert found == pytest.approx(alike, abs=1e-12)


@given(st.integers(0, SLOTS), st.integers(1, 500), st.integers(1, 500))
def test_an_estimate_is_within_what_sizes_allow(equal: int, size: int, other: int) -> None:
    sketch = np.zeros(SLOTS, dtype=np.uint8)
    another = (np.arange(SLOTS) >= equal).astype(np.uint8)
    found = float(containment(sketch, size, another[None], np.array([other]))[0])
    assert 0 <= found <= min(1, other / size)
    if equal == SLOTS and size == other:
        assert found == 1


def test_nothing_in_common_is_no_containment() -> None:
    sketch = np.zeros((2, SLOTS), dtype=np.uint8)
    sketch[1] = 1
    assert containment(sketch[0], 9, sketch[1:], np.array([9]))[0] == pytest.approx(0, abs=1e-3)


def test_sizes_are_those_of_sets() -> None:
    fingerprinter = Fingerprinter(Parameters())
    texts = ["la la la la la la", "", "abc", "no repeats"]
    found = sized(fingerprinter, texts)
    assert found.sizes.tolist() == [len(shingle_set(text)) for text in texts]
    np.testing.assert_array_equal(found.sketches, fingerprinter.fingerprint(texts).sketches)


@given(
    st.lists(
        st.tuples(st.integers(0, 256), st.integers(1, 2**32 - 1), st.integers(1, 2**32 - 1)),
        min_size=1,
        max_size=70,
    )
)
def test_pairs_have_one_estimate_wherever_they_stand(pairs: list[tuple[int, int, int]]) -> None:
    """Shards and machines must agree on every bit, so this is done in Python's numbers again."""
    alike = np.array([same / 256 for same, _, _ in pairs])
    sizes, others = (np.array([pair[at] for pair in pairs], np.uint32) for at in (1, 2))
    expected = []
    for same, size, other in pairs:
        similarity, ratio = same / 256, other / size
        variance = similarity * (1.0 - similarity) / 128
        more = 1.0 + similarity
        share = (1.0 + ratio) * (similarity / more + variance / (more * more * more))
        expected.append(max(0.0, min(share, ratio, 1.0)))
    assert containment_of(alike, sizes, others, 128).tolist() == expected


@given(st.integers(0, 256), st.integers(1, 2**32 - 1), st.integers(1, 2**32 - 1))
def test_the_error_of_an_estimate_is_that_of_theory_for_full_slots(
    same: int, size: int, other: int
) -> None:
    alike, ratio = np.array([same / 256]), other / size
    slope = (1 + ratio) / (1 + alike) ** 2
    expected = slope * standard_error(alike, 128)
    assert error_of(alike, size, np.array([other]), 128) == pytest.approx(expected)


def test_a_size_of_nothing_counts_as_one() -> None:
    none = np.zeros(1, np.uint32)
    assert containment_of(np.ones(1), 0, none, 128).tolist() == [1.0]
