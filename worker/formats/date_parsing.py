"""Dates as people write them: ISO 8601, and RFC 822 with its successors."""

from __future__ import annotations

import re
from datetime import date

__all__ = ["date_ms"]

_LONGEST = 100
"""Characters of a date with its comments. No longer text is searched: whoever wrote it chose it."""
_EPOCH = date(1970, 1, 1).toordinal()
_ISO = re.compile(
    r"(?P<year>\d{4})"
    r"(?:(?P<dash>-?)(?P<month>\d\d)(?P=dash)(?P<day>\d\d)"
    r"|-?W(?P<week>\d\d)(?:-?(?P<weekday>\d))?"
    r"|-(?P<of_year>\d{3}))"
    r"(?:[Tt ](?P<hour>\d\d)"
    r"(?::?(?P<minute>\d\d)(?::?(?P<second>\d\d)(?:[.,](?P<fraction>\d+))?)?)?"
    r" ?(?P<zone>[A-Za-z]+|[+-]\d\d(?::?\d\d)?)?)?",
    re.ASCII,
)
_RFC = re.compile(
    r"(?:(?P<weekday>[A-Za-z]+)(?:\s*,\s*|\s+))?"
    r"(?P<day>\d\d?)[\s-]+(?P<month>[A-Za-z]+)[\s-]+(?P<year>\d{2,4})"
    r"(?:\s+(?P<hour>\d\d?)\s*:\s*(?P<minute>\d\d)(?:\s*:\s*(?P<second>\d\d))?"
    r"\s*(?P<zone>[A-Za-z]+|[+-]\d\d:?\d\d)?)?",
    re.ASCII,
)
_COMMENT = re.compile(r"\([^()]*\)")
_MONTHS = (
    *("january", "february", "march", "april", "may", "june", "july"),
    *("august", "september", "october", "november", "december"),
)
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_LEAST_NAME = 3
_ZONES = {
    **dict.fromkeys(("Z", "UT", "UTC", "GMT"), 0),
    "EST": -5, "EDT": -4, "CST": -6, "CDT": -5, "MST": -7, "MDT": -6, "PST": -8, "PDT": -7,
}  # fmt: skip
"""The zones of RFC 822, in hours from UTC. Other abbreviations mean several zones each."""
_TWO_DIGITS = ((50, 2000), (100, 1900), (1000, 1900))
"""What RFC 2822 adds to years of fewer than four digits, by the least year that it isn't for."""


def date_ms(text: str) -> int:
    """Return a date's milliseconds since 1970, rounded down; without a zone, it is in UTC.

    ISO 8601: a day, a day of a week or a year, and maybe a time. 24:00:00 is the end of the day; a
    leap second, :60, is the first of the next minute. RFC 822, 2822 and 5322: the weekday, the
    seconds, the time and the zone may be missing, and comments may be anywhere.

    Raises:
        ValueError: the text is neither; the message says what it is or has instead.
    """
    if len(text) > _LONGEST:
        raise ValueError("too long for a date")
    found = _ISO.fullmatch(text)
    if found is not None:
        return _ms(_iso_day(found), found)
    found = _RFC.fullmatch(_without_comments(text))
    if found is None:
        raise ValueError("neither ISO 8601 nor RFC 822")
    return _ms(_rfc_day(found), found)


def _iso_day(found: re.Match[str]) -> int:
    """Return the number of a day, as `date.toordinal` counts."""
    year = int(found["year"])
    if found["week"]:
        return date.fromisocalendar(
            year, int(found["week"]), int(found["weekday"] or 1)
        ).toordinal()
    if found["of_year"]:
        number = int(found["of_year"])
        day = date(year, 1, 1).toordinal() + number - 1
        if not number or date.fromordinal(day).year != year:
            raise ValueError(f"its year has no day {number}")
        return day
    return date(year, int(found["month"]), int(found["day"])).toordinal()


def _rfc_day(found: re.Match[str]) -> int:
    if found["weekday"]:
        _number(found["weekday"], _WEEKDAYS)
    year = int(found["year"])
    if len(found["year"]) < len("2024"):
        year += next(added for below, added in _TWO_DIGITS if year < below)
    return date(year, _number(found["month"], _MONTHS), int(found["day"])).toordinal()


def _number(name: str, names: tuple[str, ...]) -> int:
    """Return the number of a weekday or month from 1; its name may be cut to three letters."""
    for number, each in enumerate(names, 1):
        if len(name) >= _LEAST_NAME and each.startswith(name.lower()):
            return number
    raise ValueError(f"{name[:20]!r} is no English weekday or month")


def _ms(day: int, found: re.Match[str]) -> int:
    """Return the ms since 1970 of a day and the time that was found beside it."""
    parts = found.groupdict()
    hour, minute, second = (int(parts[name] or 0) for name in ("hour", "minute", "second"))
    fraction = int(f"{parts.get('fraction') or ''}000"[:3])
    within = minute < 60 and second <= 60 and hour < 24  # noqa: PLR2004 -- of a clock
    if not within and (hour, minute, second, int(parts.get("fraction") or 0)) != (24, 0, 0, 0):
        raise ValueError("no day has its time")
    seconds = (day - _EPOCH) * 86_400 + hour * 3_600 + minute * 60 + second
    return (seconds - _offset(parts["zone"])) * 1_000 + fraction


def _offset(zone: str | None) -> int:
    """Return how many seconds a zone is ahead of UTC."""
    if zone is None:
        return 0
    if zone[0] not in "+-":
        hours = _ZONES.get(zone.upper())
        if hours is None:
            raise ValueError(f"its zone {zone[:20]!r} isn't one of {', '.join(_ZONES)}")
        return hours * 3_600
    hours, minutes = int(zone[1:3]), int(zone[3:].removeprefix(":") or 0)
    if hours > 23 or minutes > 59:  # noqa: PLR2004 -- of a clock
        raise ValueError(f"no zone is {zone} from UTC")
    return (hours * 3_600 + minutes * 60) * (-1 if zone[0] == "-" else 1)


def _without_comments(text: str) -> str:
    """Return a text without what is in parentheses, which may be nested."""
    before = None
    while before != text:
        before, text = text, _COMMENT.sub(" ", text)
    return text.strip()
