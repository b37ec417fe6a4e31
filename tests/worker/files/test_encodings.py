"""Files in other encodings: named, marked, or refused; one bad line costs only itself."""

from __future__ import annotations

import codecs
import gzip
import json
from pathlib import Path

import pytest

from tests.support.breadth import slow
from tests.worker.files.parts import LINES, documents_of, lines_of
from worker.files.encodings import checked, decoded, in_html
from worker.files.errors import DocumentFault, FileError
from worker.files.reading import Reading

TEXTS = ["Grüße aus Köln", "señor, ça va?", "plain"]
JSONL = "".join(json.dumps({"text": text}, ensure_ascii=False) + "\n" for text in TEXTS)


def texts(file: Path, encoding: str | None = None) -> list[str]:
    lines = lines_of(file, reading=Reading(None, None if encoding is None else checked(encoding)))
    return [line.fault or json.loads(line.value)["text"] for line in lines]


@pytest.mark.parametrize(
    "encoding", ["latin-1", "cp1252", slow("iso8859-15"), "utf-16-le", slow("utf-32"), "utf-7"]
)
def test_lines_in_a_named_encoding(encoding: str, tmp_path: Path) -> None:
    file = tmp_path / "docs.jsonl.gz"
    file.write_bytes(gzip.compress(JSONL.encode(encoding)))
    assert texts(file, encoding) == TEXTS


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "utf-8-sig", slow("utf-8")])
def test_a_byte_order_mark_is_enough(encoding: str, tmp_path: Path) -> None:
    file = tmp_path / "docs.jsonl"
    file.write_bytes(JSONL.encode(encoding))
    assert texts(file) == TEXTS


@pytest.mark.parametrize(("encoding", "name"), [("cp1252", "a.csv"), ("utf-16", "a.tsv")])
def test_tables_too(encoding: str, name: str, tmp_path: Path) -> None:
    comma = "," if name.endswith("csv") else "\t"
    rows = "".join(f'"{text}\nmore"{comma}x\n' for text in TEXTS)
    file = tmp_path / name
    file.write_bytes(f"text{comma}über\n{rows}".encode(encoding))
    assert texts(file, encoding) == [f"{text}\nmore" for text in TEXTS]


def test_what_is_not_in_the_encoding_costs_its_line(tmp_path: Path) -> None:
    file = tmp_path / "docs.jsonl"
    lines = JSONL.encode("cp1252").splitlines(keepends=True)
    file.write_bytes(lines[0] + b'{"text": "\x81"}\n' + lines[1])
    fault = "bad-encoding: the text is not in cp1252"
    assert texts(file, "cp1252") == [TEXTS[0], fault, TEXTS[1]]
    half = '{"text": "a"}\n{"text": "b"}\n'.encode("utf-16-le")
    file.write_bytes(half[:20] + b"\x00\xd8" + half[22:])  # A lone surrogate.
    assert texts(file, "utf-16-le") == [fault.replace("cp1252", "utf-16-le"), "b"]


def test_a_bad_row_costs_itself_and_a_bad_header_all(tmp_path: Path) -> None:
    file = tmp_path / "docs.csv"
    file.write_bytes(b"text\nbefore\n\x81\nafter\n")
    fault = "bad-encoding: the text is not in cp1252"
    assert texts(file, "cp1252") == ["before", fault, "after"]


def test_without_a_name_other_encodings_are_told_by_their_nuls(tmp_path: Path) -> None:
    file = tmp_path / "texts"
    file.write_bytes("ein Text".encode("utf-16-be"))
    with pytest.raises(FileError, match="is not UTF-8; it looks like --encoding utf-16-be"):
        lines_of(file, reading=LINES)


def test_utf16_without_a_mark_has_an_order_of_bytes(tmp_path: Path) -> None:
    file = tmp_path / "docs.jsonl"
    file.write_bytes(JSONL.encode("utf-16-le"))
    with pytest.raises(FileError, match="can't be read as utf-16: UTF-16 stream does not start"):
        texts(file, "utf-16")


def test_utf8_that_is_read_as_something_else_is_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "docs.jsonl"
    file.write_text(JSONL, encoding="utf-8")
    texts(file, "latin-1")
    assert "warning: " in (said := capsys.readouterr().err)
    assert said.endswith("docs.jsonl looks like UTF-8; --encoding says iso8859-1\n")
    file.write_text(JSONL, encoding="latin-1")
    texts(file, "latin-1")
    assert capsys.readouterr().err == ""


def test_parquet_has_its_own(tmp_path: Path) -> None:
    (tmp_path / "docs.parquet").write_bytes(b"PAR1")
    with pytest.raises(FileError, match="has one encoding: leave out --encoding"):
        lines_of(tmp_path / "docs.parquet", reading=Reading(None, "cp1252"))


@pytest.mark.parametrize("name", ["base64", "rot13", "undefined", "", "none\0"])
def test_what_is_no_encoding_of_text_is_refused(name: str) -> None:
    with pytest.raises(FileError, match="must be an encoding that Python knows"):
        checked(name)


