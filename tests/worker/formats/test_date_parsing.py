"""Dates as people write them, each against what Python says of the same moment."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worker.formats.date_parsing import date_ms


def ms(*parts: int, offset: float = 0) -> int:
    moment = datetime(*parts, tzinfo=timezone(timedelta(hours=offset)))  # type: ignore[arg-type, misc]
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)


MOMENTS = st.datetimes(
    min_value=datetime(1000, 1, 2),  # noqa: DTZ001 -- as hypothesis takes it
    max_value=datetime(2199, 12, 30),  # noqa: DTZ001 -- the same
    timezones=st.just(UTC),
)
ZONES = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))


@given(MOMENTS, ZONES)
def test_iso_8601_is_read_exactly_and_rounded_down(moment: datetime, zone: timezone) -> None:
    expected = (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)
    there = moment.astimezone(zone)
    assert date_ms(there.isoformat()) == expected
    assert date_ms(f"{there:%Y%m%dT%H%M%S,%f999%z}") == expected
    year, week, day = there.isocalendar()
    assert date_ms(f"{year:04}-W{week:02}-{day} {there:%H:%M:%S.%f%z}") == expected
    assert date_ms(f"{there:%Y-%jt%H:%M:%S.%f %z}") == expected


@given(MOMENTS, ZONES)
def test_mail_is_read_to_the_second(moment: datetime, zone: timezone) -> None:
    there = moment.replace(microsecond=0).astimezone(zone)
    expected = (there - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)
    assert date_ms(format_datetime(there)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2024-01-31T24:00:00", ms(2024, 2, 1)),
        ("2024-12-31T24:00Z", ms(2025, 1, 1)),
        ("2016-12-31T23:59:60Z", ms(2017, 1, 1)),
        ("2016-12-31T23:59:60.5Z", ms(2017, 1, 1, 0, 0, 0, 500_000)),
        ("2024-W01", ms(2024, 1, 1)),
        ("2020W537", ms(2021, 1, 3)),
        ("2024-366", ms(2024, 12, 31)),
        ("2024-01-01 10:00:00 UTC", ms(2024, 1, 1, 10)),
        ("2024-01-01 10:00:00 +01", ms(2024, 1, 1, 10, offset=1)),
        ("Mon, 06 Jan 2025 10:00:00 GMT", ms(2025, 1, 6, 10)),
        ("Mon, 06 Jan 2025 10:00:00 +0530", ms(2025, 1, 6, 10, offset=5.5)),
        ("Mon, 06 Jan 2025 10:00:00 -0000", ms(2025, 1, 6, 10)),
        ("Mon, 06 Jan 2025 10:00:00", ms(2025, 1, 6, 10)),
        ("Mon, 06 Jan 2025 10:00:00 -03:30", ms(2025, 1, 6, 10, offset=-3.5)),
        ("06 Jan 2025 10:00 EST", ms(2025, 1, 6, 10, offset=-5)),
        ("6 January 2025 10:00 pdt", ms(2025, 1, 6, 10, offset=-7)),
        ("6 Jan 2025", ms(2025, 1, 6)),
        ("Mon,06 Jan 2025 23:59:60 UT", ms(2025, 1, 7)),
        ("Sunday, 06-Nov-94 08:49:37 GMT", ms(1994, 11, 6, 8, 49, 37)),
        ("1 Jan 49 00:00 Z", ms(2049, 1, 1)),
        ("1 Jan 50 00:00 Z", ms(1950, 1, 1)),
        ("1 Jan 124 00:00 Z", ms(2024, 1, 1)),
        ("Mon, 01 Jul 2024 12:15:00 CET", ms(2024, 7, 1, 12, 15, offset=1)),
        ("Mon, 01 Jul 2024 12:15:00 CEST", ms(2024, 7, 1, 12, 15, offset=2)),
        ("Sat, 26 Mar 2011 12:00 MSK", ms(2011, 3, 26, 12, offset=3)),
        ("Sun, 27 Mar 2011 12:00 MSK", ms(2011, 3, 27, 12, offset=4)),
        ("Sun, 26 Oct 2014 12:00 MSK", ms(2014, 10, 26, 12, offset=3)),
        ("2024-01-01 10:00:00 ACST", ms(2024, 1, 1, 10, offset=9.5)),
        ("Mon Jan  6 10:00:00 2025", ms(2025, 1, 6, 10)),
        ("Mon Jan 6 10:00 MEZ 2025", ms(2025, 1, 6, 10, offset=1)),
        ("Mon (a (nested) day), 06 Jan 2025 10:00:00 +0100 (CET)", ms(2025, 1, 6, 9)),
    ],
)
def test_other_forms_are_read(text: str, expected: int) -> None:
    assert date_ms(text) == expected


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("Mon, 06 Jan 2025 10:00:00 GST", "its zone 'GST' has no certain offset, as those of RFC"),
        ("06 Jan 2025 10:00 BST", "its zone 'BST' has no certain offset"),
        ("06 Jan 2025 10:00 A", "its zone 'A' has no certain offset"),
        ("Lun, 06 Jan 2025 10:00 GMT", "'Lun' is no English weekday or month"),
        ("06 Foo 2025", "'Foo' is no English weekday or month"),
        ("06 J 2025", "'J' is no English weekday or month"),
        ("31 Feb 2025", "day "),
        ("2023-366", "its year has no day 366"),
        ("2023-000", "its year has no day 0"),
        ("2023-W53", "Invalid week"),
        ("2024-13-01", "month must be in"),
        ("2024-01-01T24:00:01", "no day has its time"),
        ("2024-01-01T24:00:00.0001", "no day has its time"),
        ("2024-01-01T10:60", "no day has its time"),
        ("2024-01-01T10:00:61", "no day has its time"),
        ("2024-01-01T10:00+25:00", "no zone is"),
        ("-0044-03-15", "neither ISO 8601 nor RFC 822"),
        ("+12024-01-01", "neither ISO 8601 nor RFC 822"),
        ("2024-01-01x10:00", "neither ISO 8601 nor RFC 822"),
        ("\uff12\uff10\uff12\uff14-01-01", "neither ISO 8601 nor RFC 822"),
        ("", "neither ISO 8601 nor RFC 822"),
        ("(" * 101, "too long for a date"),
    ],
)
def test_what_is_no_date_is_not_guessed_at(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(why)}"):
        date_ms(text)
