"""Verdicts as tables, and names of outputs that promise something else."""

from __future__ import annotations

import csv
import gzip
import io
import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import zstandard

from tests.support.breadth import slow
from tests.support.command_line import ROOT, SAMPLES, dedupe, environment, jsonl, neardup
from tests.support.texts import near_copies
from worker.files.tables import without_mark

FOX = "The quick brown fox jumps over the lazy dog, and then it does so again and again."
ODD = 'a "b", c\nd\te\r'
DOCUMENTS = jsonl(
    [
        {"id": ODD, "text": FOX},
        {"id": " é", "text": FOX + "."},
        {"text": FOX + "!"},
        {"id": "x", "body": FOX},
    ]
)
COLUMNS = [
    "row", "source", "id", "verdict", "duplicate_first", "match", "similarity", "duplicate_of",
    "reason", "group",
]  # fmt: skip
needs_pyarrow = pytest.mark.needs("pyarrow")


def rows_of(data: bytes, separator: str = ",") -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(data.decode(), newline=""), delimiter=separator))


def expected() -> list[dict[str, Any]]:
    """Return what the lines of JSON say, as rows."""
    rows = []
    for number, line in enumerate(dedupe(stdin=DOCUMENTS), 1):
        best = line.get("duplicate_of", [{}])[0]
        rows.append(
            {
                "row": number,
                "source": f"stdin:{number}",
                "id": line["id"],
                "verdict": line["verdict"],
                "duplicate_first": line.get("duplicate_first", {}).get("id"),
                "match": best.get("id"),
                "similarity": best.get("similarity"),
                "duplicate_of": line.get("duplicate_of"),
                "reason": line.get("reason"),
                "group": line.get("group"),
            }
        )
    return rows


@pytest.mark.parametrize(
    ("name", "separator"),
    [("v.csv", ","), ("v.TSV", "\t"), ("v.csv.gz", ","), slow("v.csv.zst", ",")],
)
def test_rows_say_what_lines_do(name: str, separator: str, tmp_path: Path) -> None:
    out = tmp_path / name
    assert dedupe("-o", out, stdin=DOCUMENTS) == []
    data = out.read_bytes()
    if name.endswith("gz"):
        data = gzip.decompress(data)
    if name.endswith("zst"):
        data = zstandard.ZstdDecompressor().decompressobj().decompress(data)
    rows = rows_of(data, separator)
    assert list(rows[0]) == COLUMNS
    wanted = expected()
    assert [row["verdict"] for row in wanted] == ["unique", "duplicate", "duplicate", "rejected"]
    for row, want in zip(rows, wanted, strict=True):
        matches = json.loads(row.pop("duplicate_of") or "null")
        assert matches == want.pop("duplicate_of")
        assert row == {name: "" if value is None else str(value) for name, value in want.items()}


def test_they_can_be_read_again(tmp_path: Path) -> None:
    out = tmp_path / "v.csv"
    dedupe("-o", out, stdin=DOCUMENTS)
    again = dedupe("--text-field", "verdict", out)
    assert [line["id"] for line in again] == [row["id"] for row in expected()]


FORMULAS = ["=1+1", "+x", "-x", "@x", " =x", "'=x", "''-x", "\t", "\uff1dx", "-1+1"]
HARMLESS = ["-1", "+1.5", "-1,000", "x=1", "'x", "1-1", "'"]


@pytest.mark.parametrize("name", ["v.csv", "v.tsv.gz"])
def test_no_cell_is_a_formula_unless_that_is_asked_for(name: str, tmp_path: Path) -> None:
    ids, out = FORMULAS + HARMLESS, tmp_path / name
    stdin = jsonl([{"id": one, "text": FOX} for one in ids])

    def cells(*options: str) -> tuple[list[dict[str, str]], str]:
        done = neardup("dedupe", *options, "-o", out, stdin=stdin)
        data = gzip.decompress(out.read_bytes()) if name.endswith("gz") else out.read_bytes()
        return rows_of(data, "\t" if "tsv" in name else ","), done.stderr.decode()

    rows, said = cells()
    assert [row["id"] for row in rows] == ["'" + one for one in FORMULAS] + HARMLESS
    assert [row["match"] for row in rows] == ["", *["'=1+1"] * (len(ids) - 1)]
    assert json.loads(rows[1]["duplicate_of"])[0]["id"] == "=1+1"
    assert [without_mark(row["id"]) for row in rows] == ids
    marked = len(FORMULAS) + 2 * (len(ids) - 1)
    assert f"neardup: {marked} cells begin with an apostrophe, so that no spreadsheet" in said
    rows, said = cells("--keep-formulas")
    assert [row["id"] for row in rows] == ids
    assert "apostrophe" not in said


def test_a_table_of_nothing_has_its_header(tmp_path: Path) -> None:
    out = tmp_path / "v.csv"
    dedupe("-o", out, stdin=b"")
    assert out.read_text() == ",".join(COLUMNS) + "\n"