def test_lines_of_text_for_documents_of_json(tmp_path: Path) -> None:
    file = tmp_path / "lines.txt"
    file.write_bytes('ein "Satz"\n\nüber\n'.encode("latin-1"))
    assert documents_of(file, reading=Reading("lines", "latin-1")) == [
        ("lines.txt:1", '{"text":"ein \\"Satz\\""}'),
        ("lines.txt:3", '{"text":"über"}'),
    ]
    assert documents_of(file, reading=LINES)[1] == (
        "lines.txt:3",
        "invalid-utf8: the line is not UTF-8",
    )


@pytest.mark.parametrize(
    ("label", "data", "text"),
    [
        ("x-sjis", "\u65e5\u672c\u2460".encode("cp932"), "\u65e5\u672c\u2460"),
        ("windows-31j", "\u9ad9".encode("cp932"), "\u9ad9"),
        # NEC's signs are in EUC-JP and ISO-2022-JP as the web has them, and not as Python has.
        ("x-euc-jp", b"\xad\xa1", "\u2460"),
        ("ISO-2022-JP", b"\x1b$B-!\x1b(B", "\u2460"),
        ("iso-8859-8-i", b"\xf9\xec\xe5\xed", "\u05e9\u05dc\u05d5\u05dd"),
        ("big5", b"\xc6\xa1", "\u2460"),
        ("x-gbk", "\u5217\u8f66".encode("gbk"), "\u5217\u8f66"),
        ("gb2312", "\u4dae".encode("gb18030"), "\u4dae"),
        ("ks_c_5601-1987", "\ub620".encode("cp949"), "\ub620"),
        ("x-cp1252", b"\x93a\x94", "\u201ca\u201d"),
        (" iso-8859-1 ", b"\x80", "\u20ac"),
        ("iso-8859-9", b"\x80\xfd", "\u20ac\u0131"),
        ("tis-620", b"\xa1", "\u0e01"),
        ("utf8", "\xfc".encode(), "\xfc"),
        ("utf-16", "\xfc".encode("utf-16-le"), "\xfc"),
        # The web has none of these.
        ("utf-7", b"+APw-", "\xfc"),
        ("cp850", b"\x81", "\xfc"),
        ("cp737", b"\x80", "\u0391"),
        ("iso-2022-kr", "\uac00".encode("iso2022_kr"), "\uac00"),
        # Nobody means these: it is UTF-8.
        ("us-ascii", "\xfc".encode(), "\xfc"),
        ("unicode_escape", b"\\xfc", "\\xfc"),
        ("idna", b"xn--tda", "xn--tda"),
        ("no such name" * 9, "\xfc".encode(), "\xfc"),
    ],
)
def test_labels_are_those_of_the_web(label: str, data: bytes, text: str) -> None:
    assert decoded(data, label) == text


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-be", "utf-32"])
def test_a_mark_outdoes_what_is_declared_and_is_left_out(encoding: str) -> None:
    data = "a\u65e5".encode(encoding)
    if encoding == "utf-16-be":
        data = codecs.BOM_UTF16_BE + data
    for declared in ("big5", "utf-16", "utf-16le", "utf-8", None):
        assert decoded(data, declared) == "a\u65e5"


@pytest.mark.parametrize("label", ["utf-8", "shift_jis", "big5", "us-ascii", "base64", "rot13", ""])
def test_what_is_not_in_its_encoding_is_rejected(label: str) -> None:
    with pytest.raises(DocumentFault, match="bad-encoding: the text is not in "):
        decoded(b"\xff\xff", label)


@pytest.mark.parametrize("encoding", ["utf-8", "shift_jis", "euc-jp", "gb18030", "utf-16-le"])
def test_a_cut_costs_the_character_that_it_divides(encoding: str) -> None:
    text = "\u65e5\u672c\u8a9e\u306e\u9801"
    data = text.encode(encoding)
    for end in range(len(data) - 3, len(data)):
        found = decoded(data[:end], encoding, "koi8-r", cut=True)
        assert text.startswith(found)
        assert len(found) >= len(text) - 3
    with pytest.raises(DocumentFault):
        decoded(data[:-1], encoding)
    with pytest.raises(DocumentFault):
        decoded(b"\xff" + data, "utf-8", cut=True)


@pytest.mark.parametrize(
    ("page", "name"),
    [
        (b"<META CHARSET = 'Big5'>", "big5"),
        (b'<meta http-equiv="Content-Type" content="text/html; charset=x-sjis">', "x-sjis"),
        (b'<?xml version="1.0" encoding="koi8-r"?><html>', "koi8-r"),
        (b'<!-- <meta charset="big5"> --><meta charset="koi8-r">', "koi8-r"),
        (b'<!-- <meta charset="big5">', None),
        *(
            (b'<meta charset="%s">' % name, "utf-8")
            for name in (b"UTF-16", b"utf-16le", b"unicode")
        ),
        (b"<p>charset=big5</p>", None),
        (b" " * 5_000 + b'<meta charset="big5">', None),
    ],
)
def test_the_name_in_a_page(page: bytes, name: str | None) -> None:
    assert in_html(page) == name
