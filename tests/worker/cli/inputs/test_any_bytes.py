"""Whatever bytes a file has, they are documents, faults, or one line that refuses the file."""

from __future__ import annotations

import io
import tempfile
from email.message import EmailMessage
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.worker.cli.inputs.parts import lines_of
from worker.cli.errors import CommandError
from worker.cli.inputs import Reading


def mail() -> bytes:
    made = EmailMessage()
    made["Subject"] = "Grüße"
    made["Date"] = "Wed, 31 Jan 2024 12:00:00 +0100"
    made.set_content("Grüße aus Köln\n", charset="iso-8859-1")
    made.add_alternative("<p>Grüße</p>", subtype="html")
    return bytes(made)


_HTTP = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n"
    b"Transfer-Encoding: chunked\r\nContent-Encoding: deflate\r\n\r\n2\r\nab\r\n0\r\n\r\n"
)


def parquet() -> bytes:
    try:
        import pyarrow as pa  # noqa: PLC0415 -- an extra
        import pyarrow.parquet as pq  # noqa: PLC0415 -- an extra
    except ImportError:
        return b""
    made = io.BytesIO()
    columns = {
        "id": [1, 2],
        "text": ["Grüße", None],
        "kind": pa.array(["x", "y"]).dictionary_encode(),
        "list": [[{"a": 1, "b": ["q"]}], None],
        "at": pa.array([1, 2], pa.timestamp("ns", "UTC")),
    }
    pq.write_table(pa.table(columns), made, compression="none")
    return made.getvalue()


SEEDS = {
    "a.eml": mail(),
    "a.mbox": b"From x Wed Jan 31\n" + mail() + b"\nFrom y\n" + mail(),
    "a.txt": b"From x Wed Jan 31 12:00:00 2024\n"
    + mail()
    + b"From - Wed Jan 31 12:00:00 2024\n"
    + mail(),
    "mail": b"Content-Type: message/rfc822; charset*0*=utf-8''x\nSubject: =?x-sjis?b?k/o=?=\n\n"
    + mail(),
    "a.warc": b"WARC/1.0\r\nWARC-Type: response\r\nContent-Type: application/http\r\n"
    b"Content-Length: %d\r\n\r\n%s\r\n\r\n" % (len(_HTTP), _HTTP),
    "a.html": '<html><meta charset="utf-7"><p>Grüße</p>'.encode(),
    "a.jsonl": '{"text": "Grüße"}\n{"text": "b"}\n'.encode("utf-16"),
    "a.csv": "id,text\n1,Grüße\n".encode("utf-16"),
    "b.csv": 'sep=;\n"id";text;\n1;"Grü\nße"\n2;b;c'.encode(),
    "a.parquet": parquet(),
}
AS_THEY_ARE = {"a.jsonl", "mail"}
"""May be lines of JSON, which whoever judges them decodes."""
PIECES = [
    b"\x80", b"\xff\xff\xff\xff\x0f", b"PAR1", b'"', b";", b"sep=,\n",
    b"\0", b"\xff", b"\n", b"\r\n\r\n", b"From ", b"WARC/1.0\r\n", b"charset=", b"idna", b"utf-16",
    b"=?utf-8?b?", b"?=", b"--", b"quoted-printable", b"x-sjis", b"gzip", b"*0*=", b"\x1f\x8b",
    b"9" * 30, b"boundary=", b"multipart/mixed", b"+2AA-", b"\\ud800",
]  # fmt: skip


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.needs("pyarrow")) if "parquet" in name else name
        for name in SEEDS
    ],
)
@given(data=st.data())
def test_they_never_end_in_anything_else(name: str, data: st.DataObject) -> None:
    content = SEEDS[name]
    for _ in range(data.draw(st.integers(1, 5))):
        at, until = sorted(data.draw(st.integers(0, len(content))) for _ in range(2))
        piece = data.draw(st.sampled_from(PIECES) | st.binary(max_size=8))
        # What is as long as before is read further: offsets still hold.
        until = min(until, at + 12) if data.draw(st.booleans()) else at + len(piece)
        content = content[:at] + piece + content[until:]
    encoding = data.draw(st.sampled_from([None, "latin-1", "utf-7", "utf-16", "shift_jis"]))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, name)
        file.write_bytes(content)
        found, refused = [], ""
        try:
            found = lines_of(file, reading=Reading(None, encoding))
        except CommandError as error:
            refused = str(error)
    assert not refused or refused.startswith(f"{file}: ")
    for line in found:
        assert line.fault or line.raw
        line.value.decode(
            errors="strict" if line.complete and name not in AS_THEY_ARE else "replace"
        )
