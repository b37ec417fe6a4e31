"""Parts of filters: bit for bit what the plain description of a filter says."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from worker.index.filter_parts import filled
from worker.index.run_layout import RunShape

LAST = 2**64 - 1
MIX = 0xD6E8FEB86659FD93


def plain(keys: Sequence[int], shape: RunShape) -> list[int]:
    """Return the filter of a column with these keys: the words that stores on disk have."""
    words = [0] * shape.words
    for key in keys:
        page = key >> (64 - shape.page_bits)
        mixed = (key * MIX & LAST) >> 32
        first = (key >> 32) * shape.words >> 32
        second = page * shape.page_words + (mixed * shape.page_words >> 32)
        for word, number in ((first, key), (second, mixed)):
            for shift in (0, 6, 12, 18):
                words[word] |= 1 << (number >> shift & 63)
    return words


@given(
    st.lists(st.integers(0, LAST) | st.sampled_from([0, LAST]), max_size=60),
    st.integers(0, 6),
    st.integers(1, 5),
    st.data(),
)
def test_a_part_has_the_bits_of_the_keys_on_its_pages(
    keys: list[int], page_bits: int, page_words: int, data: st.DataObject
) -> None:
    shape = RunShape(page_bits, page_words)
    first = data.draw(st.integers(0, shape.pages - 1))
    pages = range(first, data.draw(st.integers(first + 1, shape.pages)))
    here = sorted(key for key in keys if key >> (64 - page_bits) in pages)
    part = filled(np.array(here, np.uint64), shape, pages)
    of_all = plain(keys, shape)
    assert part.dtype == np.uint64
    assert part.tolist() == of_all[pages.start * page_words : pages.stop * page_words]


@pytest.mark.parametrize("tier", [0, 1, 2])
def test_full_pages_have_the_bits_of_all_their_keys(tier: int) -> None:
    shape = RunShape.of(1_000, tier)
    keys = np.sort(np.random.default_rng(tier).integers(0, 1 << 64, 1_000 * 8**tier, np.uint64))
    part = filled(keys, shape, range(shape.pages))
    assert part.tolist() == plain(keys.tolist(), shape)
