"""What a field's value is as a time, and why it isn't."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worker.fields import UNITS, check_time_format
from worker.formats.times import time_reader
from worker.formats.unreadable import Unreadable

TIME = 1_700_000_000_000
DAY = 86_400_000
NEW_YEAR = 1_704_067_200_000
"""2024-01-01."""
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def read(given: object, time_format: str = "auto") -> int:
    return time_reader(time_format)(given, "at")


def refused(given: object, time_format: str = "auto") -> str:
    with pytest.raises(Unreadable) as caught:
        read(given, time_format)
    assert caught.value.code in {"bad-time", "time-wrong-type"}
    assert len(str(caught.value)) < 300
    return str(caught.value)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("2023-11-14T22:13:20Z", TIME),
        ("2023-11-14T22:13:20", TIME),
        ("2023-11-14T23:13:20+01:00", TIME),
        (" 2023-11-14 22:13:20 ", TIME),
        ("2023-11-14T22:13:20.123999999", TIME + 123),
        ("20231114T221320Z", TIME),
        ("Tue, 14 Nov 2023 22:13:20 GMT", TIME),
        ("1969-12-31T23:59:59.9999Z", -1),
        ("1066-10-14", -28_502_755_200_000),
        (1_700_000_000, TIME),
        (1_700_000_000.123, TIME + 123),
        ("1700000000", TIME),
        ("1700000000.5", TIME + 500),
        (TIME + 123, TIME + 123),
        (TIME + 0.9, TIME),
        (TIME * 1_000 + 123_999, TIME + 123),
        (TIME * 1_000_000 + 123_999_999, TIME + 123),
        (1.700000000123e18, TIME + 123),
    ],
)
def test_a_time_is_a_date_or_a_number_in_a_plain_unit(given: object, expected: int) -> None:
    assert read(given) == expected


@given(
    st.datetimes(min_value=datetime(1990, 1, 1), max_value=datetime(2031, 12, 31)),  # noqa: DTZ001 -- as hypothesis takes it
    st.sampled_from(list(UNITS.values())),
)
def test_a_number_of_the_plausible_years_is_in_one_unit_only(
    moment: datetime, per_second: int
) -> None:
    since = (moment.replace(tzinfo=UTC) - EPOCH) // timedelta(microseconds=1)
    number = since * per_second // 10**6
    assert read(number) == number * 1_000 // per_second
    assert read(str(number)) == read(number)


CALENDAR = ("%Y", "%Y%m", "%Y%m%d", "%Y%m%d%H", "%Y%m%d%H%M", "%Y%m%d%H%M%S", "%Y%m%d%H%M%S%f")


@given(
    st.datetimes(min_value=datetime(1957, 1, 1), max_value=datetime(2199, 12, 31)),  # noqa: DTZ001 -- the same
    st.sampled_from(CALENDAR),
)
def test_a_calendar_date_is_never_taken_for_a_number_of_seconds(
    moment: datetime, pattern: str
) -> None:
    digits = moment.strftime(pattern)
    for shown in (digits, digits[:-3] if pattern.endswith("f") else digits):
        said = refused(int(shown))
        assert "it looks like a date: set documents.time_format (--time-format) to %Y" in said
        assert refused(shown).partition(":")[2] != ""
        refused(float(shown))


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (20240101, "is 20240101: no time from 1990 to 2031 in seconds, milliseconds, microseconds"),
        (20240101, "it looks like a date: set documents.time_format (--time-format) to %Y%m%d"),
        (20240101.0, "to %Y%m%d"),
        ("20240101", "is '20240101': no time"),
        (202401, "to %Y%m"),
        (240131, "to %y%m%d"),
        (31122024, "to %d%m%Y"),
        (
            45292,
            "looks like a serial day of a spreadsheet: set documents.time_format (--time-format)",
        ),
        ("45292.5", "to excel"),
        (0, "if it is a time, documents.time_format (--time-format) says in which unit"),
        (86_400, "says in which unit"),
        (-5, "says in which unit"),
        (631_151_999, "no time from 1990 to 2031"),
        (1_956_528_000, "no time from 1990 to 2031"),
        # Digits that Python would read as a day, a mark and an hour.
        ("20240101112", "no time from 1990 to 2031"),
        ("noon", "neither ISO 8601 nor RFC 822; if it is a time, documents.time_format"),
        ("01/02/2024", "neither ISO 8601 nor RFC 822"),
        ("2024-01-01x10:00", "neither ISO 8601 nor RFC 822"),
        ("", "neither ISO 8601 nor RFC 822"),
        ("x" * 100_000, "…: too long for a date"),
        ("0001-01-01T00:00:00+14:00", "not between the years 1000 and 2200"),
        ("9999-12-31", "not between the years 1000 and 2200"),
        (1e300, "is 1e+300: not a time"),
        (math.nan, "is nan: not a time"),
        (-math.inf, "is -inf: not a time"),
        ("nan", "neither ISO 8601"),
        (10**400, "is 1000000000000000000000000000000000000000…: not a time"),
        (True, "time-wrong-type: field 'at' is a boolean, not a time"),
        ([], "time-wrong-type: field 'at' is an array, not a time"),
        ({}, "time-wrong-type: field 'at' is an object, not a time"),
    ],
)
def test_what_is_no_time_is_named_with_what_it_may_be(given: object, says: str) -> None:
    assert says in refused(given)


@given(st.integers(-30_000_000_000, 7_000_000_000), st.sampled_from(list(UNITS.items())))
def test_a_unit_reads_any_time(seconds: int, unit: tuple[str, int]) -> None:
    name, per_second = unit
    number = seconds * per_second - (per_second > 1)
    assert read(number, name) == number * 1_000 // per_second
    assert read(str(number), name) == read(number, name)


@pytest.mark.parametrize(
    ("time_format", "given", "expected"),
    [
        ("seconds", 0, 0),
        ("seconds", -1.5, -1_500),
        ("seconds", -0.0001, -1),
        ("microseconds", -1, -1),
        ("nanoseconds", "-1", -1),
        ("excel", 45_292, NEW_YEAR),
        ("excel", 45_292.416666666664, NEW_YEAR + 10 * 3_600_000),
        ("excel", "45292.5", NEW_YEAR + DAY // 2),
        ("excel", 61, -2_203_891_200_000),
        ("excel", 59, -2_203_891_200_000 - DAY),
        ("%Y%m%d", 20240101, NEW_YEAR),
        ("%Y%m%d", 20240101.0, NEW_YEAR),
        ("%Y%m%d", " 20240101 ", NEW_YEAR),
        ("%Y", 2024, NEW_YEAR),
        ("%d%m%Y", 1012024, NEW_YEAR),
        ("%y%m%d", "50101", 1_104_537_600_000),
        ("%Y%m%d%H%M%S%f", 20240101000000123, NEW_YEAR + 123),
        ("%d/%m/%Y %I:%M %p", "1/1/2024 12:30 PM", NEW_YEAR + DAY // 2 + 1_800_000),
        ("%a %b %d %H:%M:%S %z %Y", "Mon Jan 01 01:00:00 +0100 2024", NEW_YEAR),
    ],
)
def test_a_format_reads_what_it_says(time_format: str, given: object, expected: int) -> None:
    check_time_format(time_format)
    assert read(given, time_format) == expected


@pytest.mark.parametrize(
    ("time_format", "given", "says"),
    [
        ("seconds", TIME, "not between the years 1000 and 2200"),
        ("seconds", "2024-01-01", "not a number of seconds, as documents.time_format has it"),
        ("seconds", True, "time-wrong-type: field 'at' is a boolean, not a number of seconds"),
        ("seconds", math.inf, "not a number of seconds"),
        ("excel", 60, "no serial day of Excel"),
        ("excel", 0, "no serial day of Excel"),
        ("excel", "45292,5", "not a serial day of Excel"),
        ("%Y%m%d", 20240101.5, "no whole number"),
        ("%Y%m%d", 20241301, "not what documents.time_format '%Y%m%d' says"),
        ("%Y%m%d", "2024111", "not what documents.time_format '%Y%m%d' says"),
        ("%Y%m%d", "", "not a time"),
        ("%Y%m%d", {}, "time-wrong-type: field 'at' is an object, not a time"),
    ],
)
def test_a_format_reads_nothing_else(time_format: str, given: object, says: str) -> None:
    assert says in refused(given, time_format)


@given(
    st.one_of(
        st.text(),
        st.text("0123456789-+:.TZ W eE/%", max_size=30),
        st.integers(),
        st.integers(-(10**22), 10**22),
        st.floats(),
        st.booleans(),
        st.just([]),
        st.just({}),
    ),
    st.sampled_from(["auto", "excel", *UNITS, "%Y%m%d", "%d.%m.%Y %H:%M", "%y%j", "%Y-%m-%d%z"]),
)
def test_whatever_is_given_is_a_time_of_the_known_years_or_has_a_reason(
    given: object, time_format: str
) -> None:
    try:
        time = read(given, time_format)
    except Unreadable as error:
        assert error.code in {"bad-time", "time-wrong-type"}  # noqa: PT017 -- one of two outcomes
    else:
        assert datetime(1000, 1, 1, tzinfo=UTC) <= EPOCH + timedelta(milliseconds=time)
        assert EPOCH + timedelta(milliseconds=time) < datetime(2200, 1, 1, tzinfo=UTC)
