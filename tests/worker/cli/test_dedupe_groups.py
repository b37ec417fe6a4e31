"""``dedupe --groups``: each verdict names the group of its document."""

from __future__ import annotations

import csv
import gzip
import io
import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_line import SAMPLES, dedupe, jsonl, neardup

LINES = gzip.decompress((SAMPLES / "pypa_advisories.jsonl.gz").read_bytes())
BOTH = " ".join(f"word{number}" for number in range(60))
LEFT = BOTH + " " + " ".join(f"left{number}" for number in range(14))
RIGHT = " ".join(f"right{number}" for number in range(14)) + " " + BOTH


def components(verdicts: list[dict[str, Any]]) -> dict[str, str]:
    """Return, for each document of a group, the earliest one of it, by merging sets."""
    sets: dict[str, set[str]] = {}
    for one in verdicts:
        for match in one.get("duplicate_of", ()):
            joined = sets.get(one["id"], {one["id"]}) | sets.get(match["id"], {match["id"]})
            sets.update(dict.fromkeys(joined, joined))
    ranks = {one["id"]: rank for rank, one in enumerate(verdicts)}
    return {ident: min(some, key=ranks.__getitem__) for ident, some in sets.items()}


def test_groups_are_the_connected_components_of_the_run() -> None:
    plain = dedupe(stdin=LINES)
    found = dedupe("--groups", stdin=LINES)
    expected = components(plain)
    assert {one["id"]: one["group"] for one in found if "group" in one} == expected
    assert [{k: v for k, v in one.items() if k != "group"} for one in found] == plain
    assert len(set(expected.values())) > 100


def test_a_later_document_joins_two_groups(tmp_path: Path) -> None:
    texts = {"left": LEFT, "right": RIGHT, "other": "Nothing of this kind.", "both": BOTH}
    documents = jsonl([{"id": ident, "text": text} for ident, text in texts.items()])
    out = tmp_path / "out.csv"
    done = neardup("dedupe", "--groups", "--threshold", "0.74", "-o", out, stdin=documents)
    assert done.returncode == 0, done.stderr
    rows = list(csv.DictReader(io.StringIO(out.read_text())))
    assert [(row["verdict"], row["group"]) for row in rows] == [
        ("unique", "left"),
        ("unique", "left"),
        ("unique", ""),
        ("duplicate", "left"),
    ]
    assert [path.name for path in tmp_path.iterdir()] == ["out.csv"]


def test_the_earliest_document_may_be_of_an_earlier_run(tmp_path: Path) -> None:
    state = tmp_path / "state"
    dedupe("--state", state, stdin=jsonl([{"id": "old", "text": BOTH}]))
    (found,) = dedupe("--groups", "--state", state, stdin=jsonl([{"id": "new", "text": BOTH}]))
    assert found["group"] == "old"


def test_it_is_not_for_lines_of_unique_documents() -> None:
    done = neardup("dedupe", "--groups", "--unique-only", stdin=b"")
    assert done.returncode == 2
    assert done.stderr == b"neardup: --groups and --unique-only: choose one\n"


@pytest.mark.parametrize("name", ["out.jsonl", "out.csv", "out.tsv.gz"])
def test_campaigns_are_read_from_what_was_written(tmp_path: Path, name: str) -> None:
    neardup("dedupe", "--groups", "-o", tmp_path / name, stdin=LINES)
    done = neardup("campaigns", "--min", "4", "--json", tmp_path / name)
    assert done.returncode == 0, done.stderr
    groups = json.loads(done.stdout)["groups"]
    expected = components(dedupe(stdin=LINES))
    sizes = {name: list(expected.values()).count(name) for name in set(expected.values())}
    assert {one["id"]: one["size"] for one in groups} == {
        name: size for name, size in sizes.items() if size >= 4
    }
    assert [one["size"] for one in groups] == sorted((one["size"] for one in groups), reverse=True)
