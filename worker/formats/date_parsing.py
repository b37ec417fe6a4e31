"""Dates as people write them: ISO 8601, RFC 822 with its successors, and asctime."""

from __future__ import annotations

import re
from datetime import date

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
_ASCTIME = re.compile(
    r"(?P<weekday>[A-Za-z]+)\s+(?P<month>[A-Za-z]+)\s+(?P<day>\d\d?)"
    r"\s+(?P<hour>\d\d?):(?P<minute>\d\d)(?::(?P<second>\d\d))?"
    r"(?:\s+(?P<zone>[A-Za-z]+|[+-]\d\d:?\d\d))?\s+(?P<year>\d{4})",
    re.ASCII,
)
_COMMENT = re.compile(r"\([^()]*\)")
_MONTHS = (
    *("january", "february", "march", "april", "may", "june", "july"),
    *("august", "september", "october", "november", "december"),
)
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_LEAST_NAME = 3
_RFC_ZONES = {
    **dict.fromkeys(("Z", "UT", "UTC", "GMT"), 0),
    "EST": -5, "EDT": -4, "CST": -6, "CDT": -5, "MST": -7, "MDT": -6, "PST": -8, "PDT": -7,
}  # fmt: skip
"""The zones of RFC 822, in hours from UTC."""
_ZONES = {
    **_RFC_ZONES,
    "WET": 0, "WEST": 1, "CET": 1, "CEST": 2, "MET": 1, "MEST": 2, "MEZ": 1, "MESZ": 2,
    "EET": 2, "EEST": 3, "MSK": 3, "MSD": 4, "WAT": 1, "CAT": 2, "SAST": 2, "EAT": 3,
    "PKT": 5, "WIB": 7, "WITA": 8, "HKT": 8, "JST": 9, "KST": 9,
    "AWST": 8, "ACST": 9.5, "ACDT": 10.5, "AEST": 10, "AEDT": 11, "NZST": 12, "NZDT": 13,
    "HST": -10, "AKST": -9, "AKDT": -8,
}  # fmt: skip
"""Those of RFC 822, and abbreviations that have had one offset in the IANA time zone database since
1985, or its German name. AST, BST, GST and SST mean several zones each."""
_MSK_AHEAD = range(date(2011, 3, 27).toordinal(), date(2014, 10, 26).toordinal())
"""The days on which MSK was four hours from UTC."""
_TWO_DIGITS = ((50, 2000), (100, 1900), (1000, 1900))
"""What RFC 2822 adds to years of fewer than four digits, by the least year that it isn't for."""


def date_ms(text: str) -> int:
    """Return a date's milliseconds since 1970, rounded down; without a zone, it is in UTC.

    ISO 8601: a day, a day of a week or a year, and maybe a time. 24:00:00 is the end of the day; a
    leap second, :60, is the first of the next minute. RFC 822, 2822 and 5322: the weekday, the
    seconds, the time and the zone may be missing, and comments may be anywhere. What asctime and
    the command date write.

    Raises:
        ValueError: the text is neither; the message says what it is or has instead.
    """
    if len(text) > _LONGEST:
        raise ValueError("too long for a date")
    found = _ISO.fullmatch(text)
    if found is not None:
        return _ms(_iso_day(found), found)
    text = _without_comments(text)
    found = _RFC.fullmatch(text) or _ASCTIME.fullmatch(text)
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
    return (seconds - _offset(parts["zone"], day)) * 1_000 + fraction


def _offset(zone: str | None, day: int) -> int:
    """Return how many seconds a zone is ahead of UTC on a day."""
    if zone is None:
        return 0
    if zone[0] not in "+-":
        name = zone.upper()
        ahead = _ZONES.get(name)
        if ahead is None:
            raise ValueError(
                f"its zone {zone[:20]!r} has no certain offset, as those of RFC 822"
                f" ({', '.join(_RFC_ZONES)}), CET, EET, MSK, JST and the like have"
            )
        return int((ahead + (name == "MSK" and day in _MSK_AHEAD)) * 3_600)
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
