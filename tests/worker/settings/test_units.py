"""Lengths of time and sizes of memory as text, and the text of each."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worker.settings.units import duration_ms, duration_text, size_bytes, size_text

SECOND, MINUTE, HOUR, DAY = 1_000, 60_000, 3_600_000, 86_400_000


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("45s", 45 * SECOND),
        ("90m", 90 * MINUTE),
        ("12h", 12 * HOUR),
        ("30d", 30 * DAY),
        ("1d12h", DAY + 12 * HOUR),
        ("1d2h3m4s", DAY + 2 * HOUR + 3 * MINUTE + 4 * SECOND),
        ("007d", 7 * DAY),
        ("0s", 0),
        ("999999999d", 999_999_999 * DAY),
    ],
)
def test_a_text_states_a_length(text: str, length: int) -> None:
    assert duration_ms(text) == length


@pytest.mark.parametrize(
    "text",
    [
        "",
        "30",
        "d",
        "-1d",
        "+1d",
        "1.5d",
        "1 d",
        "1d 12h",
        " 1d",
        "1d\n",
        "1D",
        "1w",
        "1ms",
        "12h1d",
        "1d1d",
        "1_0d",
        "٣d",
        "P1D",
        "1000000000d",
    ],
)
def test_any_other_text_states_no_length(text: str) -> None:
    with pytest.raises(ValueError, match="is no length of time"):
        duration_ms(text)


@pytest.mark.parametrize(
    ("length", "text"),
    [
        (0, "0s"),
        (999, "0s"),
        (90 * MINUTE, "1h30m"),
        (24 * HOUR, "1d"),
        (30 * DAY + 61_500, "30d1m1s"),
    ],
)
def test_the_text_of_a_length_is_the_shortest(length: int, text: str) -> None:
    assert duration_text(length) == text


@given(st.integers(0, 10**12))
def test_a_text_states_the_length_that_it_is_of(seconds: int) -> None:
    assert duration_ms(duration_text(seconds * SECOND)) == seconds * SECOND


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
def test_any_other_text_states_no_size(text: str) -> None:
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
