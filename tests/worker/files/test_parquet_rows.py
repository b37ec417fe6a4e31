"""Rows of Parquet files are JSON documents."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import tracemalloc
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest

from lsh.index import NO_TIME
from tests.support.command_line import ROOT, environment
from tests.worker.files.parts import documents_of, lines_of
from tests.worker.formats.parts import TIME, record
from worker.files.errors import FileError
from worker.files.inputs import Inputs
from worker.formats.base import DocumentOptions
from worker.formats.json import JsonFormat
from worker.formats.unreadable import Unreadable
from worker.settings.documents import DocumentsSection

needs_pyarrow = pytest.mark.needs("pyarrow")


def table(file: Path, **columns: object) -> Path:
    import pyarrow as pa  # noqa: PLC0415 -- an extra
    import pyarrow.parquet as pq  # noqa: PLC0415 -- an extra

    pq.write_table(pa.table(columns), file, row_group_size=200)
    return file


@needs_pyarrow
def test_rows_are_documents_and_keys_are_their_numbers(tmp_path: Path) -> None:
    file = table(tmp_path / "docs.parquet", id=[1, 2], text=["a", None], more=[{"x": [1.5]}, None])
    assert documents_of(file) == [
        ("docs.parquet:1", '{"id":1,"text":"a","more":{"x":[1.5]}}'),
        ("docs.parquet:2", '{"id":2,"text":null,"more":null}'),
    ]


@needs_pyarrow
def test_values_without_a_json_type_are_strings(tmp_path: Path) -> None:
    import pyarrow as pa  # noqa: PLC0415 -- an extra

    nanoseconds = pa.array([1_700_000_000_123_456_789], pa.timestamp("ns"))
    file = table(
        tmp_path / "docs.parquet",
        at=[datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)],
        ns=nanoseconds,
        price=[Decimal("1.50")],
        bytes=["ä".encode()],
        raw=[b"\xff"],
    )
    assert json.loads(lines_of(file)[0].raw) == {
        "at": "2023-11-14T22:13:20Z",
        "ns": "2023-11-14T22:13:20.123456",
        "price": "1.50",
        "bytes": "ä",
        "raw": "/w==",
    }


@needs_pyarrow
def test_times_go_through_the_same_rule_as_those_of_json(tmp_path: Path) -> None:
    import pyarrow as pa  # noqa: PLC0415 -- an extra

    def times(cells: list[object], kind: object, **options: object) -> list[object]:
        file = table(tmp_path / "docs.parquet", at=pa.array(cells, kind), text=["a"] * len(cells))
        documents = DocumentOptions(time_field="at", **options)  # type: ignore[arg-type]
        return [_time(documents, line.raw) for line in lines_of(file, time_field="at")]

    assert times([1_700_000_000_000_000_001, -1, None], pa.timestamp("ns")) == [TIME, -1, NO_TIME]
    assert times([1_700_000_000_123], pa.timestamp("ms", "Europe/Paris")) == [TIME + 123]
    assert times([19_723, -1, 10**7, -(10**6)], pa.date32()) == [
        1_704_067_200_000, -86_400_000, "bad-time", "bad-time",
    ]  # fmt: skip
    assert times([10**18, 0], pa.timestamp("us")) == ["bad-time", 0]
    assert times([20240101, TIME], pa.int64()) == ["bad-time", TIME]
    assert times([20240101], pa.int32(), time_format="%Y%m%d") == [1_704_067_200_000]
    assert times([float("nan"), float("inf"), 1.7e9], pa.float64()) == ["bad-time"] * 2 + [TIME]
    assert times([Decimal(45292)], pa.decimal128(9), time_format="excel") == [1_704_067_200_000]
    assert times(["20240101", "2024-01-01"], pa.string()) == ["bad-time", 1_704_067_200_000]


def _time(documents: DocumentOptions, value: bytes) -> object:
    try:
        return JsonFormat(documents).read(record(value, timestamp=7)).time
    except Unreadable as error:
        return error.code


@needs_pyarrow
def test_nanoseconds_may_be_nested(tmp_path: Path) -> None:
    import pyarrow as pa  # noqa: PLC0415 -- an extra

    kind = pa.struct([("at", pa.timestamp("ns")), ("all", pa.list_(pa.timestamp("ns", "UTC")))])
    file = table(tmp_path / "docs.parquet", meta=pa.array([{"at": 1, "all": [1]}], kind))
    assert json.loads(lines_of(file)[0].raw) == {
        "meta": {"at": "1970-01-01T00:00:00", "all": ["1970-01-01T00:00:00Z"]}
    }


@needs_pyarrow
def test_bytes_in_lists_are_text_or_a_fault(tmp_path: Path) -> None:
    nested = [[{"x": b"a"}]] * 3
    file = table(tmp_path / "docs.parquet", p=[[None, b"a"], [b"\xff"], None], q=nested)
    found = lines_of(file, text_fields=("p[]", "q[].x"))
    assert json.loads(found[0].raw) == {"p": [None, "a"], "q": [{"x": "a"}]}
    assert found[1].fault == "invalid-utf8: column 'p' is not UTF-8"
    assert json.loads(found[2].raw)["p"] is None


@needs_pyarrow
def test_bytes_that_are_no_text_are_a_fault_of_their_row(tmp_path: Path) -> None:
    file = table(tmp_path / "docs.parquet", text=[b"a", b"\xff", b"c"])
    assert [line.fault for line in lines_of(file)] == [
        "",
        "invalid-utf8: column 'text' is not UTF-8",
        "",
    ]


@needs_pyarrow
@pytest.mark.parametrize("name", ["docs.pq", "docs", "docs.jsonl"])
def test_it_is_seen_by_name_or_content_and_read_to_the_end(name: str, tmp_path: Path) -> None:
    file = table(tmp_path / name, id=list(range(1_000)))
    with Inputs([file], DocumentsSection()) as inputs:
        lines = [line for chunk in inputs.chunks(1_000) for line in chunk]
        assert inputs.position == inputs.total
    assert [json.loads(line.raw)["id"] for line in lines] == list(range(1_000))


@needs_pyarrow
@pytest.mark.parametrize("damage", [slice(0, -4), slice(4, None), slice(0, 4)])
def test_a_damaged_file_is_an_error(damage: slice, tmp_path: Path) -> None:
    file = table(tmp_path / "docs.parquet", id=[1])
    file.write_bytes(file.read_bytes()[damage])
    with pytest.raises(FileError, match=r"docs\.parquet: damaged Parquet data after row 0: "):
        lines_of(file)


def test_without_pyarrow_the_message_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "docs.parquet").write_bytes(b"PAR1")
    hidden = "import sys; sys.modules['pyarrow'] = None; from worker.cli.root import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", hidden, "dedupe", str(tmp_path)],
        capture_output=True,
        check=False,
        cwd=ROOT,
        env=environment(),
    )
    assert done.returncode == 2
    says = "docs.parquet: is Parquet; install what reads it: pip install 'neardup[parquet]'\n"
    assert done.stderr.decode().endswith(says)
    assert done.stderr.count(b"\n") == 1


@needs_pyarrow
def test_two_columns_of_one_name_are_refused(tmp_path: Path) -> None:
    import pyarrow as pa  # noqa: PLC0415 -- an extra
    import pyarrow.parquet as pq  # noqa: PLC0415 -- an extra

    for name in ("text", "other", ""):
        twice = pa.Table.from_arrays([pa.array(["a"]), pa.array(["b"])], [name, name])
        pq.write_table(twice, tmp_path / "docs.parquet")
        with pytest.raises(FileError, match=f"docs.parquet: has several columns '{name}'$"):
            lines_of(tmp_path / "docs.parquet")


@needs_pyarrow
def test_a_row_that_can_not_be_read_costs_only_itself(tmp_path: Path) -> None:
    import pyarrow as pa  # noqa: PLC0415 -- an extra

    offsets = b"".join(number.to_bytes(4, "little") for number in (0, 1, 3, 4))
    texts = pa.Array.from_buffers(
        pa.string(), 3, [None, pa.py_buffer(offsets), pa.py_buffer(b"a\xff\xfed")]
    )
    dates = pa.array([[0], [], [10**8]], pa.list_(pa.date32()))
    found = lines_of(table(tmp_path / "docs.parquet", text=texts, at=dates))
    assert [line.fault.partition(":")[0] for line in found] == ["", "invalid-utf8", "not-parquet"]
    assert [line.key for line in found] == [b"docs.parquet:%d" % n for n in (1, 2, 3)]


@needs_pyarrow
@pytest.mark.parametrize("kind", ["cell", "dictionary", "nulls", "flags"])
def test_a_row_that_expands_beyond_the_limit_is_not_made(kind: str, tmp_path: Path) -> None:
    import pyarrow as pa  # noqa: PLC0415 -- an extra

    count, most = 2, 10_000
    large, ends = "x" * 20_000_000, [0, 1, 20_000_001, 20_000_001]
    made = {
        "cell": lambda: pa.array(["a", large, "b"]),
        "dictionary": lambda: pa.DictionaryArray.from_arrays([0, 1, 0] * count, ["a", large]),
        "nulls": lambda: pa.ListArray.from_arrays(ends, pa.nulls(ends[-1])),
        "flags": lambda: pa.ListArray.from_arrays(ends, pa.repeat(pa.scalar(value=True), ends[-1])),
    }[kind]()
    file = table(tmp_path / "docs.parquet", n=pa.array(range(len(made))), text=made)
    gc.collect()
    tracemalloc.start()
    try:
        found = lines_of(file, most=most)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert [bool(line.fault) for line in found] == [False, True, False] * (len(made) // 3)
    assert found[1].fault.startswith("too-large: the row has 2")
    assert peak < 20_000_000


@needs_pyarrow
def test_a_file_has_as_many_rows_as_it_says(tmp_path: Path) -> None:
    file = table(tmp_path / "docs.parquet", id=[1, 2, 3])
    content = file.read_bytes()
    # The number of all rows is field 3 of the metadata, after the schema, as zigzag.
    at = content.index(b"\x16\x06\x19", content.index(b"schema"))
    file.write_bytes(content[: at + 1] + b"\x08" + content[at + 2 :])
    with pytest.raises(FileError, match="has 3 rows, and says 4"):
        lines_of(file)


@needs_pyarrow
def test_metadata_take_memory_by_their_own_size(tmp_path: Path) -> None:
    """A list in them says to have 900,000 elements, for which pyarrow would take 170 MB at once."""
    file = tmp_path / "docs.parquet"
    metadata = b"\x15\x02\x19\xfc" + b"\xa0\xf7\x36"
    file.write_bytes(b"PAR1" + metadata + len(metadata).to_bytes(4, "little") + b"PAR1")
    with pytest.raises(FileError, match="Exceeded size limit"):
        lines_of(file)


@needs_pyarrow
def test_a_schema_may_not_be_nested_without_end(tmp_path: Path) -> None:
    groups = b"".join([b"\x35\x02\x18\x01a\x15\x02\x00"] * 20_000)
    count = b"\xa1\x9c\x01"  # 20,001 elements
    leaf = b"\x15\x0c\x25\x02\x18\x01b\x00"
    metadata = b"\x15\x02\x19\xfc" + count + groups + leaf + b"\x16\x00\x19\x0c\x00"
    file = tmp_path / "docs.parquet"
    file.write_bytes(b"PAR1" + metadata + len(metadata).to_bytes(4, "little") + b"PAR1")
    with pytest.raises(FileError, match="nested"):
        lines_of(file)
