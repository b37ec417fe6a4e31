"""`neardup dedupe` and `lsh.Index` give the same documents the same verdicts and matches."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from lsh import Index
from tests.support.breadth import slow
from tests.support.command_line import SAMPLES, dedupe, jsonl
from tests.support.texts import near_copies


def answers_of_index(documents: list[dict[str, str]], index: Index) -> list[dict[str, object]]:
    """Return what dedupe would write about documents that all have an id and a text."""
    found = index.add_many((one["id"], one["text"]) for one in documents)
    return [
        {"id": one["id"], "verdict": "unique"}
        if one["id"] not in found
        else {
            "id": one["id"],
            "verdict": "duplicate",
            "duplicate_of": [
                {"id": hit.id, "similarity": round(hit.similarity, 4)} for hit in found[one["id"]]
            ],
        }
        for one in documents
    ]


def without_first(verdicts: list[dict[str, object]]) -> list[dict[str, object]]:
    """Leave out the earliest match, which dedupe names once more."""
    return [{k: v for k, v in one.items() if k != "duplicate_first"} for one in verdicts]


@pytest.mark.parametrize("sample", [slow("onestop"), slow("pypa_advisories"), "youtube_spam"])
def test_samples_get_the_same_answers(sample: str) -> None:
    file = SAMPLES / f"{sample}.jsonl.gz"
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        documents = [json.loads(line) for line in lines]
    expected = without_first(dedupe(file))
    assert {one["verdict"] for one in expected} == {"unique", "duplicate"}
    assert answers_of_index(documents, Index()) == expected


def test_a_crowd_of_near_copies_gets_the_same_answers_with_other_rules(tmp_path: Path) -> None:
    """Buckets are full, and overflow buckets too; many documents stand for others."""
    documents = [{"id": ident, "text": text} for ident, text in near_copies(600, seed=5)]
    config = tmp_path / "small.toml"
    config.write_text("[index]\nbucket_capacity = 2\nmax_matches = 3\nabsorb = 0.99\n")
    expected = without_first(dedupe("--config", config, stdin=jsonl(documents)))
    index = Index(absorb=0.99, capacity=2, max_matches=3)
    assert answers_of_index(documents, index) == expected
