"""``campaigns``: groups of a server or of files, as a table, JSON and CSV."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.breadth import slow
from tests.support.command_line import dedupe, jsonl, neardup
from tests.worker.serve.group_server import Server, serving

VERDICTS = jsonl(
    [
        {"id": "a", "verdict": "unique"},
        {"id": "b", "verdict": "duplicate", "duplicate_of": [{"id": "a", "similarity": 0.9}]},
        {"id": "x\x1b[2J", "verdict": "unique"},
        {
            "id": "c",
            "text": "a document of the topic",
            "duplicate_of": [{"id": "b", "similarity": 0.9}],
            "duplicate_first": {"id": "b", "sequence": 7},
        },
        {"id": "y", "verdict": "duplicate", "duplicate_of": [{"id": "x\x1b[2J"}]},
        {"id": "z", "verdict": "rejected", "reason": "no-text"},
    ]
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("campaigns")) as made:
        made.begin()
        yield made


def asked(server: Server, *arguments: str) -> str:
    done = neardup("campaigns", "--server", f"127.0.0.1:{server.port}", *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout.decode()


def test_it_shows_a_table(server: Server) -> None:
    shown = asked(server)
    rows = [row.split() for row in shown.splitlines() if "fox0" in row or "song0" in row]
    assert [(row[0], row[1], row[-1]) for row in rows] == [
        ("0", "5", "fox0"),
        (rows[1][0], "3", "song0"),
    ]
    assert "3 of 3 groups" in shown


def test_it_prints_json_and_csv(server: Server) -> None:
    groups = json.loads(asked(server, "--json", "--min", "3", "--limit", "1"))["groups"]
    assert [one["size"] for one in groups] == [5]
    lines = asked(server, "--csv", "--sort", "newest").splitlines()
    assert lines[0] == "id,size,growth,first,last,representative"
    assert [line.split(",")[-1] for line in lines[1:]] == ["odd/id ü0", "song0", "fox0"]


def test_it_lists_the_members_of_a_group(server: Server) -> None:
    members = json.loads(asked(server, "--members", "0", "--json"))["members"]
    assert [one["id"] for one in members] == [f"fox{number}" for number in range(5)]
    assert "group 0: 5 documents" in asked(server, "--members", "0")
    lines = asked(server, "--members", "0", "--csv", "--limit", "2").splitlines()
    assert lines[:2] == ["id,time,sequence", "fox0,2023-10-04T06:13:20.000Z,0"]
    assert len(lines) == 3


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--members", "nobody"], "'nobody' is no group"),
        (["--since", "1"], "since: got '1', takes a length such as 24h"),
        (["--sort", "age"], "sort: got 'age', takes size, growth, newest"),
    ],
)
def test_it_says_what_the_server_refuses(server: Server, arguments: list[str], said: str) -> None:
    done = neardup("campaigns", "--server", f"127.0.0.1:{server.port}", *arguments)
    assert done.returncode == 1
    assert done.stderr.decode() == f"neardup: 127.0.0.1:{server.port}: {said}\n"


def test_it_sends_the_token_as_query_does(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("t" * 32)
    config = tmp_path / "neardup.toml"
    config.write_text(f'serve.token_file = "{token}"\n')
    with serving(tmp_path / "served", serve={"token_file": token}) as made:
        made.begin()
        for command in (["campaigns"], ["query", "a text of its own"]):
            asking = *command, "--server", f"127.0.0.1:{made.port}"
            assert b"a token is missing" in neardup(*asking).stderr
            done = neardup(*asking, "--config", config)
            assert (done.returncode, done.stderr) == (0, b"")


def of_file(tmp_path: Path, *arguments: str, verdicts: bytes = VERDICTS) -> Any:  # noqa: ANN401 -- JSON
    path = tmp_path / "verdicts.jsonl"
    path.write_bytes(verdicts)
    return neardup("campaigns", path, *arguments)


def test_it_reads_verdicts(tmp_path: Path) -> None:
    done = of_file(tmp_path, "--json")
    assert json.loads(done.stdout)["groups"] == [
        {"id": "a", "size": 3},
        {"id": "x\x1b[2J", "size": 2},
    ]
    assert of_file(tmp_path, "--csv", "--min", "3").stdout == b"id,size\na,3\n"
    assert b"\x1b" not in of_file(tmp_path).stdout
    members = json.loads(of_file(tmp_path, "--members", "c", "--json").stdout)["members"]
    assert [one["id"] for one in members] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--members", "z"], "'z' is in no group"),
        (
            ["--since", "24h"],
            "--since and --sort: only with a server; verdicts in files have no times",
        ),
        (["--json", "--csv"], "--json and --csv: choose one"),
        (["--server", "localhost:1"], "FILE and --server: choose one"),
    ],
)
def test_it_says_what_files_do_not_have(tmp_path: Path, arguments: list[str], said: str) -> None:
    done = of_file(tmp_path, *arguments)
    assert done.returncode != 0
    assert done.stderr.decode() == f"neardup: {said}\n"


def test_a_file_of_something_else_is_refused(tmp_path: Path) -> None:
    done = of_file(tmp_path, verdicts=VERDICTS + b'{"id": "a", "text": "a document"}\n')
    assert done.stderr.endswith(b"verdicts.jsonl:7: is no verdict of neardup dedupe\n")


@pytest.mark.needs("pyarrow")
@pytest.mark.parametrize(
    ("suffix", "options"),
    [
        (".csv", ["--keep-columns"]),
        (".csv", ["--keep-formulas"]),
        (".parquet", ["--keep-columns"]),
        slow(".csv", []),
        slow(".csv", ["--groups"]),
        slow(".parquet", []),
    ],
)
def test_it_reads_every_table_of_verdicts(suffix: str, options: list[str], tmp_path: Path) -> None:
    """Columns of the table itself that have names of ours are not taken for verdicts."""
    third = "+c" if options == ["--keep-formulas"] else "'-c"
    ids, out = ["=a", "-b", third, "d", "e"], tmp_path / f"out{suffix}"
    texts = ["one text that comes again and again"] * 3 + ["another text, which comes twice"] * 2
    rows = [
        {"id": ident, "text": text, "verdict": "unique", "duplicate_of": "x", "group": "g"}
        for ident, text in zip(ids, texts, strict=True)
    ]
    given = tmp_path / f"given{suffix}"
    if suffix == ".csv":
        with given.open("w", newline="") as file:
            writer = csv.DictWriter(file, rows[0])
            writer.writeheader()
            writer.writerows(rows)
    else:
        import pyarrow as pa  # noqa: PLC0415 -- an extra
        import pyarrow.parquet as pq  # noqa: PLC0415 -- an extra

        pq.write_table(pa.Table.from_pylist(rows), given)
    dedupe(*options, given, "-o", out)
    listed = json.loads(neardup("campaigns", "--json", out).stdout)
    assert listed["groups"] == [{"id": "=a", "size": 3}, {"id": "d", "size": 2}]
    members = json.loads(neardup("campaigns", "--json", "--members", "=a", out).stdout)
    assert {one["id"] for one in members["members"]} == {"=a", "-b", third}
    shown = neardup("campaigns", "--csv", out)
    assert shown.stdout.decode().splitlines() == ["id,size", "'=a,3", "d,2"]
    assert b"1 cell begins with an apostrophe" in shown.stderr
