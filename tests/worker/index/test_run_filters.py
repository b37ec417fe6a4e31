"""The filters of runs: never wrong about what is there, seldom about what isn't."""

from __future__ import annotations

from random import Random

import numpy as np
import numpy.typing as npt
import pytest

from worker.index.filter_parts import filled
from worker.index.run_filters import Probes, TierFilters, zeroed
from worker.index.run_layout import FAN_IN, RunShape

COLUMNS = 3
DOCUMENTS = 1_000


def cells(
    seed: int, count: int = COLUMNS * DOCUMENTS
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint64]]:
    """Return the slots and keys of cells, sorted; keys are drawn evenly, as hashes are."""
    chance = np.random.default_rng(seed)
    slots = np.sort(np.arange(count) % COLUMNS).astype(np.uint8)
    hashes = chance.integers(0, 1 << 64, count, np.uint64)
    return slots, hashes[np.lexsort((hashes, slots))]


WIDEST = (8, 4, 1, 1)
"""The most filters in a matrix, by tier."""


def words(shape: RunShape, seed: int, count: int = COLUMNS * DOCUMENTS) -> npt.NDArray[np.uint64]:
    slots, hashes = cells(seed, count)
    pages = range(shape.pages)
    return np.concatenate([filled(hashes[slots == slot], shape, pages) for slot in range(COLUMNS)])


@pytest.mark.parametrize(("tier", "often"), [(0, 0.4), (0, 1), (1, 0), (2, 0.4), (3, 1)])
def test_what_was_added_is_found_in_its_run_whatever_else_comes_and_goes(
    tier: int, often: float
) -> None:
    shape = RunShape.of(DOCUMENTS, tier)
    filters = TierFilters(shape, tier)
    there: set[int] = set()
    chance = Random(tier)
    for run in range(2 * FAN_IN):
        filters.add(run, words(shape, run))
        there.add(run)
        if chance.random() < often:
            filters.take(filters.joined())
            assert filters.matrices <= min(len(there), 1 + 2 * FAN_IN // WIDEST[tier])
        if run >= FAN_IN:
            filters.remove(np.array([run - FAN_IN, run - FAN_IN // 2]))
            there -= {run - FAN_IN, run - FAN_IN // 2}
        for seed in range(2 * FAN_IN):
            which, runs = filters.find(Probes(*cells(seed)))
            assert set(runs.tolist()) <= there
            found = set(which[runs == seed].tolist())
            assert found == (set(range(COLUMNS * DOCUMENTS)) if seed in there else set())


@pytest.mark.parametrize("tier", [0, 1, 2])
def test_filters_are_interleaved_beside_those_who_ask(tier: int) -> None:
    """Nothing changes before `take`, whatever is in the columns that are free."""
    shape = RunShape.of(DOCUMENTS, tier)
    filters = TierFilters(shape, tier)
    for run in range(FAN_IN + 1):
        filters.add(run, words(shape, run))
        before = [filters.find(Probes(*cells(seed))) for seed in range(FAN_IN + 2)]
        matrices, joined = filters.matrices, filters.joined()
        for seed, (which, runs) in enumerate(before):
            again = filters.find(Probes(*cells(seed)))
            assert (again[0].tolist(), again[1].tolist()) == (which.tolist(), runs.tolist())
        assert filters.matrices == matrices
        filters.take(joined)
        assert filters.matrices == 1 + run // WIDEST[tier]


def test_room_that_nothing_uses_is_small() -> None:
    """A matrix has a power of two of columns, so that of a large tier would have many in vain."""
    shape = RunShape.of(DOCUMENTS, 1)
    filters = TierFilters(shape, 1)
    for run in range(FAN_IN):
        filters.add(run, words(shape, run))
        filters.take(filters.joined())
        columns = filters.size_bytes // (COLUMNS * shape.words * 8)
        assert run + 1 <= columns <= run + 2


def test_no_runs_have_nothing() -> None:
    filters = TierFilters(RunShape.of(DOCUMENTS, 0), 0)
    which, runs = filters.find(Probes(*cells(1)))
    assert (len(which), len(runs), filters.size_bytes) == (0, 0, 0)
    filters.add(7, words(filters.shape, 1))
    filters.remove(np.array([7]))
    assert filters.size_bytes == 0


@pytest.mark.parametrize(("tier", "most"), [(0, 0.0006), (1, 0.0024), (2, 0.008)])
def test_seldom_is_something_absent_taken_for_there(tier: int, most: float) -> None:
    count = COLUMNS * DOCUMENTS * FAN_IN**tier
    shape = RunShape.of(DOCUMENTS, tier)
    filters = TierFilters(shape, tier)
    filters.add(0, words(shape, 1, count))
    which, _ = filters.find(Probes(*cells(2, 300_000)))
    assert len(which) / 300_000 < most


def test_zeros_are_zero() -> None:
    assert not zeroed(1 << 19).any()
    assert len(zeroed(0)) == 0
