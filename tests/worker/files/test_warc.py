"""The texts in WARC files are documents: pages, and what was taken out of them."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from tests.support.breadth import slow
from tests.worker.files.made import record, response
from tests.worker.files.parts import documents_of, lines_of, members
from worker.files.errors import FileError
from worker.files.inputs import Inputs
from worker.settings.documents import DocumentsSection

LATIN = {"Content-Type": "text/html; charset=windows-1252"}
"""Any bytes are a text in this encoding."""
PAGE = "<html><body><p>Über den Fluss</p></body></html>"


def chunked(body: bytes) -> bytes:
    middle = len(body) // 2
    parts = [body[:middle], body[middle:], b""]
    return b"".join(b"%x;x=y\r\n%s\r\n" % (len(part), part) for part in parts)


def test_responses_and_conversions_are_documents(tmp_path: Path) -> None:
    file = tmp_path / "a.warc.gz"
    nameless = tmp_path / "crawl.gz"
    records = [
        record("warcinfo", b"software: x\r\n", type_="application/warc-fields"),
        record("request", b"GET / HTTP/1.1\r\n\r\n"),
        record("response", response(PAGE.encode()), 7),
        record("conversion", b"\xc3\x9cber den Fluss", 8, type_="text/plain"),
        record("resource", b"a note", 9, type_="text/plain"),
    ]
    file.write_bytes(b"".join(map(gzip.compress, records)))
    assert members(file) == [
        {
            "id": f"<urn:uuid:{number}>",
            "uri": f"http://example.org/{number}",
            "date": "2024-01-31T12:00:00Z",
            "text": text,
        }
        for number, text in ((7, PAGE), (8, "Über den Fluss"), (9, "a note"))
    ]
    nameless.write_bytes(file.read_bytes())
    assert members(nameless) == members(file)
    assert [key for key, _ in documents_of(file)] == [f"a.warc.gz:{number}" for number in (1, 2, 3)]


def test_what_is_no_text_is_left_out_and_counted(tmp_path: Path) -> None:
    file = tmp_path / "a.wet"
    file.write_bytes(
        record("response", response(b"\0", fields={"Content-Type": "image/png"}))
        + record("response", response(b"p {}", fields={"Content-Type": "text/css; charset=x"}))
        + record("response", response(b"gone", "404 Not Found"))
        + record("response", response(b"", "301 Moved"))
        + record("revisit", response(b""))
        + record("response", b"dns", type_="text/dns")
        + record("conversion", b"text", type_="text/plain")
    )
    with Inputs([file], DocumentsSection()) as inputs:
        (line,) = [line for chunk in inputs.chunks(1_000) for line in chunk]
        assert +inputs.left_out == {
            "image/png": 1,
            "text/css": 1,
            "responses with another status than 2xx": 2,
            "revisit records": 1,
            "responses without HTTP": 1,
        }
    assert json.loads(line.value)["text"] == "text"


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        (chunked(PAGE.encode()), {"Transfer-Encoding": "chunked"}),
        slow(PAGE.encode(), {"Transfer-Encoding": "chunked"}),
        (gzip.compress(PAGE.encode(), mtime=0), {"Content-Encoding": "gzip"}),
        slow(PAGE.encode(), {"Content-Encoding": "gzip"}),
        slow(PAGE.encode(), {"Content-Encoding": "br"}),
        (zlib.compress(PAGE.encode()), {"Content-Encoding": "deflate"}),
        slow(zlib.compress(PAGE.encode(), wbits=-15), {"Content-Encoding": "deflate"}),
        slow(zstandard.compress(PAGE.encode()), {"Content-Encoding": "zstd"}),
        (
            chunked(gzip.compress(PAGE.encode(), mtime=0)),
            {"Transfer-Encoding": "chunked", "Content-Encoding": "gzip"},
        ),
        (PAGE.encode("cp1252"), {"Content-Type": "text/html; charset=ISO-8859-1"}),
        (PAGE.encode("shift_jis", "ignore") + "川".encode("cp932"), {"Content-Type": "text/html"}),
    ],
)
def test_bodies_are_decoded(body: bytes, fields: dict[str, str], tmp_path: Path) -> None:
    if "text/html" in fields.get("Content-Type", "") and "charset" not in str(fields):
        body = b'<meta charset="Shift_JIS">' + body
    file = tmp_path / "a.warc"
    file.write_bytes(record("response", response(body, fields=fields)))
    (found,) = members(file)
    assert found["text"].replace('<meta charset="Shift_JIS">', "").startswith("<html><body><p>")
    assert "川" in found["text"] or found["text"] == PAGE


@pytest.mark.parametrize(
    ("block", "fault"),
    [
        (
            response(gzip.compress(b"a" * 5_000_000, mtime=0), fields={"Content-Encoding": "gzip"}),
            "too-large: the body has 100001 bytes",
        ),
        (response(b"a" * 200_000), "too-large: the body has 200000 bytes"),
        (
            response(
                gzip.compress(PAGE.encode(), mtime=0)[:-9] + b"\0" * 9,
                fields={"Content-Encoding": "gzip"},
            ),
            "bad-encoding: damaged gzip data",
        ),
        (
            response(
                gzip.compress(PAGE.encode(), mtime=0)[:-9], fields={"Content-Encoding": "gzip"}
            ),
            "bad-encoding: the gzip data ends too early",
        ),
        (
            response(zstandard.compress(PAGE.encode())[:-3], fields={"Content-Encoding": "zstd"}),
            "bad-encoding: the zstd data ends too early",
        ),
        *(
            (
                response(b"\xff\x02\x80", fields={"Content-Encoding": coding, **LATIN}),
                "bad-encoding: ",
            )
            for coding in ("br", "gzip", "deflate", "zstd", "compress", "x-unknown")
        ),
        (
            response(gzip.compress(b"a", mtime=0), fields={"Content-Encoding": "gzip, " * 6}),
            "bad-encoding: the body has 7 encodings, one in another",
        ),
        (
            response(b"\x8b\x02\x80", fields={"Content-Encoding": "br"}),
            "bad-encoding: can't read a body in 'br'",
        ),
        (response(b"\xff\xfe\xfd"[1:] + b"\xff"), "bad-encoding: the text is not in utf-8"),
    ],
)
def test_a_body_that_cannot_be_read_costs_itself(block: bytes, fault: str, tmp_path: Path) -> None:
    file = tmp_path / "a.warc"
    file.write_bytes(record("response", block) + record("response", response(b"fine"), 2))
    bad, good = lines_of(file, most=100_000)
    assert bad.fault.startswith(fault)
    assert json.loads(good.value)["text"] == "fine"


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "zstd", "x-unknown"])
def test_a_text_that_was_expanded_before_is_read(coding: str, tmp_path: Path) -> None:
    file = tmp_path / "a.warc"
    file.write_bytes(
        record("response", response(PAGE.encode(), fields={"Content-Encoding": coding}))
    )
    assert [found["text"] for found in members(file)] == [PAGE]


@pytest.mark.parametrize("coding", ["", "gzip", "deflate", "zstd"])
def test_a_page_that_the_crawler_cut_is_read_up_to_there(coding: str, tmp_path: Path) -> None:
    body = f"<p>{'日本' * 9_000}".encode()[:-1]
    pack: dict[str, Callable[[bytes], bytes]]
    pack = {"gzip": gzip.compress, "deflate": zlib.compress, "zstd": zstandard.compress}
    fields = {"Content-Encoding": coding} if coding else {}
    block = response(pack[coding](body)[:-4] if coding else body, fields=fields)
    file = tmp_path / "a.warc"
    whole = record("response", block)
    file.write_bytes(whole.replace(b"WARC-Date", b"WARC-Truncated: length\r\nWARC-Date"))
    if coding == "zstd":  # Its blocks are whole or missing.
        assert documents_of(file)[0][1].startswith('{"id"')
        return
    (found,) = members(file)
    assert found["text"].startswith("<p>日本日")
    assert len(found["text"]) > 17_000
    file.write_bytes(whole)
    assert documents_of(file)[0][1].startswith("bad-encoding: ")


def test_a_file_of_metadata_says_that_it_has_no_texts(tmp_path: Path) -> None:
    file = tmp_path / "a.warc.wat"
    about = record("warcinfo", b"") + record("metadata", b"{}", type_="application/json") * 2
    for content, left_out in (
        (about, {"metadata records": 2, "warcinfo records": 1}),
        (about + record("response", response(b"a text")), {}),
    ):
        file.write_bytes(content)
        with Inputs([file], DocumentsSection()) as inputs:
            assert sum(len(chunk) for chunk in inputs.chunks(1_000)) == (not left_out)
            assert +inputs.left_out == left_out


def test_headers_are_bounded(tmp_path: Path) -> None:
    file = tmp_path / "a.warc"
    line = b"X-Pad: " + b"a" * 6_000 + b"\r\n"
    good = record("response", response(b"fine"))
    file.write_bytes(good + good.replace(b"WARC-Type", line * 11 + b"WARC-Type"))
    with pytest.raises(FileError, match="WARC record 2 has a header of more than 65536 bytes"):
        lines_of(file)
    block = response(b"fine").replace(b"\r\n", b"\r\n" + line * 11, 1)
    file.write_bytes(record("response", block) + good)
    with Inputs([file], DocumentsSection()) as inputs:
        assert sum(len(chunk) for chunk in inputs.chunks(1_000)) == 1
        assert +inputs.left_out == {"responses whose header has no end": 1}


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda data: data[:-20], "ends within WARC record 2"),
        (lambda data: b"%PDF" + data, "is no WARC file, by its content"),
        (lambda data: data + b"more", "is damaged after WARC record 2"),
        (
            lambda data: data.replace(b"Content-Length", b"Length"),
            "WARC record 1 has no Content-Le",
        ),
    ],
)
def test_a_damaged_file_is_an_error(
    damage: Callable[[bytes], bytes], says: str, tmp_path: Path
) -> None:
    file = tmp_path / "a.warc"
    file.write_bytes(damage(record("response", response(b"x")) * 2))
    with pytest.raises(FileError) as caught:
        lines_of(file)
    assert f"a.warc: {says}" in str(caught.value)
