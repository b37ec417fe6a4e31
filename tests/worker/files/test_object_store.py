"""Objects in a store that speaks S3: one, a pattern, and all below an address."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator

import pytest

from tests.support.command_line import jsonl
from tests.worker.files.parts import lines_of
from worker.files.errors import FileError
from worker.files.inputs import Inputs
from worker.settings.documents import DocumentsSection

pytestmark = pytest.mark.needs("s3fs", "moto")


def document(ident: str) -> bytes:
    return jsonl([{"id": ident, "text": f"the text of {ident}"}])


OBJECTS = {
    "day/part-10.jsonl": document("ten"),
    "day/part-2.jsonl.gz": gzip.compress(document("two")),
    "day/_SUCCESS": b"",
    "day/.hidden.jsonl": document("hidden"),
    "day/picture.png": b"\x89PNG",
    "day/more/part-1.csv": b"id,text\none,the text of one\n",
    "mixed/a.jsonl": document("a"),
    "mixed/b.txt": b"text",
    "empty/": b"",
}


@pytest.fixture(scope="module")
def bucket() -> Iterator[str]:
    import s3fs  # noqa: PLC0415 -- an extra
    from moto.server import ThreadedMotoServer  # noqa: PLC0415 -- the same

    with pytest.MonkeyPatch.context() as patch:
        server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
        server.start()
        host, port = server.get_host_and_port()
        patch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
        patch.setenv("AWS_ACCESS_KEY_ID", "testing")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        fs = s3fs.S3FileSystem()
        fs.mkdir("pages")
        for name, content in OBJECTS.items():
            fs.pipe_file(f"pages/{name}", content)
        yield "s3://pages"
        server.stop()


def ids(*addresses: str) -> list[str]:
    return [json.loads(line.value)["id"] for line in lines_of(*addresses)]


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("day/part-10.jsonl", ["ten"]),
        ("day/part-*", ["two", "ten"]),
        ("day", ["one", "two", "ten"]),
        ("day/", ["one", "two", "ten"]),
        ("*/*.jsonl", ["ten", "a"]),
        ("day/**/*.csv", ["one"]),
    ],
)
def test_objects_are_found_and_read_in_natural_order(
    bucket: str, path: str, found: list[str]
) -> None:
    assert ids(f"{bucket}/{path}") == found


def test_each_object_is_read_once_however_often_it_is_named(bucket: str) -> None:
    named = [f"{bucket}/{path}" for path in ("day/part-10.jsonl", "day/part-*", "day", "*/a.jsonl")]
    assert ids(*named) == ["ten", "two", "one", "a"]
    with Inputs(named, DocumentsSection()) as inputs:
        assert inputs.left_out["files named again"] == 3


def test_what_is_left_out_is_counted(bucket: str) -> None:
    with Inputs([f"{bucket}/day"], DocumentsSection()) as inputs:
        assert inputs.summary() == "left out: hidden 2, .png 1"
        sizes = (len(OBJECTS[f"day/{name}"]) for name in ("part-10.jsonl", "part-2.jsonl.gz"))
        assert inputs.total == sum(sizes) + len(OBJECTS["day/more/part-1.csv"])


def test_documents_are_named_by_their_place_below_the_address(bucket: str) -> None:
    keys = [line.key for line in lines_of(f"{bucket}/day")]
    assert keys == [b"more/part-1.csv:2", b"part-2.jsonl.gz:1", b"part-10.jsonl:1"]


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("pages/nothing.jsonl", "No such file or directory"),
        ("pages/day/x-*", "no file is there"),
        ("nowhere/a.jsonl", ".*The specified bucket does not exist"),
        ("pages/mixed", "has files of documents"),
    ],
)
def test_what_is_not_there_is_said(bucket: str, path: str, said: str) -> None:
    del bucket
    with pytest.raises(FileError, match=f"s3://{path.replace('*', '.')}.*: {said}"):
        lines_of(f"s3://{path}")
