"""Tables are written as tables: their own columns, with the verdicts beside."""

from __future__ import annotations

import csv
import io
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.support.breadth import slow
from tests.support.command_line import dedupe, neardup
from tests.support.texts import near_copies

needs_pyarrow = pytest.mark.needs("pyarrow")
ADDED = [
    "neardup_row", "neardup_source", "neardup_id", "neardup_verdict", "neardup_duplicate_first",
    "neardup_match", "neardup_similarity", "neardup_duplicate_of", "neardup_reason",
]  # fmt: skip
TEXTS = [text for _, text in near_copies(6_000, 2)]


def csv_file(path: Path, rows: list[list[str]]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)
    return path


def rows_of(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8"), newline="")))


def test_rows_of_csv_keep_their_cells(tmp_path: Path) -> None:
    odd = [[f"d{n}", text, f'a "{n}",\nb '] for n, text in enumerate(TEXTS)]
    given = csv_file(tmp_path / "a.csv", [["id", "text", "note"], *odd])
    dedupe("--keep-columns", given, "-o", tmp_path / "out.csv")
    found, verdicts = rows_of(tmp_path / "out.csv"), dedupe(given)
    assert list(found[0]) == ["id", "text", "note", *ADDED]
    assert [[row["id"], row["text"], row["note"]] for row in found] == odd
    assert [row["neardup_verdict"] for row in found] == [one["verdict"] for one in verdicts]
    for row, one in zip(found, verdicts, strict=True):
        assert json.loads(row["neardup_duplicate_of"] or "null") == one.get("duplicate_of")

    dedupe("--unique-only", given, "-o", tmp_path / "unique.csv")
    unique = [cells for cells, one in zip(odd, verdicts, strict=True) if one["verdict"] == "unique"]
    assert [list(row.values()) for row in rows_of(tmp_path / "unique.csv")] == unique
    assert 1_000 < len(unique) < 5_000


def test_rows_that_can_not_be_read_have_empty_cells(tmp_path: Path) -> None:
    rows = [["text", "x"], ["a", "b", "c"], ["a text", "1"], ["another one", "2", "3"]]
    given = csv_file(tmp_path / "a.csv", rows)
    (tmp_path / "n.toml").write_text("limits = { reject_share = 1.0 }\n")
    out = tmp_path / "out.tsv"
    dedupe("--keep-columns", given, "-o", out, "--config", tmp_path / "n.toml")
    head, *lines = (line.split("\t") for line in out.read_text().splitlines())
    assert head == ["text", "x", *ADDED]
    assert [line[:2] for line in lines] == [["", ""], ["a text", "1"], ["", ""]]
    assert [line[5] for line in lines] == ["rejected", "unique", "rejected"]


def test_a_table_of_nothing_has_its_columns(tmp_path: Path) -> None:
    for head in ([], ["id", "text"]):
        given = csv_file(tmp_path / "a.csv", [head] if head else [])
        dedupe("--keep-columns", given, "-o", tmp_path / "out.csv")
        assert (tmp_path / "out.csv").read_text() == ",".join([*head, *ADDED]) + "\n"


@pytest.mark.parametrize(
    ("given", "written"),
    [
        (
            b"\xef\xbb\xbftext,n\nGr\xc3\xbc\xc3\x9fe,1\n",
            b"\xef\xbb\xbftext,n\nGr\xc3\xbc\xc3\x9fe,1\n",
        ),
        slow("text,n\na,1\n".encode("utf-16"), b"\xef\xbb\xbftext,n\na,1\n"),
        (b"sep=;\r\ntext;n\r\na;1,5\r\n", b'text,n\na,"1,5"\n'),
        (b'\xef\xbb\xbf"sep=\t"\ntext\tn\na\t1\n', b"\xef\xbb\xbftext,n\na,1\n"),
        (b",text,,\n0,a,x,\n", b",text,,\n0,a,x,\n"),
        slow(b"column_2,,text\n1,2,a\n", b"column_2,,text\n1,2,a\n"),
        slow(b"text,n\na\n", b"text,n\na,\n"),
        slow(b"text,n\n", b"text,n\n"),
    ],
)
def test_a_copy_begins_as_the_table_does(given: bytes, written: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(given)
    dedupe("--unique-only", tmp_path / "a.csv", "-o", tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_bytes() == written
    dedupe("--keep-columns", tmp_path / "a.csv", "-o", tmp_path / "all.csv")
    copied = (tmp_path / "all.csv").read_bytes().splitlines()
    for line, own in zip(copied, written.splitlines(), strict=True):
        assert line.startswith(own + b",")
    dedupe(tmp_path / "a.csv", "-o", tmp_path / "verdicts.csv")
    mark = written[:3] if written.startswith(b"\xef\xbb\xbf") else b""
    assert (tmp_path / "verdicts.csv").read_bytes().startswith(mark + b"row,source,id,")


def test_files_with_other_columns_are_refused(tmp_path: Path) -> None:
    one = csv_file(tmp_path / "a.csv", [["text"], ["a text"]])
    other = csv_file(tmp_path / "b.csv", [["text", "more"], ["another", "x"]])
    done = neardup("dedupe", "--keep-columns", one, other, "-o", tmp_path / "out.csv")
    assert done.returncode == 2
    said = "b.csv:2: has a column 'more', which the first file doesn't have; give files with the"
    assert said in done.stderr.decode()
    assert not (tmp_path / "out.csv").exists()


@pytest.mark.parametrize(
    ("name", "out", "said"),
    [
        ("a.jsonl", "out.csv", "--keep-columns and --unique-only write rows of CSV only if all"),
        ("a.csv", "out.parquet", "write rows of Parquet only if all inputs are Parquet"),
        ("a.csv", "out.jsonl", "--keep-columns: name the output .csv, .tsv or .parquet, with -o"),
        ("b.csv", "out.csv", "there is a column 'neardup_verdict' already; rename it"),
    ],
)
@needs_pyarrow
def test_what_does_not_fit_is_refused(name: str, out: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"text":"a"}\n')
    csv_file(tmp_path / "a.csv", [["text"], ["a text"]])
    csv_file(tmp_path / "b.csv", [["text", "neardup_verdict"], ["a text", "unique"]])
    done = neardup("dedupe", "--keep-columns", name, "-o", out, cwd=tmp_path)
    assert done.returncode == 2
    assert said in done.stderr.decode()
    assert done.stderr.count(b"\n") == 1
    assert not (tmp_path / out).exists()


def test_copies_of_all_rows_and_of_unique_ones_are_two_things(tmp_path: Path) -> None:
    done = neardup("dedupe", "--keep-columns", "--unique-only", "-", "-o", tmp_path / "out.csv")
    assert done.returncode == 2
    assert done.stderr == b"neardup: --keep-columns and --unique-only: choose one\n"


def table(begin: int, end: int) -> Any:  # noqa: ANN401 -- pyarrow has no types
    import pyarrow as pa  # noqa: PLC0415 -- an extra

    numbers = list(range(begin, end))
    columns = {
        "id": pa.array(numbers, pa.uint64()),
        "text": pa.array([TEXTS[n] if n % 100 else None for n in numbers]).dictionary_encode(),
        "at": pa.array(
            [datetime(2024, 1, 1, tzinfo=UTC)] * len(numbers), pa.timestamp("ns", "UTC")
        ),
        "raw": pa.array([bytes([n % 256]) for n in numbers], pa.binary()),
        "list": pa.array([[{"a": n}] for n in numbers]),
    }
    return pa.table(columns).replace_schema_metadata({"owner": "somebody"})


@needs_pyarrow
def test_rows_of_parquet_keep_their_types(tmp_path: Path) -> None:
    import pyarrow as pa  # noqa: PLC0415 -- an extra
    import pyarrow.parquet as pq  # noqa: PLC0415 -- an extra

    files = [tmp_path / "a.parquet", tmp_path / "b.parquet"]
    for file, part in zip(files, (table(0, 2_500), table(2_500, 6_000)), strict=True):
        pq.write_table(part, file, row_group_size=700)
    dedupe("--keep-columns", *files, "-o", tmp_path / "out.parquet")
    given = pa.concat_tables([pq.read_table(file) for file in files])
    found, verdicts = pq.read_table(tmp_path / "out.parquet"), dedupe(*files)
    own = found.select(given.column_names)
    assert own.schema.equals(given.schema)
    assert own.to_pylist() == given.to_pylist()
    assert found.schema.metadata[b"owner"] == b"somebody"
    assert found.column_names[5:] == ADDED
    kinds = [one["verdict"] for one in verdicts]
    assert found["neardup_verdict"].to_pylist() == kinds
    assert {"unique", "duplicate", "rejected"} == set(kinds)
    assert found["neardup_id"].to_pylist() == [one["id"] for one in verdicts]

    dedupe("--unique-only", *files, "-o", tmp_path / "unique.parquet")
    unique = given.filter(pa.array([kind == "unique" for kind in kinds]))
    written = pq.read_table(tmp_path / "unique.parquet")
    assert written.schema.equals(unique.schema, check_metadata=True)
    assert written.to_pylist() == unique.to_pylist()


@needs_pyarrow
@pytest.mark.parametrize("option", ["--keep-columns", "--unique-only"])
def test_parts_of_one_table_may_differ_in_their_schemas(option: str, tmp_path: Path) -> None:
    import pyarrow as pa  # noqa: PLC0415 -- an extra
    import pyarrow.parquet as pq  # noqa: PLC0415 -- an extra

    texts = pa.array(["a text that is kept"])
    parts = [
        pa.table({"text": texts, "n": pa.array([1], pa.int32()), "": ["x"]}),
        pa.table({"": ["y"], "n": pa.array([1 << 40]), "text": texts.cast(pa.large_string())}),
        pa.table({"text": texts.dictionary_encode(), "": pa.nulls(1), "n": pa.nulls(1)}),
        pa.Table.from_arrays(
            [texts, pa.array(["z"]), pa.array([2], pa.int8())],
            schema=pa.schema(
                [pa.field("text", pa.string(), nullable=False), ("", pa.string()), ("n", pa.int8())]
            ),
        ),
    ]
    rows = [row for part in parts for row in part.to_pylist()]
    (tmp_path / "out").mkdir()
    for turn in (0, 2):
        for number, part in enumerate(parts[turn:] + parts[:turn]):
            pq.write_table(part, tmp_path / f"{number}.parquet")
        dedupe(option, tmp_path / "*.parquet", "-o", tmp_path / "out" / "judged.parquet")
        found = pq.read_table(tmp_path / "out" / "judged.parquet").to_pylist()
        own = [{name: row[name] for name in ("text", "n", "")} for row in found]
        wanted = rows[turn:] + rows[:turn]
        assert own == (wanted if option == "--keep-columns" else wanted[:1])


@needs_pyarrow
def test_parquet_of_other_types_or_none_is_refused(tmp_path: Path) -> None:
    import pyarrow as pa  # noqa: PLC0415 -- an extra
    import pyarrow.parquet as pq  # noqa: PLC0415 -- an extra

    one, other, none = (tmp_path / name for name in ("a.parquet", "b.parquet", "c.parquet"))
    pq.write_table(pa.table({"text": ["a"]}), one)
    pq.write_table(pa.table({"text": ["a"], "n": [1]}), other)
    none.write_bytes(b"PAR1 is how it begins, and no more")
    text, twice, whole, parts = (tmp_path / f"{name}.parquet" for name in "defg")
    pq.write_table(pa.table({"text": [1]}), text)
    pq.write_table(pa.Table.from_arrays([pa.array(["a"])] * 2, ["text", "text"]), twice)
    pq.write_table(pa.table({"text": ["a"], "n": [1.5]}), whole)
    pq.write_table(pa.table({"text": ["a"], "n": [(1 << 53) + 1]}), parts)
    for files, said in (
        ((one, other), "b.parquet: has other columns than the file before it, such as 'n'"),
        ((one, text), "d.parquet: Unable to merge: Field text has incompatible types"),
        ((one, twice), "e.parquet: has several columns 'text'"),
        ((whole, parts), "g.parquet: Integer value 9007199254740993 not in range"),
        ((one, none), "c.parquet: "),
    ):
        done = neardup("dedupe", "--keep-columns", *files, "-o", tmp_path / "out.parquet")
        assert done.returncode == 2
        assert said in done.stderr.decode()
        assert done.stderr.count(b"\n") == 1
        assert not (tmp_path / "out.parquet").exists()
