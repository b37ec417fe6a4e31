"""Mails are documents: their texts, decoded; those of a mailbox are called by their Message-IDs."""

from __future__ import annotations

import gzip
import io
import json
import mailbox
from email.message import EmailMessage
from pathlib import Path
from typing import cast

import pytest

from tests.worker.files.made import BODY, message
from tests.worker.files.parts import TEXTS, documents_of, lines_of, members
from worker.files.errors import DocumentFault, FileError
from worker.files.inputs import Inputs
from worker.files.mails import mail
from worker.files.reading import Reading
from worker.settings.documents import DocumentsSection


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


def read(data: bytes, encoding: str | None = None) -> dict[str, str]:
    """Return what is read of a mail."""
    made = mail(io.BufferedReader(cast("io.RawIOBase", io.BytesIO(data))), "x", encoding)
    return {"text": made.text, **made.known}


def alternative(plain: str, html: str, *, related: bool = False) -> bytes:
    made = EmailMessage()
    made.set_content(plain)
    made.add_alternative(html, subtype="html")
    if related:
        page = made.get_payload()[1]  # type: ignore[index]
        page.add_related(b"\0", maintype="image", subtype="png")  # type: ignore[union-attr]
    return bytes(made)


SAY = b"Your program shows no HTML. View this newsletter in a browser: https://example.org/n"
STORY = "The ministers of seven nations met on Thursday to discuss grain, and agreed on nothing."
PAGE = f"<html><head><style>p {{ color: red }}</style></head><p>{STORY}</p></html>"


@pytest.mark.parametrize("related", [False, True])
@pytest.mark.parametrize(
    ("plain", "html", "plain_is_read"),
    [
        (STORY, PAGE, True),
        (f"{STORY}\n\nhttps://example.org/unsubscribe?id=1\n{'-' * 70}\n", PAGE, True),
        (STORY.replace(" ", "\n"), PAGE, True),
        ("", PAGE, False),
        (" \n\xa0\n", PAGE, False),
        ("https://example.org/newsletter/2024/1\n", PAGE, False),
        ("This is a message in HTML. To read it, view it in a browser of your own.", PAGE, False),
        ("view this in a browser", "<p>view this in a browser</p>", True),
        ("see the attachment", "<img src=cid:1>", True),
        ("今日はいい天気です", "<p>今日は<br>いい天気です</p>", True),
        ("ブラウザで見て", "<p>今日はいい天気です</p>", False),
    ],
)
def test_of_alternatives_the_one_with_the_text_is_read(
    *, plain: str, html: str, plain_is_read: bool, related: bool
) -> None:
    found = read(alternative(plain, html, related=related))["text"]
    assert found.strip() == (plain if plain_is_read else html).strip()


def test_two_newsletters_whose_plain_parts_are_equal_are_different(tmp_path: Path) -> None:
    for number, html in enumerate((PAGE, PAGE.replace("grain", "fish"))):
        (tmp_path / f"{number}.eml").write_bytes(alternative(SAY.decode(), html))
    assert len({found["text"] for found in members(tmp_path)}) == 2


def nested(count: int, kind: bytes = b"multipart") -> bytes:
    one = b'Content-Type: multipart/mixed; boundary="%d"\n\n--%d\n'
    if kind == b"message":
        return b"Content-Type: message/rfc822\n\n" * count + b"Subject: x\n\ntext"
    return b"".join(one % (n, n) for n in range(count)) + b"\ntext"


def parts(count: int) -> bytes:
    return b'Content-Type: multipart/mixed; boundary="b"\n\n' + b"--b\n\nx\n" * count


