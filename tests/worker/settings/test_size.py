"""Sizes of memory as text, and the text of each."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worker.settings.size import size_bytes, size_text


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("1GiB", 1 << 30),
        ("800MiB", 800 << 20),
        ("1.5GiB", 3 << 29),
        ("512KiB", 1 << 19),
        ("2TiB", 2 << 40),
        ("1GB", 10**9),
        ("2.5kB", 2_500),
        ("0.1KiB", 102),
    ],
)
def test_a_text_states_a_size(text: str, size: int) -> None:
    assert size_bytes(text) == size


@pytest.mark.parametrize(
    "text",
    ["", "1", "GiB", "-1GiB", "1 GiB", "1gib", "1G", ".5GiB", "1e3MiB", "1GiB\n", "\u0661GiB"],
)
def test_any_other_text_states_none(text: str) -> None:
    with pytest.raises(ValueError, match="is no size"):
        size_bytes(text)


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0KiB"), (1_023, "0KiB"), (3 << 29, "1536MiB"), (1 << 40, "1TiB"), (10**9, "976562KiB")],
)
def test_the_text_of_a_size_has_the_largest_unit(size: int, text: str) -> None:
    assert size_text(size) == text


@given(st.integers(0, 10**9))
def test_a_text_states_the_size_that_it_is_of(size: int) -> None:
    assert size_bytes(size_text(size)) == size >> 10 << 10
