"""All that reads a stranger's bytes: what it raises, and sound bytes to change."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from email.message import EmailMessage
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Final

import msgspec
import pyarrow as pa
import zstandard
from pyarrow import parquet

from lsh import Index, Parameters
from lsh._core import Contents, Damaged, Opening, check
from tests.readers.reader import Reader
from tests.support.sealing import sealed
from tests.worker.files.parts import lines_of
from tests.worker.formats.registry import parts as registry
from tests.worker.wire.samples import recorded
from worker.admin.agreement import dump as dump_facts
from worker.admin.agreement import load as load_facts
from worker.admin.redrive.progress import Progress as Redriven
from worker.admin.redrive.progress import ProgressError
from worker.bus import BusError, Header, Record
from worker.bus.kafka.identities import id_in, metadata_of
from worker.bus.last_life import LastLife
from worker.cli.allow import _lines as lines_to_allow
from worker.cli.campaigns import groups_in
from worker.cli.client import Client
from worker.cli.errors import CommandError
from worker.corrections.request import Allow, CorrectionError, Forget, in_frame
from worker.corrections.request import decoded as decoded_request
from worker.corrections.request import encoded as encoded_request
from worker.corrections.state import Corrections
from worker.documents.published import duplicate_of, matches_of
from worker.files.errors import FileError
from worker.formats.base import DocumentFormat, DocumentOptions
from worker.formats.choice import TextFormat
from worker.formats.json import JsonFormat
from worker.formats.registry.client import Fetched
from worker.formats.unreadable import Deleted, Unreadable
from worker.generations.log import load as load_plan
from worker.generations.plan import Plan
from worker.index.errors import HeaderMismatch, StoreDamaged
from worker.index.keyspace import Progress, check_header, pack_header
from worker.index.rocksdb import check_mode
from worker.index.snapshots.manifest import FileEntry, Manifest, ManifestError
from worker.index.snapshots.manifest import decode as decode_manifest
from worker.journal import Journal
from worker.offline.state_versions import StateError, current_index
from worker.serve.answers import Answer, Refused, Reply, encoded
from worker.serve.asking import BadRequest, Questions
from worker.serve.correcting import Correct
from worker.serve.parameters import decoded
from worker.settings.model import Settings
from worker.stages.order import Coverage
from worker.untrusted import NOT_READ
from worker.wire.codec import FrameError, HandOver, decode, hand_over
from worker.wire.fingerprints import FingerprintFrame
from worker.wire.matches import MatchFrame

_ID: Final = 1_024


def _request(value: bytes) -> None:
    request = decoded_request(value)
    in_frame(request, 0, 0).check()


def _fingerprints(value: bytes) -> None:
    frame = decode(FingerprintFrame, value, "layout")
    assert len(frame.ids.unpack()) == len(frame.offsets) == len(frame.sketches)


def _answer(value: bytes) -> None:
    frame = decode(MatchFrame, value, "layout")
    assert len(frame.named()) == len(frame.sequences)
    assert frame.sequence >= 0


def _documents(format_: DocumentFormat) -> Callable[[bytes], None]:
    """Return what asks a format all that stages and commands ask it of a payload."""

    def read(value: bytes) -> None:
        record = Record("docs", 0, 1, -1, b"key", value)
        seen = format_.whole(record).value or b""
        format_.identify(seen, b"key")
        format_.excerpt(seen).encode(errors="surrogatepass")
        if format_.can_splice(value):
            spliced = format_.splice(value, b"[]", b"{}")
            assert len(spliced) > len(value)
        with suppress(Unreadable):
            format_.fields(seen)
            format_.having(seen)
        document = format_.read(record)
        assert document.id
        assert document.text

    return read


def _in_header(name: str, value: bytes) -> Record:
    source: Header = ("neardup-source", b"docs-0-1")
    verdict: Header = ("neardup-verdict", b"duplicate")
    return Record("duplicate", 0, 1, -1, b"key", b'{"text": "a"}', (source, verdict, (name, value)))


_JSON: Final = JsonFormat(
    DocumentOptions(time_field="meta.at", text_fields=("text", "meta.more[]"), deletes="forget")
)


def _headers(value: bytes) -> None:
    for name in ("neardup-matches", "neardup-first", "neardup-sequence", "neardup-source"):
        duplicate_of(_JSON, _in_header(name, value))
    with suppress(*NOT_READ):
        matches_of(_in_header("neardup-matches", value))
    _JSON.forgotten(_in_header("neardup-forget", value))


def _key(value: bytes) -> None:
    for kind in ("auto", "bytes", "int", "long", "ignore", "text"):
        keys = JsonFormat(DocumentOptions(key=kind)).keys
        try:
            ident = keys.ident(value)
        except Unreadable:
            continue
        if ident is not None:
            assert len(ident.decode().encode()) <= _ID
            keys.key(ident)


def _stored(value: bytes) -> None:
    """Read a value of a shard's store under each kind of key, with a right checksum."""
    for kind in (b"\xf6", b"\xf8", b"\xf9", b"\xfa", b"\xfb", b"\xfd", b"\xfe"):
        key = kind + bytes(9 if kind != b"\xfa" else 13)
        given = sealed(key, value)
        assert check(key, given) == value
        contents = Contents(None, 5)
        for reading in (contents.cells, contents.bucket, contents.records):
            with suppress(Damaged):
                reading(key, given)
    with suppress(Damaged):
        opening = Opening(run_documents=8, window_ms=None, inserted=5, clock=value)
        opening.give([sealed(key, value) for key in Opening.keys(opening)])


