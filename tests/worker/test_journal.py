"""What a process finds of its last life's notes."""

from __future__ import annotations

from pathlib import Path

import pytest

from worker.journal import Journal


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "notes"


def test_the_last_value_is_found_again_without_a_close(path: Path) -> None:
    first = Journal(path)
    first.write(b"a long value")
    first.write(b"short")
    assert Journal(path).read() == b"short"
    first.write(b"")
    assert Journal(path).read() == b""


def test_a_new_journal_has_no_value(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert Journal(path).read() is None
    assert Journal(path).read() is None
    assert caplog.messages == []


@pytest.mark.parametrize("left", [b"nonsense", b"\xff" * 500, b"\n", b"neardup journal 1 z z\n"])
def test_what_is_no_journal_is_ignored_with_a_line(
    path: Path, caplog: pytest.LogCaptureFixture, left: bytes
) -> None:
    path.write_bytes(left)
    journal = Journal(path)
    assert journal.read() is None
    assert caplog.messages == [f"{path} is damaged, and is ignored"]
    journal.write(b"value")
    assert Journal(path).read() == b"value"


def test_a_torn_or_changed_value_is_ignored(path: Path) -> None:
    Journal(path).write(b"a value of some length")
    whole = path.read_bytes()
    for length in range(1, len(whole)):
        path.write_bytes(whole[:length])
        assert Journal(path).read() is None, length
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes((whole[place] ^ 1,)) + whole[place + 1 :])
        assert Journal(path).read() is None, place


def test_a_journal_that_cannot_be_written_says_so_once_and_stops_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    journal = Journal(tmp_path)
    journal.write(b"value")
    assert journal.read() is None
    journal.close()
    (message,) = caplog.messages
    assert message.startswith(f"{tmp_path}: Is a directory; a document that kills this worker")
