from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from lsh import (
    band_keys,
    candidate_chance,
    compact,
    pairwise_similarity,
    signatures,
    similarity,
)
from lsh.tuning import standard_error
from tests.support.breadth import slow

TRIALS = 600
SLOTS = 128


def pairs_of_sets(
    size: int, similarity: float, trials: int, seed: int
) -> tuple[NDArray[np.uint64], NDArray[np.int64], float]:
    """Hashes of `trials` pairs of sets of `size`: A, B, A, B...; starts; their true similarity."""
    common = round(2 * size * similarity / (1 + similarity))
    rng = np.random.default_rng(seed)
    union = rng.integers(0, 2**64, size=(trials, 2 * size - common), dtype=np.uint64)
    both = np.stack((union[:, :size], union[:, size - common :]), axis=1)
    starts = np.arange(2 * trials + 1, dtype=np.int64) * size
    return both.reshape(-1), starts, common / (2 * size - common)


LAW = [(n, j) for n in (1, 2, 10, 30, 100, 1000) for j in (0.2, 0.5, 0.8, 0.95)]


@pytest.mark.parametrize(("size", "wanted"), LAW)
@pytest.mark.parametrize("slots", [SLOTS, 100])
def test_the_estimate_is_unbiased_and_no_noisier_than_independent_slots(
    size: int, wanted: float, slots: int
) -> None:
    hashes, starts, true = pairs_of_sets(size, wanted, TRIALS, seed=size)
    table = signatures(hashes, starts, slots)
    estimates = np.asarray((table[0::2] == table[1::2]).mean(axis=1))
    error = float(standard_error(true, slots))
    # 4.5 standard errors of a mean, and of a variance, over the trials.
    assert abs(estimates.mean() - true) <= 4.5 * error / TRIALS**0.5
    assert estimates.var() <= error**2 * (1 + 4.5 * (2 / TRIALS) ** 0.5)


@pytest.mark.parametrize(("size", "wanted"), LAW)
def test_the_estimate_from_sketches_is_unbiased(size: int, wanted: float) -> None:
    hashes, starts, true = pairs_of_sets(size, wanted, TRIALS, seed=1000 + size)
    sketches = compact(signatures(hashes, starts, SLOTS))
    estimates = pairwise_similarity(sketches[0::2], sketches[1::2])
    error = float(standard_error(true, SLOTS, sketch_bits=8))
    # Clipping at 0 lifts the mean where nothing is shared; slots that agree by chance average
    # half of one there.
    allowed = 4.5 * error / TRIALS**0.5 + (0.002 if true == 0 else 0)
    assert abs(estimates.mean() - true) <= allowed


@pytest.mark.slow(ci=False)
@pytest.mark.parametrize("wanted", [0.2, 0.5, 0.8, 0.95])
@pytest.mark.parametrize("size", [1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000, 3000, 10_000])
def test_the_bias_is_below_two_thousandths_at_any_length(size: int, wanted: float) -> None:
    true = pairs_of_sets(size, wanted, 1, seed=0)[2]
    errors = [float(standard_error(true, SLOTS, bits)) for bits in (None, 8)]
    trials = max(TRIALS, int((3.5 * errors[1] / 0.002) ** 2))
    step = 1_000_000 // size
    found: tuple[list[float], list[float]] = [], []
    for at in range(0, trials, step):
        hashes, starts, _ = pairs_of_sets(size, wanted, min(step, trials - at), seed=size + at)
        table = signatures(hashes, starts, SLOTS)
        found[0].extend((table[0::2] == table[1::2]).mean(axis=1).tolist())
        sketches = compact(table)
        found[1].extend(pairwise_similarity(sketches[0::2], sketches[1::2]).tolist())
    for estimates, error in zip(map(np.array, found), errors, strict=True):
        # Where nothing is shared, clipping at 0 lifts the mean by half a slot of 256.
        assert abs(estimates.mean() - true) <= 0.002 + (0.001 if true == 0 else 0)
        assert estimates.var() <= error**2 * (1 + 4.5 * (2 / trials) ** 0.5)


@pytest.mark.parametrize(("bands", "rows"), [(18, 7), slow(25, 5), slow(128, 1)])
@pytest.mark.parametrize("size", [3, 30, 500])
def test_bands_meet_as_often_as_the_curve_says(bands: int, rows: int, size: int) -> None:
    for wanted in (0.5, 0.7, 0.8, 0.9):
        hashes, starts, true = pairs_of_sets(size, wanted, 2000, seed=7 * size)
        keys = band_keys(compact(signatures(hashes, starts, SLOTS)), bands, rows)
        share = float((keys[0::2] == keys[1::2]).any(axis=1).mean())
        expected = float(candidate_chance(true, bands, rows))
        # Slots without replacement vary less than the curve assumes, which moves the share
        # by a few hundredths where the curve is steep.
        assert share == pytest.approx(expected, abs=0.05)


def test_sets_without_a_common_shingle_share_hardly_a_slot() -> None:
    for size in (1, 2, 5, 40, 100, 400):
        hashes, starts, true = pairs_of_sets(size, 0.0, 500, seed=size)
        assert true == 0
        table = signatures(hashes, starts, SLOTS)
        # Slots that are filled have 16 bits, and no shingle falls into most slots of few.
        filled = (1 - 1 / SLOTS) ** size
        assert (table[0::2] == table[1::2]).mean() <= 1.5 * filled * size / 2**16


