"""The time in a document's field, in ms since 1970, or why it can't be read."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import Final, TypeAlias

from worker.fields import AUTO, EXCEL, UNITS, width
from worker.formats.date_parsing import date_ms
from worker.formats.unreadable import Unreadable, kind_of

TimeReader: TypeAlias = Callable[[object, str], int]
"""Returns the time that a field's value is, in ms since 1970, rounded down; takes the value and the
field's name, and raises `Unreadable` if it isn't a time."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NAIVE_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 -- what is without a zone is in UTC


def since_epoch(moment: datetime) -> int:
    """Return a moment in ms, rounded down; without a zone, it is in UTC."""
    since = moment - (_NAIVE_EPOCH if moment.tzinfo is None else _EPOCH)
    return (since.days * 86_400 + since.seconds) * 1_000 + since.microseconds // 1_000


FIRST_TIME: Final = since_epoch(datetime(1000, 1, 1, tzinfo=UTC))
LAST_TIME: Final = since_epoch(datetime(2200, 1, 1, tzinfo=UTC))
"""Times are from the first up to the last, exclusively."""

_PLAUSIBLE = (
    since_epoch(datetime(1990, 1, 1, tzinfo=UTC)) // 1_000,
    since_epoch(datetime(2032, 1, 1, tzinfo=UTC)) // 1_000,
)
"""The seconds since 1970 that a number without a unit may mean. As ms, µs or ns, they are other
numbers. A number that begins with a year from 1957 on, such as 2024010112, is none of all these."""
_NUMBER = re.compile(r"[+-]?\d{1,40}(\.\d{1,40})?([eE][+-]?\d{1,3})?", re.ASCII)
_SHOWN = 40
_MOST = 1 << 70
"""No number from here on is a time in any unit."""

_CALENDAR = {
    4: ("%Y",),
    6: ("%Y%m", "%y%m%d"),
    8: ("%Y%m%d", "%d%m%Y"),
    10: ("%Y%m%d%H",),
    12: ("%Y%m%d%H%M", "%y%m%d%H%M%S"),
    14: ("%Y%m%d%H%M%S",),
    17: ("%Y%m%d%H%M%S%f",),
    20: ("%Y%m%d%H%M%S%f",),
}
"""What a date looks like that is written as a number, by its digits."""
_CALENDAR_YEARS = range(1800, 2200)
_SERIALS = range(20_000, 80_000)
"""What days of the years 1954 to 2119 are in Excel."""
_SERIAL_EPOCH = 25_569
"""The serial day of 1970-01-01."""
_NO_SUCH_DAY = 60
"""The serial day of 1900-02-29, which there wasn't: earlier ones are counted from a day later."""

_SETTING = "documents.time_format (--time-format)"


def time_reader(time_format: str = AUTO) -> TimeReader:
    """Return what reads times of a format that `worker.fields` accepts."""
    if time_format == AUTO:
        return _automatic
    if time_format == EXCEL:
        return _of_serial
    if time_format in UNITS:
        return partial(_of_unit, time_format)
    return partial(_of_pattern, time_format, width(time_format))


def _automatic(given: object, field: str) -> int:
    """Read ISO 8601, RFC 822, and numbers that can only be in one unit."""
    if type(given) is str:
        # Python also takes other marks between day and time, and reads digits as both.
        if given[4:5] == "-" and given[10:11] in "Tt ":
            try:
                return _checked(since_epoch(datetime.fromisoformat(given)), given, field)
            except ValueError:
                pass
        text = given.strip()
        if not _NUMBER.fullmatch(text):
            try:
                return _checked(date_ms(text), given, field)
            except ValueError as error:
                raise _wrong(
                    field, given, f"{error}; if it is a time, {_SETTING} takes its pattern"
                ) from None
    number = _number(given, field)
    for per_second in UNITS.values():
        if _PLAUSIBLE[0] * per_second <= number < _PLAUSIBLE[1] * per_second:
            return _ms(number, per_second)
    raise _wrong(
        field,
        given,
        "no time from 1990 to 2031 in seconds, milliseconds, microseconds or nanoseconds;"
        f" {_looks_like(number)}",
    )


