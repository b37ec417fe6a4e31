"""Mails are documents: their texts, decoded; those of a mailbox are called by their Message-IDs."""

from __future__ import annotations

import gzip
import json
import mailbox
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest

from tests.worker.cli.inputs.parts import TEXTS, documents_of, lines_of
from worker.cli.errors import CommandError
from worker.cli.inputs import Reading

BODY = "Grüße aus dem Büro.\nFrom here on, all is well.\n"


def message(number: int = 1, body: str = BODY, charset: str = "iso-8859-15") -> EmailMessage:
    made = EmailMessage()
    made["Message-ID"] = f"<{number}@example.org>"
    made["Subject"] = f"Büro {number}"
    made["From"] = "Jörg <j@example.org>"
    made["Date"] = "Wed, 31 Jan 2024 12:00:00 +0100"
    made.set_content(body, charset=charset)
    return made


def members(*files: Path, **documents: object) -> list[dict[str, Any]]:
    return [json.loads(value) for _, value in documents_of(*files, **documents)]


def test_an_eml_file_is_a_document(tmp_path: Path) -> None:
    (tmp_path / "in.eml").write_bytes(bytes(message()))
    assert members(tmp_path) == [
        {
            "id": "in.eml",
            "message_id": "<1@example.org>",
            "date": "2024-01-31T12:00:00+01:00",
            "from": "Jörg <j@example.org>",
            "subject": "Büro 1",
            "text": BODY,
        }
    ]


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
    with pytest.raises(CommandError, match=r"a\.mbox: is no mailbox"):
        lines_of(tmp_path)
    (tmp_path / "a.mbox").write_text("\n\n")
    assert lines_of(tmp_path) == []


def test_plain_text_is_taken_before_html_and_attachments_are_not(tmp_path: Path) -> None:
    made = message()
    made.add_alternative("<p>Grüße</p>", subtype="html")
    made.add_attachment("a note", filename="note.txt")
    made.add_attachment(b"\0\1", maintype="image", subtype="png", filename="a.png")
    (tmp_path / "a.eml").write_bytes(bytes(made))
    html = EmailMessage()
    html.set_content("<p>Grüße &amp; mehr</p>", subtype="html")
    (tmp_path / "b.eml").write_bytes(bytes(html))
    first, second = members(tmp_path)
    assert first["text"] == BODY
    assert second["text"] == "<p>Grüße &amp; mehr</p>\n"


@pytest.mark.parametrize(
    ("head", "body", "encoding", "expected"),
    [
        (b"", "über", None, "über"),
        (b"Content-Type: text/plain; charset=us-ascii\n", "über", None, "über"),
        (b"Content-Type: text/plain; charset=unknown-8bit\n", "über", None, "über"),
        (b"Content-Type: text/plain; charset=koi8-r\n", "привет", None, "привет"),
        (b"Content-Type: text/plain; charset=us-ascii\n", "über", "cp1252", "über"),
    ],
)
def test_charsets(
    head: bytes, body: str, encoding: str | None, expected: str, tmp_path: Path
) -> None:
    data = body.encode("koi8-r" if b"koi8" in head else encoding or "utf-8")
    (tmp_path / "a.eml").write_bytes(b"Subject: x\n" + head + b"\n" + data)
    (line,) = lines_of(tmp_path, reading=Reading(None, encoding))
    assert json.loads(line.value)["text"] == expected


def test_a_text_in_another_charset_than_it_says_is_rejected(tmp_path: Path) -> None:
    head = b"Content-Type: text/plain; charset=us-ascii\n\n"
    (tmp_path / "a.eml").write_bytes(head + b"\xfcber")
    (tmp_path / "b.eml").write_bytes(head + b"plain")
    bad, good = lines_of(tmp_path)
    assert bad.fault == "bad-encoding: the text is not in us-ascii"
    assert good.complete


def test_the_date_is_a_time_and_one_that_is_none_stays(tmp_path: Path) -> None:
    made = message()
    (tmp_path / "a.eml").write_bytes(bytes(made))
    (tmp_path / "b.eml").write_bytes(b"Date: the day before yesterday\n\nx")
    (tmp_path / "c.eml").write_bytes(b"Subject: =?x?q?=\n\nx")
    found = members(tmp_path, time_field="sent", id_field="message_id", text_fields="subject,text")
    assert [each.get("sent") for each in found] == [
        "2024-01-31T12:00:00+01:00",
        "the day before yesterday",
        None,
    ]
    assert (found[0]["message_id"], found[0]["id"]) == ("<1@example.org>", "a.eml")


def test_mails_are_texts_for_an_application_that_reads_text(tmp_path: Path) -> None:
    (tmp_path / "a.mbox").write_bytes(b"From x\n" + bytes(message()))
    (line,) = lines_of(tmp_path, reading=TEXTS, format="text")
    assert (line.key, line.value, line.named) == (b"<1@example.org>", BODY.rstrip().encode(), True)


def test_a_mail_that_is_nested_too_deeply_or_too_large_costs_itself(tmp_path: Path) -> None:
    parts = b"".join(
        b'Content-Type: multipart/mixed; boundary="%d"\n\n--%d\n' % (n, n) for n in range(3_000)
    )
    (tmp_path / "a.mbox").write_bytes(
        b"From x\nSubject: a\n" + parts + b"\n\nFrom y\nSubject: b\n\n"
        + (b"x" * 99 + b"\n") * 200_000 + b"\nFrom z\nSubject: c\n\nfine\n"
    )  # fmt: skip
    first, second, third = lines_of(tmp_path)
    assert not first.complete or json.loads(first.value)["text"].strip() == ""
    assert second.fault.startswith("too-large: the mail has 200000")
    assert json.loads(third.value)["text"] == "fine\n"
