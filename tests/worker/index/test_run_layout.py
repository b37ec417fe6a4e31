"""The pages of runs: each cell is on the page that its key says, and is found there."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from worker.index.run_layout import (
    FAN_IN,
    MARK,
    RunShape,
    find_in_page,
    marked,
    packed_pages,
    unpack_cells,
    unpack_pages,
)

U64 = st.integers(0, 2**64 - 1)


@pytest.mark.parametrize("documents", [1, 3, 256, 257, 65_536])
def test_a_tier_has_eight_times_the_pages_of_the_one_below(documents: int) -> None:
    shapes = [RunShape.of(documents, tier) for tier in range(4)]
    for below, above in pairwise(shapes):
        assert above.pages == FAN_IN * below.pages
        hashes = np.random.default_rng(1).integers(0, 1 << 64, 1_000, np.uint64)
        assert (above.page(hashes) // FAN_IN == below.page(hashes)).all()
    assert documents <= 256 * shapes[0].pages < 2 * max(256, documents)


@given(st.sets(U64, max_size=200), st.integers(0, 5), st.data())
def test_pages_have_all_cells_in_order(
    unsorted: set[int], page_bits: int, data: st.DataObject
) -> None:
    shape = RunShape(page_bits, 1)
    first = data.draw(st.integers(0, shape.pages - 1))
    pages = range(first, data.draw(st.integers(first + 1, shape.pages)))
    cells = sorted(key for key in unsorted if key >> (64 - page_bits) in pages)
    hashes, documents = np.array(cells, np.uint64), np.arange(len(cells), dtype=np.uint32)
    packed = dict(packed_pages(hashes, documents, shape, pages))
    assert list(packed) == sorted({key >> (64 - page_bits) for key in cells})
    for page, content in packed.items():
        keys, numbers = unpack_cells(content)
        assert (shape.page(keys) == page).all()
        for key, number in zip(keys.tolist(), numbers.tolist(), strict=True):
            assert find_in_page(content, key) == number
    keys, numbers, counts = unpack_pages(packed.values())
    assert keys.tolist() == cells
    assert numbers.tolist() == documents.tolist()
    assert counts == [len(content) // 12 for content in packed.values()]


@given(st.lists(U64, min_size=1, max_size=50), U64)
def test_a_key_that_is_not_in_a_page_is_not_found(keys: list[int], wanted: int) -> None:
    """Documents are no keys, even if their bytes are those of one."""
    cells = np.array(sorted({*keys} - {wanted}), "<u8")
    documents = np.full(len(cells), wanted & 0x7FFFFFFF, "<u4")
    assert find_in_page(cells.tobytes() + documents.tobytes(), wanted) == -1


def test_a_key_is_found_beside_a_mark_that_has_its_bytes() -> None:
    keys = np.array([3, 8, 8, 8, 9], "<u8").tobytes()
    documents = np.array([1, 2 | MARK, 3 | MARK, 4, 5], "<u4").tobytes()
    assert find_in_page(keys + documents, 8) == 4
    assert find_in_page(keys[:24] + documents[:12], 8) == -1


def test_what_is_no_page_is_refused() -> None:
    with pytest.raises(ValueError, match="13 bytes are not whole cells"):
        unpack_cells(bytes(13))
    with pytest.raises(ValueError, match="13 bytes are not whole cells"):
        unpack_pages([bytes(12), bytes(13)])


def test_marks_have_keys_of_their_own() -> None:
    keys = np.arange(1_000, dtype=np.uint64)
    assert not np.isin(marked(keys), keys).any()
    assert (marked(marked(keys)) == keys).all()