def _of_unit(unit: str, given: object, field: str) -> int:
    number = _number(given, field, f"a number of {unit}, as documents.time_format has it")
    return _checked(_ms(number, UNITS[unit]), given, field)


def _of_serial(given: object, field: str) -> int:
    """Read the days since 1900 that Excel counts; those of its other system, since 1904, differ."""
    number = _number(given, field, "a serial day of Excel, as documents.time_format has it")
    if number < 1 or _NO_SUCH_DAY <= number < _NO_SUCH_DAY + 1:
        raise _wrong(field, given, "no serial day of Excel, as documents.time_format has it")
    days = number - _SERIAL_EPOCH + (number < _NO_SUCH_DAY)
    # A day's fraction has fewer digits than a µs takes.
    return _checked(round(days * 86_400_000), given, field)


def _of_pattern(pattern: str, digits: int, given: object, field: str) -> int:
    text = given.strip() if isinstance(given, str) else ""
    if not text:
        number = _number(given, field)
        if number != int(number):
            raise _wrong(field, given, "no whole number")
        text = str(int(number))
    if text.isdecimal():
        text = text.zfill(digits)  # A number has lost its leading zeros.
    try:
        read = datetime.strptime(text, pattern)  # noqa: DTZ007 -- without a zone, it is in UTC
    except ValueError:
        raise _wrong(field, given, f"not what documents.time_format {pattern!r} says") from None
    return _checked(since_epoch(read), given, field)


def _number(given: object, field: str, what: str = "a time") -> float:
    """Return a value that is a number, or the digits of one."""
    number = given
    if isinstance(given, str):
        found = _NUMBER.fullmatch(given.strip())
        if found is None:
            raise _wrong(field, given, f"not {what}")
        number = float(given) if found[1] or found[2] else int(given)
    if isinstance(number, bool) or not isinstance(number, int | float):
        raise Unreadable("time-wrong-type", f"field {field!r} is {kind_of(given)}, not {what}")
    if not -_MOST < number < _MOST:  # Nor is what is no number at all.
        raise _wrong(field, given, f"not {what}")
    return number


def _ms(number: float, per_second: int) -> int:
    """Return a time in ms, rounded down; ``per_second`` says in which unit it is."""
    if isinstance(number, int):
        return number * 1_000 // per_second
    # The nearest µs is what was meant: floats have no more digits.
    unit = 1_000_000 / per_second
    return round(number * unit if unit >= 1 else number / (per_second // 1_000_000)) // 1_000


def _checked(time: int, given: object, field: str) -> int:
    if FIRST_TIME <= time < LAST_TIME:
        return time
    raise _wrong(field, given, "not between the years 1000 and 2200")


def _looks_like(number: float) -> str:
    """Return what a number may be instead of a time since 1970, and what reads it."""
    if number == int(number):
        for pattern in _CALENDAR.get(len(str(int(number))), ()):
            try:
                year = datetime.strptime(str(int(number)), pattern).year  # noqa: DTZ007 -- the year
            except ValueError:
                continue
            if year in _CALENDAR_YEARS:
                return f"it looks like a date: set {_SETTING} to {pattern}"
    if int(number) in _SERIALS:
        return f"it looks like a serial day of a spreadsheet: set {_SETTING} to {EXCEL}"
    return f"if it is a time, {_SETTING} says in which unit"


def _wrong(field: str, given: object, why: str) -> Unreadable:
    text = str(given)
    cut = text[:_SHOWN]
    shown = f"{cut!r}" if isinstance(given, str) else cut
    more = "…" if len(text) > _SHOWN else ""
    return Unreadable("bad-time", f"field {field!r} is {shown}{more}: {why}")
