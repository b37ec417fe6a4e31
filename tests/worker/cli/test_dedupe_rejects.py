"""If the settings don't fit the documents, ``dedupe`` says so, and doesn't call it a success."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.breadth import slow
from tests.support.command_line import dedupe, jsonl, neardup

OTHER = b'{"title": "a", "body": "b"}\n'


def good(count: int) -> bytes:
    return jsonl(
        {"id": f"{n}", "text": f"{n} is the number of this document"} for n in range(count)
    )


def test_mostly_rejected_is_a_failure_that_leaves_no_output(tmp_path: Path) -> None:
    out, state = tmp_path / "out", tmp_path / "state"
    out.write_bytes(b"earlier")
    dedupe("--state", state, stdin=good(3))
    before = (state / "CURRENT").read_bytes()
    done = neardup("dedupe", "-o", out, "--state", state, stdin=good(4) + OTHER * 5)
    assert done.returncode == 1
    rejected, fields, end = done.stderr.decode().splitlines()[1:]
    assert rejected == "neardup: rejected: no-text 5"
    assert "has 'id', 'text'; choose with --text-field and --id-field (data.text is" in fields
    assert end == (
        "neardup: 5 of 9 documents can't be read (the first: stdin:5, no-text: no field 'text'),"
        f" and limits.reject_share is 0.5; -o {out} and --state {state} are unchanged"
    )
    assert out.read_bytes() == b"earlier"
    assert (state / "CURRENT").read_bytes() == before


def test_verdicts_on_standard_output_are_there_all_the_same() -> None:
    done = neardup("dedupe", stdin=OTHER)
    assert done.returncode == 1
    assert json.loads(done.stdout)["verdict"] == "rejected"


@pytest.mark.parametrize(("share", "status"), [("0.49", 1), ("0.5", 0), slow("1", 0)])
def test_the_share_is_that_of_the_settings(share: str, status: int, tmp_path: Path) -> None:
    config = tmp_path / "neardup.toml"
    config.write_text(f"[limits]\nreject_share = {share}\n")
    assert neardup("dedupe", "--config", config, stdin=good(5) + OTHER * 5).returncode == status


def test_the_first_documents_are_enough_to_stop(tmp_path: Path) -> None:
    done = neardup("dedupe", "-o", tmp_path / "out", stdin=OTHER * 4_000 + good(9_000))
    assert done.returncode == 1
    assert b"4,000 of 4,000 documents can't be read" in done.stderr


def test_mostly_rejected_says_which_fields_there_are() -> None:
    done = neardup("dedupe", stdin=OTHER * 5)
    assert b"the first document has 'title', 'body'" in done.stderr


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (b"a text\n", "the first document is not JSON; use --format lines if"),
        slow(
            b"[1]\n", "the first document is a JSON array; write one document per line: … | jq -c"
        ),
        slow(b"1\n", "the first document is not a JSON object; use --format"),
        slow(b"{}\n", "the first document has no fields; choose with --text-field"),
        (b'{"a\\u001b[2J": 1}\n', r"the first document has 'a\x1b[2J'; choose with"),
    ],
)
def test_mostly_rejected_says_what_the_first_document_is(line: bytes, says: str) -> None:
    assert says in neardup("dedupe", stdin=line).stderr.decode()


def test_of_rejected_texts_there_is_nothing_more_to_say() -> None:
    done = neardup("dedupe", "--format", "lines", stdin=b"\x01\n" * 3 + b"a text\n" * 4)
    assert done.stderr.splitlines()[1:] == [b"neardup: rejected: empty-text 3"]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        slow(
            ["--text-field", "text", "--text-field", "headline"], "has a value in field 'headline'"
        ),
        slow(["--id-field", "key"], "has a value in field 'key'"),
        (["--time-field", "at", "--id-field", "key"], "has a value in field 'key', 'at'"),
    ],
)
def test_a_field_that_no_document_has_is_a_warning(options: list[str], says: str) -> None:
    done = neardup("dedupe", *options, stdin=good(5))
    assert done.returncode == 0
    warning = done.stderr.decode().splitlines()[-1]
    assert warning.startswith("neardup: warning: none of the first 5 documents ")
    assert warning.endswith(f"{says}; the fields they have: 'id', 'text'")


CALENDAR = jsonl({"text": f"{n} is the number of this text", "at": 20240101} for n in range(9))


def test_times_that_cannot_be_read_are_a_failure_that_says_what_reads_them() -> None:
    done = neardup("dedupe", "--time-field", "at", stdin=CALENDAR)
    assert done.returncode == 1
    assert done.stderr.decode().splitlines()[1:] == [
        "neardup: rejected: bad-time 9",
        (
            "neardup: 9 of 9 documents can't be read (the first: stdin:1, bad-time: field 'at' is"
            " 20240101: no time from 1990 to 2031 in seconds, milliseconds, microseconds or"
            " nanoseconds; it looks like a date: set documents.time_format (--time-format) to"
            " %Y%m%d), and limits.reject_share is 0.5"
        ),
    ]


def test_texts_in_lists_are_a_failure_that_says_what_reads_them() -> None:
    done = neardup("dedupe", stdin=jsonl([{"text": ["a first text"]}]))
    assert done.returncode == 1
    assert (
        b"(the first: stdin:1, text-wrong-type: field 'text' is an array, not a string; text[]"
        in done.stderr
    )


def test_documents_may_do_without_the_default_id() -> None:
    done = neardup("dedupe", stdin=jsonl([{"text": "a first text"}, {"text": "another one"}]))
    assert done.stderr.count(b"\n") == 1


def test_rows_of_tables_are_judged_by_their_fields(tmp_path: Path) -> None:
    file = tmp_path / "docs.csv"
    file.write_text("key,data.text\n1,a first text\n,a first text\n")
    first, second = dedupe("--text-field", "data.text", "--id-field", "key", file)
    assert first == {"id": "1", "verdict": "unique"}
    assert (second["id"], second["verdict"]) == ("docs.csv:3", "duplicate")