@needs_pyarrow
@pytest.mark.parametrize("count", [0, 1, 3])
def test_parquet_has_types(count: int, tmp_path: Path) -> None:
    import pyarrow.parquet as pq  # noqa: PLC0415 -- an extra

    out = tmp_path / "v.parquet"
    dedupe(
        "-o",
        out,
        "--containment",
        "0.9",
        stdin=b"".join(DOCUMENTS.splitlines(keepends=True)[:count]),
    )
    table = pq.read_table(out)
    assert table.column_names == COLUMNS
    assert str(table.schema.field("duplicate_of").type) == (
        "list<element: struct<id: string, similarity: double, containment: double>>"
    )
    rows = table.to_pylist()
    assert [row["row"] for row in rows] == list(range(1, count + 1))
    assert [row["id"] for row in rows] == [row["id"] for row in expected()[:count]]
    if count == 3:
        assert rows[1]["duplicate_of"][0].keys() == {"id", "similarity", "containment"}
        assert rows[1]["similarity"] == rows[1]["duplicate_of"][0]["similarity"]


@needs_pyarrow
def test_parquet_of_many_chunks(tmp_path: Path) -> None:
    import pyarrow.parquet as pq  # noqa: PLC0415 -- an extra

    sample = gzip.decompress((SAMPLES / "youtube_spam.jsonl.gz").read_bytes())
    out = tmp_path / "v.pq"
    dedupe("-o", out, stdin=sample * 3)
    assert pq.read_table(out)["verdict"].to_pylist() == [
        line["verdict"] for line in dedupe(stdin=sample * 3)
    ]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("-o", "v.json"), "-o v.json: can't write .json; what can be written is .jsonl, .csv"),
        (("-o", "s3://a/v.csv"), "-o s3:/a/v.csv: the output must be a local file; copy it"),
        (("-o", "v.xlsx"), "-o v.xlsx: can't write .xlsx; what can be"),
        slow(("-o", "v.json.gz"), "-o v.json.gz: can't write .json;"),
        slow(("-o", "v.jsonl.bz2"), "-o v.jsonl.bz2: can't write .bz2;"),
        (("-o", "v.parquet.gz"), "-o v.parquet.gz: Parquet is compressed within; leave out .gz"),
        (("-o", "v.mbox", "--unique-only"), "-o v.mbox: can't write .mbox; what can be"),
        slow(("-o", "v.EML", "--unique-only"), "-o v.EML: can't write .eml; what can be"),
        (("-o", "v.warc.gz", "--unique-only"), "-o v.warc.gz: can't write .warc; what can be"),
        (("-o", "v.jsonl", "--keep-formulas"), "--keep-formulas: only if the output is named .csv"),
        (("-o", "v.csv", "--unique-only"), "write rows of CSV only if all inputs are CSV"),
        slow(("-o", "v.parquet", "--unique-only"), "write rows of Parquet only if all inputs"),
    ],
)
def test_other_formats_are_refused(arguments: tuple[str, ...], says: str, tmp_path: Path) -> None:
    done = neardup("dedupe", *arguments, stdin=DOCUMENTS, cwd=tmp_path)
    assert done.returncode == 2
    assert says in done.stderr.decode()
    assert done.stderr.count(b"\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["v.jsonl", slow("v"), "monday.verdicts", slow("v.txt")])
def test_other_names_promise_nothing(name: str, tmp_path: Path) -> None:
    dedupe("-o", tmp_path / name, stdin=DOCUMENTS)
    assert json.loads((tmp_path / name).read_bytes().splitlines()[0])["verdict"] == "unique"


def test_without_pyarrow_the_message_says_what_to_install(tmp_path: Path) -> None:
    hidden = "import sys; sys.modules['pyarrow'] = None; from worker.cli.root import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", hidden, "dedupe", "-o", str(tmp_path / "v.parquet")],
        input=DOCUMENTS,
        capture_output=True,
        check=False,
        cwd=ROOT,
        env=environment(),
    )
    assert done.returncode == 2
    says = "-o: to write Parquet takes more: pip install 'neardup[parquet]'\n"
    assert done.stderr.decode().endswith(says)
    assert list(tmp_path.iterdir()) == []


ADDED = [
    "neardup_row", "neardup_source", "neardup_id", "neardup_verdict", "neardup_duplicate_first",
    "neardup_match", "neardup_similarity", "neardup_duplicate_of", "neardup_reason",
]  # fmt: skip
TEXTS = [text for _, text in near_copies(6_000, 2)]


def csv_file(path: Path, rows: list[list[str]]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)
    return path


def test_rows_of_csv_keep_their_cells(tmp_path: Path) -> None:
    odd = [[f"d{n}", text, f'a "{n}",\nb '] for n, text in enumerate(TEXTS)]
    given = csv_file(tmp_path / "a.csv", [["id", "text", "note"], *odd])
    dedupe("--keep-columns", given, "-o", tmp_path / "out.csv")
    found, verdicts = rows_of((tmp_path / "out.csv").read_bytes()), dedupe(given)
    assert list(found[0]) == ["id", "text", "note", *ADDED]
    assert [[row["id"], row["text"], row["note"]] for row in found] == odd
    assert [row["neardup_verdict"] for row in found] == [one["verdict"] for one in verdicts]
    for row, one in zip(found, verdicts, strict=True):
        assert json.loads(row["neardup_duplicate_of"] or "null") == one.get("duplicate_of")

    dedupe("--unique-only", given, "-o", tmp_path / "unique.csv")
    unique = [cells for cells, one in zip(odd, verdicts, strict=True) if one["verdict"] == "unique"]
    assert [list(row.values()) for row in rows_of((tmp_path / "unique.csv").read_bytes())] == unique
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
