"""Records are read by their numbers, however many came with each write."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rocksdict import Options, Rdict, WriteBatch

from worker.index.keyspace import RECORDS, number_key
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
    if written:
        pages.forget(WriteBatch(raw_mode=True), [0])
        assert pages.recent.get(0) is None
    db.close()
    Rdict.destroy(str(tmp_path / "db"))


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
