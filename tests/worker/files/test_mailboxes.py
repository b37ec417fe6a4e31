"""The messages of mailboxes are documents: where each begins, and what is only text."""

from __future__ import annotations

import gzip
import json
import mailbox
from pathlib import Path

import pytest

from tests.worker.files.made import BODY, message
from tests.worker.files.parts import documents_of, lines_of, members
from worker.files.errors import FileError


def test_messages_of_a_mailbox_are_documents(tmp_path: Path) -> None:
    file = tmp_path / "all.mbox"
    box = mailbox.mbox(file)
    for number in range(3):
        box.add(message(number, BODY * (number + 1)))
    box.close()
    data = file.read_bytes()
    assert b"\n>From here" in data or b"base64" in data or b"=46rom" in data
    packed = tmp_path / "all.mbox.gz"
    packed.write_bytes(gzip.compress(data))
    nameless = tmp_path / "Inbox"
    nameless.write_bytes(data)
    for given in (file, packed, nameless):
        found = documents_of(given)
        assert [key for key, _ in found] == [f"{given.name}:{number}" for number in (1, 2, 3)]
        assert [json.loads(value)["id"] for _, value in found] == [
            f"<{number}@example.org>" for number in range(3)
        ]
        assert [json.loads(value)["text"] for _, value in found] == [
            BODY * (number + 1) for number in range(3)
        ]


def test_lines_that_only_look_like_a_beginning_are_text(tmp_path: Path) -> None:
    file = tmp_path / "a.mbox"
    file.write_bytes(
        b"\nFrom a@x Wed Jan 31 12:00:00 2024\nSubject: one\n\nFrom my point of view,\n\n"
        b"From then on all was well.\n\n>From a quoted line\n\n"
        b"From b@x Wed Jan 31 12:00:00 2024\r\nSubject: two\r\n\r\nsecond\r\n"
        b"\nFrom c@x Wed Jan 31 12:00:00 2024\n\nno header\n"
    )
    found = members(file)
    assert [each.get("subject") for each in found] == ["one", "two"]
    assert found[0]["text"].endswith("From then on all was well.\n\nFrom a quoted line\n")
    assert "id" not in found[0]


def test_other_files_are_no_mailbox(tmp_path: Path) -> None:
    (tmp_path / "a.mbox").write_text("BABYL OPTIONS:\n")
    with pytest.raises(FileError, match=r"a\.mbox: is no mailbox"):
        lines_of(tmp_path)
    (tmp_path / "a.mbox").write_text("\n\n")
    assert lines_of(tmp_path) == []


def test_a_mail_that_is_too_large_costs_itself(tmp_path: Path) -> None:
    (tmp_path / "a.mbox").write_bytes(
        b"From x\nSubject: b\n\n" + (b"x" * 99 + b"\n") * 200_000
        + b"\nFrom z\nSubject: c\n\nfine\n"
    )  # fmt: skip
    large, fine = lines_of(tmp_path)
    assert large.fault.startswith("too-large: the mail has 200000")
    assert json.loads(fine.value)["text"] == "fine\n"


@pytest.mark.parametrize(
    "separator",
    [
        "From a@example.org Wed Jan 31 12:00:00 2024",
        "From a@example.org Wed Jan  3 12:00:00 2024",
        "From a@example.org Wed Jan 31 12:00 2024",
        "From a@example.org Wed Jan 31 12:00:00 +0100 2024",
        "From a@example.org Wed Jan 31 12:00:00 CET 2024 remote from host",
        "From 1234@xxx Wed, 31 Jan 2024 12:00:00 +0000",
        "From a at example.org  Wed Jan 31 12:00:00 2024",
        'From "a b"@example.org Wed Jan 31 12:00:00 2024',
        "From - Wed Jan 31 12:00:00 2024",
        "From Wed Jan 31 12:00:00 2024",
    ],
)
@pytest.mark.parametrize("blank", ["\n", ""])
def test_separators_of_mailboxes(separator: str, blank: str, tmp_path: Path) -> None:
    text = (
        "Out of the blue.\n\nFrom here on: nothing\nNote: that is text\n\nFrom Mon to Fri 12:00\n"
        "a: b\n\nFrom a@example.org Wed Jan 31 12:00:00 2024\nis no beginning\n"
    )
    one = f"{separator}\nSubject: a\n\n{text}{blank}"
    for name in ("2024-January.txt", "a.mbox", "Inbox"):
        file = tmp_path / name
        file.write_text(one * 3)
        assert [found["text"] for found in members(file)] == [text] * 3


@pytest.mark.parametrize("separator", ["From ", "From -", "From somebody, today"])
def test_mailboxes_without_dates_are_divided_behind_blank_lines(
    separator: str, tmp_path: Path
) -> None:
    file = tmp_path / "a.mbox"
    file.write_text(f"{separator}\nSubject: a\n\na\nFrom text\nb: c\n\n" * 2)
    assert [found["text"] for found in members(file)] == ["a\nFrom text\nb: c\n"] * 2


def test_a_text_is_no_mailbox(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text("From here on, Mon Jan 31 12:00:00 2024\nall is well.\n")
    assert [found["id"] for found in members(file)] == ["a.txt"]