def _file(name: str, value: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, name)
        file.write_bytes(value)
        for line in lines_of(file):
            assert line.fault or line.raw


def _saved_index(value: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "index.npz")
        file.write_bytes(value)
        assert len(Index.load(file)) >= 0


def _saved() -> bytes:
    index = Index(Parameters(threshold=0.8))
    index.add("a", "Seven ministers met on Thursday to discuss the price of natural rubber.")
    index.add("b", "Four green boats went around the old harbour at noon, and nobody saw them.")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "index.npz")
        index.save(file)
        return file.read_bytes()


def _notes(value: bytes) -> None:
    """Read what a process has noted of its last life: damaged notes are none."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "notes")
        file.write_bytes(value)
        with closing(Journal(file)) as notes:
            notes.read()
            notes.write(value)
            LastLife("docs", "id", notes, 1)


def _corrections(value: bytes) -> None:
    Corrections.unpacked(value).at(0, 1)


def _seeds() -> Iterator[Reader]:
    yield Reader(
        "correction",
        ("worker.corrections.request", "worker.wire.corrections"),
        _request,
        (CorrectionError,),
        (
            encoded_request(Allow("a1", "I love it", why="slogan")),
            encoded_request(Forget("d1", by="me", source="0-1")),
        ),
        "json",
    )
    yield Reader(
        "frame of fingerprints",
        ("worker.wire.codec", "worker.wire.frame"),
        _fingerprints,
        (FrameError,),
        tuple(map(recorded, ("fingerprint-4", "fingerprint-4-corrections"))),
        "msgpack",
    )
    yield Reader(
        "answer of a shard",
        ("worker.wire.codec", "worker.wire.frame"),
        _answer,
        (FrameError,),
        tuple(map(recorded, ("match-2", "match-2-containments", "match-2-tombstones"))),
        "msgpack",
    )
    yield Reader(
        "hand-over",
        ("worker.wire.codec",),
        lambda value: hand_over(value, "layout"),
        (FrameError,),
        (HandOver("layout", 3).encode(),),
        "msgpack",
    )
    yield Reader(
        "payload in JSON",
        ("worker.formats.json", "worker.formats.json"),
        _documents(_JSON),
        (Unreadable, Deleted),
        (
            b'{"id": "a", "text": "Seven ministers", "meta": {"at": "2024-01-31T12:00:00Z"}}',
            b'{"id": 7, "text": "b", "meta": {"at": 1706702400, "more": ["x"]}, "first": []}',
        ),
        "json",
    )
    yield Reader(
        "payload of text",
        ("worker.formats.unreadable",),
        _documents(TextFormat(DocumentOptions())),
        (Unreadable,),
        ("Grüße aus Köln".encode(), b"Seven ministers met on Thursday"),
    )
    yield Reader(
        "key", ("worker.formats.keys",), _key, (Unreadable,), (b"key", b"hex:ff", bytes(8))
    )
    yield Reader(
        "header",
        ("worker.documents.published",),
        _headers,
        (Unreadable,),
        (b'[{"id": "a", "similarity": 0.9}]', b'{"id": "a", "sequence": 5}'),
        "json",
    )
    yield from _schemas()
    yield from _files()
    yield from _own_records()
    yield from _own_files()
    yield from _requests()


def _schemas() -> Iterator[Reader]:
    """Yield what reads documents with a schema, and schemas."""
    of_avro, of_proto = registry.Shelf(), registry.Shelf()
    of_avro.schemas[1] = registry.avro()
    file = registry.document_file(("id", 9), ("text", 9))
    of_proto.schemas[1] = registry.proto(file)
    value = {"rank": 1, "id": "a", "tags": ["x"], "text": "Seven ministers", "more": {"y": 1.5}}
    yield Reader(
        "payload in Avro",
        ("worker.formats.registry.avro", "worker.formats.registry.documents"),
        _with_schema(of_avro),
        (Unreadable,),
        (registry.avro_value(value),),
    )
    made = registry.value_of(file, id="a", text="Seven ministers")
    yield Reader(
        "payload in Protobuf",
        ("worker.formats.registry.protobuf", "worker.formats.registry.wire_format"),
        _with_schema(of_proto),
        (Unreadable,),
        (registry.mark(1) + b"\0" + made, registry.mark(1) + b"\2\0" + made),
    )
    yield Reader(
        "schema in Avro",
        ("worker.formats.registry.avro",),
        partial(_schema, "AVRO", registry.avro_value(value)),
        (Unreadable,),
        (json.dumps(registry.DOCUMENT).encode(),),
        "json",
    )
    for name, seed in (
        ("descriptor", registry.serialized(file).encode()),
        (
            "text",
            b'syntax = "proto3"; message D { string id = 1; string text = 2; repeated D d = 3; }',
        ),
    ):
        yield Reader(
            f"schema in Protobuf, a {name}",
            (
                "worker.formats.registry.protobuf",
                "worker.formats.registry.protobuf",
                "worker.formats.registry.protobuf",
            ),
            partial(_schema, "PROTOBUF", registry.mark(1) + b"\0" + made),
            (Unreadable,),
            (seed,),
        )


def _with_schema(shelf: registry.Shelf) -> Callable[[bytes], None]:
    documents = registry.made(shelf)

    def read(value: bytes) -> None:
        assert registry.read(documents, registry.record(value)).text

    return read


def _schema(kind: str, value: bytes, schema: bytes) -> None:
    shelf = registry.Shelf()
    shelf.schemas[1] = Fetched(kind, schema.decode(errors="replace"), [])
    _with_schema(shelf)(value)


_HTTP: Final = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n"
    b"Transfer-Encoding: chunked\r\nContent-Encoding: deflate\r\n\r\n2\r\nab\r\n0\r\n\r\n"
)


def _mail() -> bytes:
    made = EmailMessage()
    made["Subject"] = "Grüße"
    made["Date"] = "Wed, 31 Jan 2024 12:00:00 +0100"
    made.set_content("Grüße aus Köln\n", charset="iso-8859-1")
    made.add_alternative("<p>Grüße</p>", subtype="html")
    return bytes(made)


def _parquet() -> bytes:
    out = BytesIO()
    rows = {"id": ["a", "b"], "text": ["Grüße", None], "more": [{"x": [1.5]}, None]}
    parquet.write_table(pa.table(rows), out, row_group_size=1)
    return out.getvalue()


def _files() -> Iterator[Reader]:
    """Yield what reads files."""
    mail = _mail()
    box = b"From x Wed Jan 31 12:00:00 2024\n" + mail
    lines = '{"text": "Grüße"}\n{"text": "b"}\n'.encode()
    warc = b"WARC/1.0\r\nWARC-Type: response\r\nContent-Type: application/http\r\n"
    warc += b"Content-Length: %d\r\n\r\n%s\r\n\r\n" % (len(_HTTP), _HTTP)
    inputs = "worker.files."
    for name, modules, seeds in (
        ("a.eml", ("compressed",), (mail,)),
        ("a.mbox", ("compressed",), (box, box + b"\n" + box)),
        ("a.warc", ("warc",), (warc, warc + warc)),
        ("a.html", ("texts",), ('<html><meta charset="utf-7"><p>Grüße</p>'.encode(),)),
        ("a.txt", ("texts",), ("Grüße".encode("utf-16"), b"Seven ministers")),
        ("a.jsonl", ("texts",), (lines, lines.decode().encode("utf-16"))),
        ("a.csv", ("csv_rows",), ("id,text\n1,Grüße\n".encode(), b'id,text\n"x","y\nz"\n')),
        ("a.parquet", ("parquet_rows",), (_parquet(),)),
        ("a.jsonl.gz", ("compressed",), (gzip.compress(lines, mtime=0),)),
        ("a.jsonl.zst", ("compressed",), (zstandard.compress(lines),)),
        ("a.jsonl.xz", ("compressed",), (lzma.compress(lines),)),
        ("a.jsonl.bz2", ("compressed",), (bz2.compress(lines),)),
    ):
        yield Reader(
            f"file {name}",
            [inputs + module for module in modules],
            partial(_file, name),
            (FileError,),
            seeds,
        )
    yield Reader(
        "file of texts to allow",
        ("worker.cli.allow",),
        _allowed,
        (CommandError, FileError),
        (b'{"text": "I love it", "id": "a", "exact": true}\n{"text": "b"}',),
    )
    yield Reader(
        "verdicts in a file",
        ("worker.cli.campaigns",),
        _verdicts,
        (CommandError, FileError),
        (
            b'{"id":"a","verdict":"duplicate","duplicate_of":[{"id":"b"}],"duplicate_first":null}',
            b'{"id":"b","verdict":"unique","group":"b"}',
        ),
        "json",
    )


def _verdicts(value: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "verdicts.jsonl")
        file.write_bytes(value)
        groups_in([file], Settings())


def _allowed(value: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "allowed.jsonl")
        file.write_bytes(value)
        for _, line in lines_to_allow(file):
            assert line.text is not None


def _own_records() -> Iterator[Reader]:
    """Yield what reads the records of our own topics, which others may be able to write."""
    plan = Plan.of(Settings(app="docs"))
    yield Reader(
        "plan of generations",
        ("worker.generations.log",),
        load_plan,
        (BusError,),
        (msgspec.json.encode(plan),),
        "json",
    )
    yield Reader(
        "facts of an application",
        ("worker.admin.agreement",),
        load_facts,
        (ValueError,),
        (dump_facts({"app": "docs", "partitions": 3}),),
        "json",
    )
    yield Reader(
        "progress of a redrive",
        ("worker.admin.redrive.progress",),
        Redriven.load,
        (ProgressError,),
        (b'{"version": 1, "base": 5, "ahead": {"too-large": 7}, "epoch": 3}',),
        "json",
    )
    yield Reader(
        "metadata of an offset",
        ("worker.bus.kafka.identities",),
        lambda value: id_in(value.decode(errors="replace")),
        (),
        (metadata_of("topic", 5, "transaction").encode(),),
        "json",
    )


def _own_files() -> Iterator[Reader]:
    """Yield what reads stores, snapshots and other files of our own."""
    header = pack_header({"layout": "x", "shard": 1})
    yield Reader(
        "header of a store",
        ("worker.index.keyspace",),
        lambda value: check_header(value, {"layout": "x", "shard": 1}, Path("store")),
        (StoreDamaged, HeaderMismatch),
        (header,),
        "json",
    )
    yield Reader(
        "mode of a store",
        ("worker.index.rocksdb",),
        _mode,
        (StoreDamaged,),
        (b'{"raw_mode":true,"prefix_extractors":{}}',),
        "json",
    )
    yield Reader(
        "value of a store",
        ("worker.index.contents",),
        _stored,
        (Damaged,),
        (bytes(40), bytes(range(60)), b"\1\0\0\0" * 9),
    )
    yield Reader(
        "progress of a store",
        ("worker.index.keyspace",),
        Progress.unpack,
        (ValueError,),
        (Progress(5, 4, 3, bytes(16)).pack(),),
    )
    yield Reader(
        "coverage of a store",
        ("worker.stages.order",),
        lambda value: Coverage.decode(value, 7),
        (ValueError,),
        (_covered(),),
    )
    yield Reader(
        "corrections in a store",
        ("worker.corrections.state",),
        _corrections,
        (ValueError,),
        (Corrections().packed(),),
    )
    yield Reader(
        "manifest of a snapshot",
        ("worker.index.snapshots.manifest",),
        decode_manifest,
        (ManifestError,),
        (_manifest(),),
        "json",
    )
    yield Reader(
        "notes of the last life",
        ("worker.bus.last_life",),
        _notes,
        (),
        (_journal(b'{"topic": "id", "read": {"g": {"reading": {"0": 5}, "alone": [0, 3]}}}'),),
    )
    yield Reader(
        "notes in JSON",
        ("worker.bus.last_life",),
        lambda value: _notes(_journal(value)),
        (),
        (
            b'{"topic": "id", "read": {"g": {"alone": [0, 3], "suspects": [[0, 3]]}}}',
            b'{"topic": "id", "fetched": {"groups": ["g"], "alone": ["g", 0, 7]}}',
            b'{"topic": "id", "fetched": {"deaths": [[["g", 0, 7], 1, 1024, 5.5]]}}',
        ),
        "json",
    )
    yield Reader("saved index", ("lsh.saved",), _saved_index, (ValueError,), (_saved(),))
    yield Reader(
        "CURRENT of a state",
        ("worker.offline.state_versions",),
        _state,
        (StateError,),
        (
            json.dumps(
                {
                    "format": 3,
                    "generation": "generation-0000001",
                    "documents": {},
                    "offsets": {
                        f"offline.{n}": [1] for n in ("documents", "shards", "fingerprints")
                    },
                }
            ).encode(),
        ),
        "json",
    )


def _mode(value: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "rocksdict-config.json").write_bytes(value)
        check_mode(Path(folder))


def _covered() -> bytes:
    coverage = Coverage()
    coverage.add(2, 10, 20)
    return coverage.encode(7)


def _manifest() -> bytes:
    files = [FileEntry("000009.sst", 3, "ab" * 32, b"abc")]
    made = Manifest(shard=1, offset=5, documents=4, created=1e9, header={"a": 1}, files=files)
    return made.encode()


def _journal(value: bytes) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        with closing(Journal(Path(folder, "notes"))) as notes:
            notes.write(value)
        return Path(folder, "notes").read_bytes()


def _state(value: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        (home / "generation-0000001").mkdir()
        (home / "CURRENT").write_bytes(value)
        current_index(home)


def _requests() -> Iterator[Reader]:
    """Yield what reads requests, and answers to our own."""
    yield Reader(
        "request",
        ("worker.serve.asking",),
        Questions(Settings()).read,
        (BadRequest,),
        (b'{"text": "Seven ministers"}', b'{"queries": [{"document": {"id": "a", "text": "b"}}]}'),
        "json",
    )
    yield Reader(
        "request to correct",
        ("worker.serve.parameters",),
        partial(decoded, kind=Correct),
        (Refused,),
        (
            b'{"allow": {"of": {"text": "I love it"}, "why": "slogan"}}',
            b'{"withdraw": {"id": "a"}}',
        ),
        "json",
    )
    yield Reader(
        "reply of a server",
        ("worker.cli.client",),
        lambda said: Client("http://127.0.0.1:9", "docs")._decoded(said, Reply),
        (CommandError,),
        (encoded(Reply(0.8, 5, 1, 0.5, [Answer("unique")])),),
        "json",
    )


READERS: Final = tuple(_seeds())
