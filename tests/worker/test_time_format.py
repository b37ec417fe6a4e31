"""Which formats of times settings take; what they read, the tests of times show."""

from __future__ import annotations

import pytest

from worker.fields import UNITS, check_time_format, width


@pytest.mark.parametrize(
    "time_format",
    [
        "Seconds",
        "iso",
        "",
        "%",
        "%Y%",
        "%Q",
        "%m%d",
        "%Y-%M-%d",
        "%Y%d",
        "%Y-%m-%d %M",
        "%Y-%m-%d %I:%M",
        "%Y-%m-%d %H:%M %p",
        "%Y-%m-%d %Z",
        "%Y-%U",
        "%s",
    ],
)
def test_a_format_that_tells_no_time_is_refused(time_format: str) -> None:
    with pytest.raises(
        ValueError, match=r"must be auto, seconds, .* a pattern of strptime"
    ) as caught:
        check_time_format(time_format)
    assert str(caught.value).startswith(f"got {time_format!r}, ")


@pytest.mark.parametrize(
    "time_format",
    [
        "auto",
        "excel",
        *UNITS,
        "%Y",
        "%Y%m",
        "%Y%m%d%H%M%S%f",
        "%d.%m.%y",
        "%Y-%j",
        "%G-W%V-%u",
        "%B %d, %Y %I%p %z",
    ],
)
def test_a_format_that_tells_one_is_taken(time_format: str) -> None:
    check_time_format(time_format)


@pytest.mark.parametrize(
    ("pattern", "characters"), [("%Y%m%d", 8), ("%d.%m.%y", 8), ("%Y-%j", 8), ("%Y %B", 0)]
)
def test_a_pattern_of_digits_has_one_width(pattern: str, characters: int) -> None:
    assert width(pattern) == characters
