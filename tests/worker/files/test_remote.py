"""Files on web servers and in object stores are read like those on a disk, or not at all."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
import zstandard

from tests.support.command_line import ROOT, environment, jsonl, neardup
from tests.support.texts import near_copies
from tests.worker.files.parts import documents_of, lines_of
from tests.worker.files.web import Site, served
from worker.files.errors import FileError
from worker.files.inputs import Inputs
from worker.files.remote import shown_address
from worker.settings.documents import DocumentsSection

pytestmark = pytest.mark.needs("aiohttp")

DOCUMENTS = [{"id": ident, "text": text} for ident, text in near_copies(2_000, 3)]
LINES = jsonl(DOCUMENTS)
PAGE = (
    b"WARC/1.0\r\nWARC-Type: conversion\r\nWARC-Record-ID: <urn:uuid:1>\r\n"
    b"WARC-Target-URI: https://a.example/\r\nContent-Type: text/plain\r\nContent-Length: 12\r\n"
    b"\r\nHello world.\r\n\r\n"
)


def parquet() -> bytes:
    """Return a file that is larger than what is fetched at once."""
    import pyarrow as pa  # noqa: PLC0415 -- an extra
    import pyarrow.parquet as pq  # noqa: PLC0415 -- an extra

    random, sink = Random(1), io.BytesIO()
    rows = [{**each, "noise": random.randbytes(4_000)} for each in DOCUMENTS]
    pq.write_table(pa.Table.from_pylist(rows), sink, row_group_size=500)
    return sink.getvalue()


@pytest.fixture
def site() -> Iterator[Site]:
    """Serve each kind of file."""
    files = {
        "/a.jsonl": LINES,
        "/a.jsonl.gz": gzip.compress(LINES),
        "/a.jsonl.zst": zstandard.compress(LINES),
        "/a.jsonl.bz2": bz2.compress(LINES),
        "/a.jsonl.xz": lzma.compress(LINES),
        "/a.parquet": parquet(),
        "/a.warc.wet.gz": gzip.compress(PAGE),
    }
    with served(files) as made:
        yield made


def ids(address: str) -> list[str]:
    return [json.loads(line.value)["id"] for line in lines_of(address)]


@pytest.mark.parametrize("ranges", [True, False])
@pytest.mark.parametrize("suffix", ["", ".gz", ".zst", ".bz2", ".xz"])
def test_a_file_on_a_web_server_is_read_whole(site: Site, suffix: str, *, ranges: bool) -> None:
    site.ranges = ranges
    assert ids(f"{site.url}/a.jsonl{suffix}") == [one["id"] for one in DOCUMENTS]
    assert sum(asked.startswith("GET") for asked in site.asked) == 1


def test_a_file_of_unknown_length_is_read_whole(site: Site) -> None:
    site.sized = False
    assert ids(f"{site.url}/a.jsonl") == [one["id"] for one in DOCUMENTS]


def test_parquet_is_read_by_parts(site: Site) -> None:
    assert ids(f"{site.url}/a.parquet") == [one["id"] for one in DOCUMENTS]
    site.ranges = False
    with pytest.raises(FileError, match=r"/a\.parquet: .*range requests"):
        ids(f"{site.url}/a.parquet")


def test_web_archives_are_read(site: Site) -> None:
    [(key, value)] = documents_of(f"{site.url}/a.warc.wet.gz")
    assert key == "a.warc.wet.gz:1"
    assert json.loads(value)["text"] == "Hello world."


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz", "a.jsonl.bz2", "a.warc.wet.gz"])
def test_a_connection_that_breaks_is_no_end(site: Site, name: str) -> None:
    """Wherever it breaks: after a line, after a member, or before the first byte."""
    content = site.files[f"/{name}"]
    for ends_at in (0, content.find(b"\n") + 1, len(content) // 2, len(content) - 1):
        site.ends_at = ends_at
        with pytest.raises(FileError, match=f"{name}: the connection failed after "):
            lines_of(f"{site.url}/{name}")


def test_parquet_that_breaks_is_no_end(site: Site) -> None:
    size = len(site.files["/a.parquet"])
    site.ends_at = size // 2
    with pytest.raises(FileError, match=r"a\.parquet: the connection failed after "):
        lines_of(f"{site.url}/a.parquet")


def test_nothing_is_written_of_a_file_that_breaks(site: Site, tmp_path: Path) -> None:
    site.ends_at = len(LINES) - 1
    done = neardup("dedupe", f"{site.url}/a.jsonl", "-o", tmp_path / "out.jsonl")
    assert done.returncode == 2
    assert b"the connection failed after " in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("status", "path", "said"),
    [
        (200, "/missing.jsonl", "HTTP 404 Not Found"),
        (403, "/a.jsonl", "HTTP 403 Forbidden"),
        (503, "/a.jsonl", "HTTP 503 Service Unavailable"),
    ],
)
def test_a_refusal_is_said_in_one_line_without_secrets(
    site: Site, status: int, path: str, said: str
) -> None:
    site.status = status
    address = site.url.replace("http://", "http://user:hidden@") + f"{path}?sig=hidden"
    done = neardup("dedupe", address)
    assert done.returncode == 2
    shown = f"{site.url}{path}"
    assert done.stderr.decode() == f"neardup: {shown}: {said}\n"


def test_a_server_that_is_gone_is_named(site: Site) -> None:
    with served({}) as other:
        gone = other.url
    with pytest.raises(FileError, match=r"/a\.jsonl: .*onnect"):
        lines_of(f"{gone}/a.jsonl")
    assert ids(f"{site.url}/a.jsonl?version=1&key=hidden")[0] == "d0"


def test_no_id_has_a_secret(site: Site) -> None:
    site.files |= {"/b.jsonl": b'{"text":"without an id"}\n'}
    [line] = lines_of(f"{site.url}/b.jsonl?key=hidden")
    assert line.key == b"b.jsonl:1"
    done = neardup("explain", f"{site.url}/b.jsonl?key=hidden", f"{site.url}/b.jsonl?key=hidden")
    assert done.returncode == 0, done.stderr
    assert b"hidden" not in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("https://u:p@a.example:8080/x/y.csv?sig=1#z", "https://a.example:8080/x/y.csv"),
        ("s3://bucket/key", "s3://bucket/key"),
        ("abfs://key:secret@account/x", "abfs://****@account/x"),
    ],
)
def test_an_address_is_shown_without_what_may_be_a_secret(address: str, shown: str) -> None:
    assert shown_address(address) == shown


@pytest.mark.parametrize(
    ("missing", "address", "extra"),
    [
        ("aiohttp", "https://a.example/x.jsonl", "http"),
        ("s3fs", "s3://bucket/x.jsonl", "s3"),
        ("gcsfs", "gs://bucket/x.jsonl", "gcs"),
        ("adlfs", "az://bucket/x.jsonl", "azure"),
        ("huggingface_hub", "hf://datasets/owner/x.jsonl", "hf"),
    ],
)
def test_a_missing_package_is_named_in_one_line(missing: str, address: str, extra: str) -> None:
    program = (
        f"import sys; sys.modules[{missing!r}] = None; from worker.cli.root import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, "dedupe", address],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env=environment(),
        timeout=120,
    )
    assert done.returncode == 2
    assert done.stderr == f"neardup: {address}: needs more: pip install 'neardup[{extra}]'\n"


@pytest.mark.parametrize("address", ["https://[bad", "https://", "http://127.0.0.1:99999999/x"])
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(FileError, match=r"^https?://"):
        Inputs([address], DocumentsSection())


def test_other_addresses_are_refused() -> None:
    with pytest.raises(FileError, match=r"ftp://a/b: addresses begin with s3://, gs://, "):
        Inputs(["ftp://a/b"], DocumentsSection())


def test_a_process_that_read_an_address_ends_in_silence(site: Site) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "worker.cli", "dedupe", f"{site.url}/a.jsonl.gz"],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env=environment(),
        timeout=120,
    )
    assert done.returncode == 0
    assert done.stdout.count("\n") == 2_000
    assert done.stderr.count("\n") == 1, done.stderr
