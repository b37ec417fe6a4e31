"""Merging pages: sorted, and of equal cells the newest, whatever the keys are."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from worker.index.page_merge import merged
from worker.index.run_layout import MARK

LAST = 2**64 - 1
# Keys that are far apart, equal, or different only in their lowest bits.
KEYS = st.builds(
    lambda high, low: high ^ low,
    st.integers(0, LAST) | st.sampled_from([0, 1 << 63, LAST]),
    st.integers(0, 3),
)
Cell = tuple[int, int]
"""A key and a document."""
RUNS = st.lists(
    st.lists(st.tuples(KEYS, st.integers(0, 2 * MARK - 1)), unique_by=lambda cell: cell[0]),
    min_size=1,
    max_size=8,
)


def pages(run: list[Cell], page_bits: int) -> list[bytes | None]:
    packed: list[bytes | None] = []
    for page in range(1 << page_bits):
        cells = [cell for cell in sorted(run) if cell[0] >> (64 - page_bits) == page]
        keys = np.array([key for key, _ in cells], "<u8").tobytes()
        documents = np.array([document for _, document in cells], "<u4").tobytes()
        packed.append((keys + documents) or None)
    return packed


def plain(runs: list[list[Cell]]) -> list[Cell]:
    """Return the sorted cells of all runs, without those that another of their kind follows."""
    ordered = sorted((cell for run in runs for cell in run), key=lambda cell: cell[0])
    followed = [
        (key, document & MARK) == (following, next_document & MARK)
        for (key, document), (following, next_document) in pairwise(ordered)
    ]
    return [cell for cell, dropped in zip(ordered, [*followed, False], strict=False) if not dropped]


def check(runs: list[list[Cell]], page_bits: int) -> None:
    hashes, documents = merged([pages(run, page_bits) for run in runs], page_bits)
    assert hashes.dtype == np.uint64
    assert documents.dtype == np.uint32
    assert list(zip(hashes.tolist(), documents.tolist(), strict=True)) == plain(runs)


@given(RUNS, st.integers(0, 4))
def test_merged_pages_have_all_cells_in_order_and_the_newest_of_equal_ones(
    runs: list[list[Cell]], page_bits: int
) -> None:
    check(runs, page_bits)


@pytest.mark.parametrize("step", [1, 2, 1 << 20, 1 << 50])
def test_keys_that_differ_only_in_their_lowest_bits_are_sorted(step: int) -> None:
    """Each run has its keys between those of the others."""
    runs = [[((place * 8 + run) * step, place) for place in range(200)] for run in range(8)]
    check(runs[::-1], page_bits=3)


def test_what_is_no_page_is_refused() -> None:
    with pytest.raises(ValueError, match="13 bytes are not whole cells"):
        merged([[bytes(12), bytes(13)]], 1)
