from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from lsh import (
    band_keys,
    candidate_chance,
    compact,
    detection,
    pairwise_similarity,
    s_curve,
    signatures,
)
from lsh.sketch import estimates

BYTE = 256


def by_hand(similarity: float, threshold: float, slots: int, bands: int, rows: int) -> float:
    """Sum over all ways in which slots are equal, because they agree or by chance."""
    total = 0.0
    equal = 1 - (1 - similarity) * (1 - 1 / BYTE)
    for ways in product([False, True], repeat=slots):
        count = sum(ways)
        met = any(all(ways[band * rows : (band + 1) * rows]) for band in range(bands))
        if met and estimates(slots)[count] >= threshold:
            total += equal**count * (1 - equal) ** (slots - count)
    return total


@pytest.mark.parametrize("similarity", [0.0, 0.2, 0.5, 0.9, 1.0])
@pytest.mark.parametrize(("bands", "rows"), [(1, 1), (3, 3), (2, 4), (1, 9), (9, 1)])
def test_it_is_the_sum_over_all_ways_to_be_equal(similarity: float, bands: int, rows: int) -> None:
    found = float(detection(similarity, 0.5, 9, bands, rows))
    assert found == pytest.approx(by_hand(similarity, 0.5, 9, bands, rows), abs=1e-12)


def test_without_a_threshold_it_is_the_chance_of_a_candidate() -> None:
    similarities = np.linspace(0, 1, 23).reshape(1, 23)
    found = detection(similarities, 0.0, 128, 18, 7)
    np.testing.assert_allclose(found, candidate_chance(similarities, 18, 7), atol=1e-12)


def test_between_two_counts_a_smooth_threshold_takes_part_of_each() -> None:
    grid = estimates(128)
    low, high = (float(detection(0.8, grid[at], 128, 18, 7)) for at in (102, 101))
    middle = float(detection(0.8, (grid[101] + grid[102]) / 2, 128, 18, 7, smooth=True))
    assert middle == pytest.approx((low + high) / 2)
    assert float(detection(0.8, grid[102], 128, 18, 7, smooth=True)) == pytest.approx(low)


@pytest.mark.slow(ci=False)
def test_long_signatures_are_no_problem() -> None:
    np.testing.assert_allclose(detection([0.75, 0.85], 0.8, 4096, 250, 15), [0, 1], atol=1e-6)


def test_sets_without_a_common_shingle_meet_by_chance_as_often_as_it_says() -> None:
    pairs = 30_000
    hashes = np.random.default_rng(3).integers(0, 2**64, 2 * pairs, dtype=np.uint64)
    sketches = compact(signatures(hashes, np.arange(2 * pairs + 1), 128))
    for bands, rows in ((128, 1), (10, 1), (64, 2)):
        keys = band_keys(sketches, bands, rows)
        share = (keys[::2] == keys[1::2]).any(axis=1).mean()
        chance = float(candidate_chance(0.0, bands, rows))
        assert chance == pytest.approx(float(s_curve(1 / BYTE, bands, rows)))
        assert abs(share - chance) < 4 * np.sqrt(chance * (1 - chance) / pairs)


@pytest.mark.parametrize(
    ("threshold", "slots", "bands", "rows"), [(0.8, 128, 18, 7), (0.5, 256, 64, 4)]
)
def test_sets_of_known_similarity_are_found_as_often_as_it_says(
    threshold: float, slots: int, bands: int, rows: int
) -> None:
    rng = np.random.default_rng(7)
    pairs, union = 3000, 20  # Few shingles leave most slots to hashes of their own.
    for common in (8, 10, 12, 16, 18):  # The rest is divided between the two sets.
        pool = rng.integers(0, 2**64, (pairs, union), dtype=np.uint64)
        spare = (union - common) // 2
        sides = []
        for part in (pool[:, : common + spare], pool[:, spare:]):
            flat = np.ascontiguousarray(part).reshape(-1)
            sides.append(signatures(flat, np.arange(pairs + 1) * part.shape[1], slots))
        similarity = common / union
        sketches = [compact(side) for side in sides]
        keys = [band_keys(sketch, bands, rows) for sketch in sketches]
        met = (keys[0] == keys[1]).any(axis=1)
        enough = pairwise_similarity(*sketches) >= threshold
        expected = float(detection(similarity, threshold, slots, bands, rows))
        error = np.sqrt(expected * (1 - expected) / pairs)
        assert abs(np.mean(met & enough) - expected) < 4 * error + 0.02, (similarity, expected)
