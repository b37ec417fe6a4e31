"""`neardup boilerplate`, and what the list that it writes does in the other commands."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.support.command_line import jsonl, neardup

FRAME = ["Home | News | Sport", "\u00a9 2024 Example Ltd. All rights reserved.", "Accept cookies"]


def story(seed: int) -> str:
    random = Random(seed)
    return " ".join(f"word{random.randrange(10**6)}" for _ in range(12))


def paged(number: int, text: str) -> dict[str, str]:
    return {"id": f"d{number}", "text": "\n".join([FRAME[0], text, *FRAME[1:]])}


BARE = {"id": "bare", "text": story(3)}
DOCUMENTS = [*(paged(number, story(number)) for number in range(8)), BARE, {"id": "wrong"}]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "docs.jsonl").write_bytes(jsonl(DOCUMENTS))
    done = neardup("boilerplate", "docs.jsonl", cwd=tmp_path)
    assert done.returncode == 0, done.stderr.decode()
    (tmp_path / "lines.txt").write_bytes(done.stdout)
    (tmp_path / "neardup.toml").write_text('[similarity]\nboilerplate = "lines.txt"\n')
    return tmp_path


def judged(folder: Path, *options: str) -> list[dict[str, Any]]:
    """Return the verdicts of `neardup dedupe` on the documents."""
    done = neardup("dedupe", "docs.jsonl", *options, cwd=folder)
    assert done.returncode == 0, done.stderr.decode()
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_it_writes_the_lines_the_most_frequent_first(folder: Path) -> None:
    first, second, *lines = (folder / "lines.txt").read_text().splitlines()
    assert first == ("# Lines of 9 different documents (9 were read), and in how many each stands.")
    assert second.startswith("# Delete what is no boilerplate; then set similarity.boilerplate")
    assert lines == [f"8\t{line}" for line in sorted(FRAME)]


def test_it_says_what_it_found_and_takes_a_share_a_least_number_and_a_sample(folder: Path) -> None:
    done = neardup("boilerplate", "docs.jsonl", cwd=folder)
    assert done.stderr.decode() == (
        "neardup: rejected: no-text 1\n"
        "neardup: 3 lines stand in at least 5 of 9 different documents; 9 were read\n"
    )
    few = neardup("boilerplate", "docs.jsonl", "--sample", "6", "--least", "7", cwd=folder)
    assert few.stderr.decode().startswith("neardup: 0 lines stand in at least 7 of 6 different")
    most = neardup("boilerplate", "docs.jsonl", "--share", "0.95", cwd=folder)
    assert "neardup: 0 lines stand in at least 9 of 9 different" in most.stderr.decode()


def test_files_without_a_document_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "docs.jsonl").write_bytes(b'{"id": "x"}\n')
    done = neardup("boilerplate", "docs.jsonl", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, b"")
    assert b"1 of 1 document can't be read (the first: docs.jsonl:1, no-text: " in done.stderr


def test_documents_are_judged_without_these_lines(folder: Path) -> None:
    with_list = judged(folder, "--config", "neardup.toml")
    assert [one["verdict"] for one in with_list][3:] == [*["unique"] * 5, "duplicate", "rejected"]
    assert [match["id"] for match in with_list[8]["duplicate_of"]] == ["d3"]
    without = judged(folder)
    assert without[8]["verdict"] == "unique"


@pytest.mark.slow
def test_a_state_is_used_with_its_own_list_only(folder: Path) -> None:
    judged(folder, "--state", "index", "--config", "neardup.toml")
    answered = neardup(
        "query", story(3), "--state", "index", "--config", "neardup.toml", "--json", cwd=folder
    )
    (answer,) = json.loads(answered.stdout)["answers"]
    assert [match["id"] for match in answer["matches"]] == ["d3"]
    refused = neardup("dedupe", "docs.jsonl", "--state", "index", cwd=folder)
    assert refused.returncode != 0
    assert "boilerplate: it has " in refused.stderr.decode()
    other = neardup("query", story(3), "--state", "index", cwd=folder)
    assert other.returncode != 0
    assert "boilerplate: it has " in other.stderr.decode()
    assert "the settings say none" in other.stderr.decode()


@pytest.mark.slow
def test_counts_comments_and_order_of_a_list_do_not_matter(folder: Path) -> None:
    judged(folder, "--state", "index", "--config", "neardup.toml")
    (folder / "lines.txt").write_text("\n".join(reversed([line.upper() for line in FRAME])))
    again = judged(folder, "--state", "index", "--config", "neardup.toml")
    assert {one["verdict"] for one in again[:9]} == {"duplicate"}


@pytest.mark.parametrize("command", ["explain", "evaluate", "tune"])
def test_other_commands_leave_the_lines_out_too(command: str, folder: Path) -> None:
    (folder / "two.jsonl").write_bytes(jsonl([DOCUMENTS[3], BARE]))
    (folder / "one.json").write_text(json.dumps(DOCUMENTS[3]))
    (folder / "other.json").write_text(json.dumps(BARE))
    given = ["one.json", "other.json"] if command == "explain" else ["two.jsonl"]
    done = neardup(command, *given, "--json", "--config", "neardup.toml", cwd=folder)
    assert done.returncode == 0, done.stderr.decode()
    found = json.loads(done.stdout)
    if command == "explain":
        assert found["similarity"] == 1.0
    elif command == "evaluate":
        assert (found["duplicates"], found["right_pairs"]) == (1, 1)
    else:
        assert [one["duplicates"] for one in found["outlooks"]] == [1.0] * len(found["outlooks"])
