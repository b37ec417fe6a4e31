"""Verdicts as tables, and names of outputs that promise something else."""

from __future__ import annotations

import csv
import gzip
import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import zstandard

from tests.support.breadth import slow
from tests.support.command_line import ROOT, SAMPLES, dedupe, environment, jsonl, neardup
from worker.files.verdict_tables import without_mark

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