@pytest.mark.parametrize(
    ("good", "bad", "fault"),
    [
        (parts(999), parts(1_000), "too-large: the mail has more than 1000 parts"),
        (parts(9), parts(2_000_000), "too-large: the mail has more than 1000 parts"),
        (nested(20), nested(21), "too-deep: the mail's parts have more than 20 levels"),
        (nested(20), nested(100_000), "too-deep: the mail's parts have more than 20 levels"),
        (
            nested(20, b"message"),
            nested(10_000, b"message"),
            "too-deep: the mail's parts have more",
        ),
        *(
            (
                name + b": " + piece * (8_000 // len(piece)) + b"\n\ntext",
                name + b": " + piece * (10_000_000 // len(piece)) + b"\n\ntext",
                f"too-large: the mail's field {name.decode().lower()} has ",
            )
            for name, piece in (
                (b"Content-Type", b"text/plain; x=1"),
                (b"Content-Type", b'text/plain; x="'),
                (b"content-type", b"text/plain; charset*0*=utf-8''a;"),
                (b"Content-Disposition", b"inline; "),
                (b"Content-Transfer-Encoding", b"8bit"),
                (b"Subject", b"=?a?q?"),
                (b"Subject", b"=?utf-8?q?=C3=BC?= "),
                (b"Subject", b"a\n "),
                (b"From", b"<"),
                (b"From", b"a@b, "),
                (b"Message-ID", b"<"),
                (b"Date", b"("),
            )
        ),
    ],
)
def test_what_a_mail_consists_of_is_bounded(good: bytes, bad: bytes, fault: str) -> None:
    assert "text" in read(good)
    with pytest.raises(DocumentFault, match=f"^{fault}"):
        read(bad)


def test_other_fields_and_long_lines_are_skipped() -> None:
    fields = b"".join(b"X-%d: %d\n" % (n, n) for n in range(50_000))
    long = b"To: " + b"a@b, " * 200_000 + b"\n\tc@d\nReceived: " + b"(" * 1_000_000 + b"\n"
    assert read(fields + long + b"Subject: last\n\ntext") == {"subject": "last", "text": "text"}


MIXED = b"Content-Type: multipart/mixed; boundary=b\n\nno\n"


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"no header\nat all", {"text": "no header\nat all"}),
        (b"\ntext", {"text": "text"}),
        (b"Subject: a", {"subject": "a", "text": ""}),
        (b"Subject: a\nno field\n\ntext", {"subject": "a", "text": "no field\n\ntext"}),
        (b"From x Wed\nSubject : a\r\n\r\ntext", {"subject": "a", "text": "text"}),
        (b"SUBJECT: =?utf-8?B?R3LDvA==?=\n =?UTF-8?q?=C3=9Fe?=, =?iso-8859-1*de?q?=FC?=\n\n",
         {"subject": "Gr\xfc\xdfe, \xfc", "text": ""}),
        (b"Subject: =?utf-8?b?w?= =?utf-8?b?w7w=?= =?x-sjis?q?=93=FA?=\n\n",
         {"subject": "\xfc\u65e5", "text": ""}),
        (b"Subject: =?utf-8?q?=C3?=\n =?utf-8?q?=BC_a?=\n\n", {"subject": "\xfc a", "text": ""}),
        (b"Subject: gr\xfc\xdfe =?x?q?=?\n\n", {"subject": "gr\xfc\xdfe =?x?q?=?", "text": ""}),
        (b"Content-Type: text/plain; charset*=us-ascii'en'koi8-r\n\n\xc1", {"text": "\u0430"}),
        (b"Content-Type: text/plain; charset*0=koi8; charset*1=-r\n\n\xc1", {"text": "\u0430"}),
        (b'Content-Type: TEXT/PLAIN; a="\\"; b"; Charset = "KOI8-R"\n\n\xc1', {"text": "\u0430"}),
        (b"Content-Type: text\n\na", {"text": "a"}),
        (b"Content-Type: text/html\n\n<meta charset=koi8-r>\xc1",
         {"text": "<meta charset=koi8-r>\u0430"}),
        (b"Content-Type: image/png\n\na", {"text": ""}),
        (b"Content-Type: multipart/mixed\n\nno boundary", {"text": "no boundary"}),
        (b"Content-Type: multipart/mixed; boundary=b\n\n--c\nno part", {"text": "--c\nno part"}),
        (MIXED + b"--b\n\na\n--bc\n--b \n\nb\n--b--\nno\n--b\n\nno", {"text": "a\n--bc\nb"}),
        (MIXED.replace(b"\n", b"\r\n") + b"--b\r\n\r\none\r\n--b\r\n\r\ntwo", {"text": "one\ntwo"}),
        (MIXED + b"--b\n--b\n\none\n--b\n--b\n\ntwo\n--b--\n", {"text": "one\ntwo"}),
        (MIXED + b"--b--\n", {"text": ""}),
        (MIXED.replace(b";", b"\n") + b"--b\n\none\n--b--\n", {"text": "one"}),
        (MIXED.replace(b"mixed", b"digest") + b"--b\n\nSubject: a\n\none", {"text": "one"}),
        (b"Content-Type: message/rfc822\n\nSubject: a\n\none", {"text": "one"}),
        (b"Content-Transfer-Encoding: BASE64\n\nw7x\n!?hYg==\nfooter", {"text": "\xfcab"}),
        (b"Content-Transfer-Encoding: base64\n\nw7xhY", {"text": "\xfca"}),
        (b"Content-Transfer-Encoding: quoted-printable\n\n=C3=BC=\n=\n=x", {"text": "\xfc=x"}),
        (b"Content-Transfer-Encoding: 8-bit\n\n\xc3\xbc", {"text": "\xfc"}),
    ],
)  # fmt: skip
def test_forms_of_mails(data: bytes, expected: dict[str, str]) -> None:
    assert read(data) == expected


@pytest.mark.parametrize(
    "data",
    [
        b"Content-Transfer-Encoding: x-uuencode\n\nbegin 644 x\n#86)C\nend",
        b"Content-Type: text/plain; charset=cp1252\nContent-Transfer-Encoding: base64\n\n"
        + 9 * SAY,
        b"Content-Type: text/plain; charset=utf-8\n\n\xff",
        MIXED.replace(b"mixed", b"alternative")
        + b"--b\n\n%s\n--b\nContent-Type: text/html; charset=utf-8\n\n<p>\xff\n--b--\n" % SAY,
    ],
)
def test_what_cannot_be_decoded_is_rejected(data: bytes) -> None:
    with pytest.raises(DocumentFault, match=r"^bad-encoding: "):
        read(data)


def test_mails_without_a_suffix_are_found_in_a_folder(tmp_path: Path) -> None:
    folder = tmp_path / "cur"
    folder.mkdir()
    (folder / "1709540.M0P1.host-2,S").write_bytes(bytes(message()))
    (folder / "2.").write_bytes(b"Received: from x\r\n\tby y\r\nFrom: a\r\n" + b"X: y\r\n" * 2_000)
    (folder / "Inbox").write_bytes(b"From a@b Wed Jan 31 12:00:00 2024\n" + bytes(message(2)))
    (folder / "dovecot-uidlist").write_text("3 V1 N4\n1: x\n")
    (folder / "notes").write_text("Subject: a\n\na note")
    (folder / "link").symlink_to("nowhere")
    with Inputs([folder], DocumentsSection()) as inputs:
        found = [json.loads(line.value) for chunk in inputs.chunks(99_999) for line in chunk]
        assert +inputs.left_out == {"without a suffix": 3}
    assert [each["id"] for each in found] == ["2.", "1709540.M0P1.host-2,S", "<2@example.org>"]
    assert [key for key, _ in documents_of(folder / "2.")] == ["2."]


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
