"""Records are read by their numbers, however many came with each write."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rocksdict import Options, Rdict, WriteBatch

from lsh.index.layout import pack_records, unpack_record, with_others, without_sketch
from lsh.index.records import Records
from worker.index.keyspace import GONE, RECORDS, number_in, number_key
from worker.index.recent_records import RecentPages, RecentRecords
from worker.index.record_pages import DOCUMENTS_A_PAGE, RecordPages, unpack_page


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(counts=st.lists(st.integers(0, 3 * DOCUMENTS_A_PAGE), max_size=6), reopened=st.booleans())
def test_records_are_read_by_their_numbers(
    tmp_path: Path, counts: list[int], *, reopened: bool
) -> None:
    written: list[bytes] = []
    found: dict[bytes, bytes] = {}

    def get(keys: list[bytes]) -> list[bytes | None]:
        return [found.get(key) for key in keys]

    db = Rdict(str(tmp_path / "db"), Options(raw_mode=True))
    pages = RecordPages(get, 0)
    for count in counts:
        batch = WriteBatch(raw_mode=True)
        numbers = range(len(written), len(written) + count)
        some = [b"%d" % number * (number % 7) for number in numbers]
        pages.add(batch, some)
        db.write(batch)
        written += some
        keys = [number_key(RECORDS, page) for page in range(20)]
        found = {key: value for key in keys if (value := db.get(key)) is not None}
        if reopened:
            pages = RecordPages(get, len(written))
    assert pages.inserted == len(written)
    every = range(len(written) + 2)
    assert pages.read(every) == [*written, None, None]
    assert pages.read(every[::5]) == [*written, None, None][::5]
    db.close()
    Rdict.destroy(str(tmp_path / "db"))


def packed_records(count: int) -> list[bytes]:
    """Return records of documents that have their own number in every part."""
    numbers = np.arange(count)
    return pack_records(
        numbers.astype(np.uint64),
        numbers,
        numbers.astype(np.uint32),
        np.repeat(numbers.astype(np.uint8)[:, None], 16, axis=1),
        [b"%d" % number * (30 if number % 7 == 0 else 1) for number in numbers.tolist()],
        new=np.repeat(numbers[:, None] % 2 == 0, 5, axis=1),
    )


def packed_page(records: list[bytes], page: int) -> bytes:
    some = records[page * DOCUMENTS_A_PAGE :][:DOCUMENTS_A_PAGE]
    return b"".join([struct.pack(f"<{1 + len(some)}H", len(some), *map(len, some)), *some])


def told(records: Records) -> list[tuple[object, ...]]:
    """Return each record as a tuple."""
    return list(zip(*(part.tolist() for part in records), strict=True))


def test_what_is_written_is_at_hand_once_something_was_read() -> None:
    written = packed_records(40)
    written[30], written[31] = without_sketch(written[30]), with_others(written[31])
    asked: list[bytes] = []

    def get(keys: list[bytes]) -> list[bytes | None]:
        asked.extend(keys)
        return [None if key == GONE else packed_page(written, number_in(key)) for key in keys]

    pages = RecordPages(get, 0, RecentRecords(1 << 20), RecentPages(0))
    batch = WriteBatch(raw_mode=True)
    pages.add(batch, written[:24])
    assert pages.recent.size_bytes == 0
    pages.recorded(np.array([3]), 16)
    asked.clear()
    pages.add(batch, written[24:])
    got = pages.recorded(np.arange(24, 40), 16)
    assert asked == []
    assert told(got) == told(Records.unpacked(written[24:], 16))
    assert got.sketches[6].tolist() == [0] * 16


@pytest.mark.parametrize("most", [0, 1_500, 1 << 20])
def test_records_in_arrays_are_those_of_the_bytes_however_many_are_kept(most: int) -> None:
    """Some were forgotten, some moved, and then it isn't known which buckets were new."""
    written = packed_records(60)
    written[5], written[6] = with_others(written[5]), b""
    found: dict[bytes, bytes] = {}
    batch = WriteBatch(raw_mode=True)
    pages = RecordPages(lambda keys: [found.get(key) for key in keys], 0, RecentRecords(most))
    pages.add(batch, written)
    for page in range(-(-60 // DOCUMENTS_A_PAGE)):
        found[number_key(RECORDS, page)] = packed_page(written, page)
    chance = np.random.default_rng(5)
    for _ in range(40):
        numbers = np.flatnonzero(chance.random(64) < 0.3)
        packed = [written[number] if number < 60 else None for number in numbers.tolist()]
        got = pages.recorded(numbers, 16)
        assert told(got._replace(new=got.new[:, :0])) == told(
            Records.unpacked(packed, 16)._replace(new=got.new[:, :0])
        )
        known = [unpack_record(one).new if one else b"" for one in packed]
        assert [row.tobytes().rstrip(b"\0") for row in got.new] == [
            one.rstrip(b"\0") for one in known
        ]
    pages.recorded(np.array([8, 9]), 16)
    pages.forget(batch, [8])
    assert not pages.recent.get(np.array([8]))[0].any()


@pytest.mark.parametrize("page", [b"", b"\1", b"\2\0\1\0", b"\1\0\5\0abc", b"\1\0\1\0abc"])
def test_what_is_no_page_is_refused(page: bytes) -> None:
    with pytest.raises(ValueError, match="are not a page of"):
        unpack_page(page)


def test_a_last_page_that_is_missing_or_short_is_refused() -> None:
    with pytest.raises(ValueError, match="are not a page of records"):
        RecordPages(lambda keys: [None] * len(keys), 3)
    with pytest.raises(ValueError, match="its last page has 1 of 3 records"):
        RecordPages(lambda _keys: [b"\1\0\3\0abc"], 3)
    RecordPages(lambda keys: [None] * len(keys), DOCUMENTS_A_PAGE)