def test_of_many_one_shingle_documents_no_two_look_alike() -> None:
    hashes = np.random.default_rng(8).integers(0, 2**64, size=2000, dtype=np.uint64)
    sketches = compact(signatures(hashes, np.arange(2001), SLOTS))
    greatest = max(similarity(one, sketches[500:]).max() for one in sketches[:500])
    assert greatest < 0.4  # Some pairs of 750,000 have 16 bits in common, and with them a third.


def test_one_shingle_documents_agree_by_chance_in_one_slot_of_256() -> None:
    hashes, starts, _ = pairs_of_sets(1, 0.0, 2000, seed=5)
    sketches = compact(signatures(hashes, starts, SLOTS))
    matches = (sketches[0::2] == sketches[1::2]).sum(axis=1)
    assert matches.mean() == pytest.approx(SLOTS / 256, abs=0.1)
    assert matches.var() == pytest.approx(SLOTS / 256, rel=0.3)
    assert matches.max() <= 6


@given(st.lists(st.integers(0, 300), max_size=12), st.sampled_from([1, 2, 3, 64, 100, 128]))
def test_a_batch_signs_as_its_documents_alone(sizes: list[int], slots: int) -> None:
    rng = np.random.default_rng(sum(sizes))
    hashes = rng.integers(0, 2**64, size=sum(sizes), dtype=np.uint64)
    starts = np.concatenate(([0], np.cumsum(np.array(sizes, dtype=np.int64)))).astype(np.int64)
    table = signatures(hashes, starts, slots)
    assert table.shape == (len(sizes), slots)
    for row, size in enumerate(sizes):
        part = hashes[starts[row] : starts[row + 1]]
        alone = signatures(part, np.array([0, size], dtype=np.int64), slots)
        np.testing.assert_array_equal(table[row], alone[0])


@given(st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=200), st.randoms())
def test_order_and_repeats_of_shingles_change_nothing(hashes: list[int], random: object) -> None:
    shuffled = sorted(hashes, key=lambda _: random.random()) + hashes[:3]  # type: ignore[attr-defined]
    both = np.array(hashes + shuffled, dtype=np.uint64)
    starts = np.array([0, len(hashes), len(both)], dtype=np.int64)
    first, second = signatures(both, starts, SLOTS)
    np.testing.assert_array_equal(first, second)


def test_a_document_longer_than_a_chunk_signs_by_the_definition() -> None:
    rng = np.random.default_rng(3)
    hashes = rng.integers(0, 2**64, size=50_000, dtype=np.uint64)
    table = signatures(hashes, np.array([0, len(hashes)], dtype=np.int64), SLOTS)
    bins = (hashes >> np.uint64(57)).astype(int)
    least = np.array([hashes[bins == slot].min() for slot in range(SLOTS)], dtype=np.uint64)
    np.testing.assert_array_equal(table[0], least ^ (least >> np.uint64(32)))


def test_a_document_without_shingles_gets_zeros() -> None:
    assert not signatures(np.empty(0, np.uint64), np.zeros(3, np.int64), 16).any()


def test_similarity_is_exact_at_its_ends() -> None:
    sketch = np.arange(128, dtype=np.uint8)
    others = np.stack((sketch, sketch + np.uint8(1)))
    assert similarity(sketch, others).tolist() == [1.0, 0.0]
    assert similarity(sketch, others[:0]).shape == (0,)
    assert float(similarity(sketch, others[1])) == 0.0


def test_similarity_takes_off_the_chance_agreement() -> None:
    sketch = np.zeros(128, dtype=np.uint8)
    half = np.zeros((1, 128), dtype=np.uint8)
    half[0, :64] = 1
    assert similarity(sketch, half)[0] == pytest.approx((0.5 - 1 / 256) / (1 - 1 / 256))


@given(st.integers(1, 600), st.integers(0, 2**32))
def test_similarity_of_one_with_many_is_the_row_by_row_similarity(slots: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = rng.integers(0, 3, size=(2, 5, slots), dtype=np.uint8)
    by_row = pairwise_similarity(a, b)
    for row in range(5):
        assert similarity(a[row], b)[row] == similarity(a[row], b[row]) == by_row[row]
    np.testing.assert_array_equal(by_row, pairwise_similarity(b, a))
    assert ((by_row >= 0) & (by_row <= 1)).all()


@pytest.mark.parametrize("slots", [1, 7, 8, 112, 120, 248, 255, 256, 264, 512])
def test_equal_slots_are_counted_right_however_many_there_are(slots: int) -> None:
    equal = np.arange(slots + 1)
    sketches = (np.arange(slots) >= equal[:, None]).astype(np.uint8)
    chance = 1 / 256
    expected = np.maximum((equal / slots - chance) / (1 - chance), 0.0)
    for some in (sketches, np.asfortranarray(sketches), np.flip(sketches, axis=1)):
        found = pairwise_similarity(some, np.zeros_like(some))
        np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_many_short_documents_have_the_signatures_that_each_has_alone() -> None:
    lengths = np.arange(60) * 5 % 280
    starts = np.append(0, np.cumsum(lengths))
    hashes = np.random.default_rng(4).integers(0, 1 << 64, starts[-1], dtype=np.uint64)
    together = signatures(hashes, starts, 128)
    for row, (low, high) in enumerate(pairwise(starts.tolist())):
        alone = signatures(hashes[low:high], np.array([0, high - low]), 128)
        np.testing.assert_array_equal(alone[0], together[row])
