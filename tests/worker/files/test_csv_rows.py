"""Rows of tables are JSON documents; a row that can't be read costs only itself."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.worker.files.parts import LINES, documents_of, lines_of
from worker.files.errors import FileError


def table(folder: Path, content: str | bytes, name: str = "docs.csv") -> Path:
    file = folder / name
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return file


def test_the_header_names_the_fields_and_keys_are_lines(tmp_path: Path) -> None:
    file = table(tmp_path, '\ufeffid,text\r\n1,"a ""b"",\r\nc"\r\n\r\n2,ä\r\n')
    assert documents_of(file) == [
        ("docs.csv:2", '{"id":"1","text":"a \\"b\\",\\r\\nc"}'),
        ("docs.csv:5", '{"id":"2","text":"ä"}'),
    ]


def test_tabs_separate_the_cells_of_tsv(tmp_path: Path) -> None:
    file = table(tmp_path, "id\ttext\n1\ta, b\n", "docs.TSV")
    assert documents_of(file) == [("docs.TSV:2", '{"id":"1","text":"a, b"}')]


def test_an_empty_id_or_time_is_null_and_all_else_is_text(tmp_path: Path) -> None:
    file = table(tmp_path, "id,text,at\n,,\n1,a,1700000000\n2,b, \n3,c, 1.5 \n")
    found = [json.loads(line.raw) for line in lines_of(file, time_field="at")]
    assert [(each["id"], each["text"], each["at"]) for each in found] == [
        (None, "", None),
        ("1", "a", "1700000000"),
        ("2", "b", None),
        ("3", "c", " 1.5 "),
    ]


def test_columns_without_a_name_are_called_by_their_numbers(tmp_path: Path) -> None:
    file = table(tmp_path, ",text,column_4,,\n0,a,b,c,\n1,a,b,,d\n")
    assert [json.loads(line.raw) for line in lines_of(file)] == [
        {"column_1": "0", "text": "a", "column_4": "b", "column_4_": "c"},
        {"column_1": "1", "text": "a", "column_4": "b", "column_5": "d"},
    ]
    file = table(tmp_path, "text" + "," * 50_000 + ("\na" + "," * 50_000) * 5)
    assert [line.raw for line in lines_of(file)] == [b'{"text":"a"}\n'] * 5


@pytest.mark.parametrize("separator", [",", ";", "|", "\t"])
def test_a_first_line_may_say_what_separates_cells(separator: str, tmp_path: Path) -> None:
    rows = [f"sep={separator}", f"id{separator}text", f"1{separator}a"]
    for mark, end in (("", "\n"), ("\ufeff", "\r\n")):
        for name in ("docs.csv", "docs.tsv"):
            file = table(tmp_path, mark + end.join(rows) + end, name)
            assert documents_of(file) == [(f"{name}:3", '{"id":"1","text":"a"}')]


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        (b"1,a,b,c", "not-csv: the row has 4 cells, the header 3"),
        (b'1,"a"b,c', "not-csv: ',' expected after '\"'"),
        (b"1,\xff,c", "invalid-utf8: the row is not UTF-8"),
        (b"1," + b"a" * 999, "too-large: the row has 1002 bytes, far above limits.record_bytes"),
        (b'1,"' + b"a\n" * 999 + b'"', "too-large: the row has 2003 bytes, far above limits"),
        (b'1,"' + b"a" * 9_999 + b'\n""\n",', "too-large: the row has 10009 bytes"),
    ],
)
def test_a_row_that_cannot_be_read_costs_only_itself(
    row: bytes, fault: str, tmp_path: Path
) -> None:
    file = table(tmp_path, b"id,text,more\n0,before,\n" + row + b"\n2,after,\n")
    first, bad, last = lines_of(file, most=1_000)
    assert (bad.key, bad.raw) == (b"docs.csv:3", b"")
    assert bad.fault.startswith(fault)
    assert b"before" in first.raw
    assert (last.key, b"after" in last.raw) == (b"docs.csv:%d" % (4 + row.count(b"\n")), True)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ('id,text\n1,"a\n2,b\n', "the row that begins in line 2 has a quote that isn't closed"),
        ('id,text\n1,"' + "a\n" * 999, "the row that begins in line 2 has a quote that isn't"),
        ("id;text\n1;a\n", "separates its columns by ';'; .csv means commas"),
        ("id,text,id\n", "has several columns 'id'"),
        ('"id\n', "the row that begins in line 1 has a quote"),
        ("id," + "x" * 2_000 + "\n", "has no usable header; too-large: "),
    ],
)
def test_a_table_that_cannot_be_read_is_an_error(content: str, says: str, tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"docs\.csv: ") as caught:
        lines_of(table(tmp_path, content), most=1_000)
    assert says in str(caught.value)


def test_a_cell_may_be_longer_than_the_modules_default(tmp_path: Path) -> None:
    file = table(tmp_path, f"id,text\n1,{'a' * 200_000}\n")
    assert lines_of(file)[0].complete


def test_with_format_lines_a_table_is_lines(tmp_path: Path) -> None:
    file = table(tmp_path, "id,text\n1,a\n")
    found = documents_of(file, reading=LINES, format="text")
    assert found == [("docs.csv:1", "id,text"), ("docs.csv:2", "1,a")]


def test_an_empty_table_has_no_document(tmp_path: Path) -> None:
    assert lines_of(table(tmp_path, "")) == lines_of(table(tmp_path, "id,text\n")) == []
