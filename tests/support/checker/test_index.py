"""An index that isn't the one its log gives is found, whatever differs."""

from __future__ import annotations

import struct
from collections.abc import Callable

import pytest

from tests.support.checker.index import Dump, entries, index_differences

Doctor = Callable[[Dump], Dump]


def bucket(*found: tuple[int, int]) -> bytes:
    return b"".join(s.to_bytes(8, "little") + t.to_bytes(8, "little") for s, t in found)


KEY, OTHER = b"\x03keykeyke", b"\x04keykeyke"
GOOD = Dump(
    {KEY: bucket((10, 1_000), (12, 1_001)), OTHER: bucket((10, 1_000))},
    {10: b"record of 10", 12: b"record of 12"},
    offset=7,
    now=1_001,
)


def holding(key: bytes, *found: tuple[int, int]) -> Doctor:
    return lambda good: good._replace(buckets={**good.buckets, key: bucket(*found)})


def without(key: bytes) -> Doctor:
    return lambda good: good._replace(
        buckets={name: value for name, value in good.buckets.items() if name != key}
    )


def recording(sequence: int, record: bytes | None) -> Doctor:
    return lambda good: good._replace(records={**good.records, sequence: record})


def test_entries_are_read_as_they_are_stored() -> None:
    assert entries(GOOD.buckets[KEY]) == [(10, 1_000), (12, 1_001)]


def test_equal_indexes_have_no_differences() -> None:
    assert list(index_differences(GOOD, GOOD)) == []
    again = Dump(dict(reversed(list(GOOD.buckets.items()))), dict(GOOD.records), 7, 1_001)
    assert list(index_differences(GOOD, again)) == []


@pytest.mark.parametrize(
    ("doctor", "problem"),
    [
        (holding(KEY, (10, 1_000)), "holds [(10, 1000)], and [(10, 1000), (12, 1001)] once"),
        (holding(KEY, (12, 1_001), (10, 1_000)), "holds [(12, 1001), (10, 1000)]"),
        (holding(KEY, (10, 1_000), (12, 1_002)), "(12, 1002)"),
        (holding(KEY, (10, 1_000), (13, 1_001)), "(13, 1001)"),
        (holding(KEY, (10, 1_000), (12, 1_001), (12, 1_001)), "(12, 1001), (12, 1001)"),
        (holding(b"\x05keykeyke", (10, 1_000)), "of band 5 holds [(10, 1000)], and isn't there"),
        (without(KEY), "of band 3 is missing: rebuilt, it holds [(10, 1000), (12, 1001)]"),
        (recording(10, b"another"), "the record of document 10 is"),
        (recording(10, None), "document 10 has no record"),
        (recording(13, b"record of 13"), "the record of document 13 is"),
        (lambda good: good._replace(offset=8), "offset is 8, and 7 once rebuilt"),
        (lambda good: good._replace(now=1_002), "now is 1002, and 1001 once rebuilt"),
    ],
)
def test_a_difference_is_named(doctor: Doctor, problem: str) -> None:
    (found,) = index_differences(doctor(GOOD), GOOD)
    assert problem in found


def test_what_is_no_list_of_entries_is_refused() -> None:
    with pytest.raises(struct.error, match="multiple of 16 bytes"):
        entries(b"\0" * 17)
