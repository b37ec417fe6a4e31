"""``similarity.containment``: an excerpt is a duplicate of what it was cut from."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

from lsh import Index, Parameters, exact_containment
from tests.support.command_line import SAMPLES, dedupe, jsonl, neardup

CONTAINED = ("--containment", "0.9")


@pytest.fixture(scope="module")
def documents() -> list[dict[str, str]]:
    """Return some news items, and an excerpt of each: half of it, or more."""
    random = Random(1)
    lines = gzip.decompress((SAMPLES / "pypa_advisories.jsonl.gz").read_bytes()).splitlines()
    texts = [text for line in lines if len(text := json.loads(line)["text"]) > 600][:80]
    cuts = []
    for text in texts:
        size = random.randint(len(text) // 2, len(text))
        start = random.randint(0, len(text) - size)
        cuts.append(text[start : start + size])
    named = [(f"whole-{number}", text) for number, text in enumerate(texts)]
    named += [(f"cut-{number}", text) for number, text in enumerate(cuts)]
    return [{"id": ident, "text": text} for ident, text in named]


def verdicts(documents: list[dict[str, str]], *more: str | Path) -> list[dict[str, Any]]:
    return dedupe(*more, stdin=jsonl(documents))


@pytest.fixture(scope="module")
def judged(documents: list[dict[str, str]]) -> list[dict[str, Any]]:
    return verdicts(documents, *CONTAINED)


def test_excerpts_are_found_that_are_not_similar_enough(
    documents: list[dict[str, str]], judged: list[dict[str, Any]]
) -> None:
    cut = [one for one in judged if one["id"].startswith("cut-")]
    plain = [one for one in verdicts(documents) if one["id"].startswith("cut-")]
    found = sum(one["verdict"] == "duplicate" for one in cut)
    assert found >= 0.97 * len(cut) > 1.5 * sum(one["verdict"] == "duplicate" for one in plain)


def test_what_is_published_for_its_containment_is_contained(
    documents: list[dict[str, str]], judged: list[dict[str, Any]]
) -> None:
    texts = {one["id"]: one["text"] for one in documents}
    errors = [
        match["containment"] - exact_containment(texts[one["id"]], texts[match["id"]])
        for one in judged
        for match in one.get("duplicate_of", ())
        if match["similarity"] < 0.8
    ]
    assert len(errors) > 25
    assert abs(sum(errors) / len(errors)) < 0.02
    assert max(map(abs, errors)) < 0.2
    every = [match for one in judged for match in one.get("duplicate_of", ())]
    assert all(match["similarity"] >= 0.8 or match["containment"] >= 0.9 for match in every)


@pytest.mark.slow
def test_shards_change_nothing(
    documents: list[dict[str, str]], judged: list[dict[str, Any]]
) -> None:
    assert verdicts(documents, *CONTAINED, "--shards", "7") == judged


def test_an_index_in_memory_says_the_same(
    documents: list[dict[str, str]], judged: list[dict[str, Any]]
) -> None:
    index = Index(Parameters.for_threshold(0.8, containment=0.9))
    found = index.add_many([(one["id"], one["text"]) for one in documents])
    assert [
        [(match["id"], match["similarity"], match.get("containment")) for match in one]
        for one in (one.get("duplicate_of", ()) for one in judged)
    ] == [
        [
            (hit.id, round(hit.similarity, 4), hit.containment and round(hit.containment, 4))
            for hit in found.get(one["id"], ())
        ]
        for one in judged
    ]
    again = [hit.containment for hit in index.query(documents[-1]["text"])]
    assert 1.0 in again  # It is an excerpt of itself.


@pytest.mark.slow
def test_a_state_goes_on_with_the_containment_it_was_made_with(
    tmp_path: Path, documents: list[dict[str, str]], judged: list[dict[str, Any]]
) -> None:
    state = ("--state", tmp_path / "state")
    half = len(documents) // 2
    assert verdicts(documents[:half], *CONTAINED, *state) == judged[:half]
    refused = neardup("dedupe", *state, stdin=jsonl(documents[half:]))
    assert refused.returncode == 2
    said = refused.stderr.replace(b"\n", b" ")
    assert b"containment: it has 0.9, the settings say none" in said
    assert verdicts(documents[half:], *CONTAINED, *state) == judged[half:]
    done = neardup("query", *state, "--json", documents[-1]["text"])
    reply = json.loads(done.stdout)
    assert reply["containment"] == 0.9
    (answer,) = reply["answers"]
    expected = {documents[-1]["id"], *(match["id"] for match in judged[-1]["duplicate_of"])}
    assert {match["id"] for match in answer["matches"]} >= expected
    assert all("containment" in match for match in answer["matches"] if match["similarity"] < 0.8)
    shown = neardup("query", *state, documents[-1]["text"]).stdout.decode()
    assert "at threshold 0.8 or containment 0.9" in shown


def test_evaluate_counts_what_is_published_for_its_containment(
    tmp_path: Path, documents: list[dict[str, str]], judged: list[dict[str, Any]]
) -> None:
    (tmp_path / "docs.jsonl").write_bytes(jsonl(documents))
    done = neardup("evaluate", "docs.jsonl", *CONTAINED, "--json", cwd=tmp_path)
    found = json.loads(done.stdout)
    pairs = [match for one in judged for match in one.get("duplicate_of", ())]
    texts = {one["id"]: one["text"] for one in documents}
    alone = [
        exact_containment(texts[one["id"]], texts[match["id"]]) >= 0.9
        for one in judged
        for match in one.get("duplicate_of", ())
        if match["similarity"] < 0.8
    ]
    assert (found["pairs"], found["contained_pairs"]) == (len(pairs), len(alone))
    assert found["right_contained"] == sum(alone)
    cut = {one["id"]: one["verdict"] for one in judged if one["id"].startswith("cut-")}
    assert len(cut) / 2 < found["contained"] <= len(judged)
    assert 0.98 * found["contained"] <= found["found_contained"] <= found["duplicates"]
    shown = neardup("evaluate", "docs.jsonl", *CONTAINED, cwd=tmp_path).stdout.decode()
    assert "at most containment_ratio times as long has 0.95 or more" in shown
    assert f"published for a containment alone: {sum(alone)} of {len(alone)} (" in shown
    assert "the tables below go by similarity alone" in shown


def test_explain_says_which_of_two_must_come_later(
    tmp_path: Path, documents: list[dict[str, str]]
) -> None:
    whole = documents[0]
    cut = {"id": "cut", "text": whole["text"][: len(whole["text"]) * 6 // 10]}
    (tmp_path / "docs.jsonl").write_bytes(jsonl([whole, cut]))
    pair = ("explain", "--in", "docs.jsonl", whole["id"], "cut", *CONTAINED)
    found = json.loads(neardup(*pair, "--json", cwd=tmp_path).stdout)
    assert found["duplicate_of_the_other"] == [False, True]
    assert found["contained"][0] < 0.9
    assert found["contained"][1] > 0.98
    assert abs(found["contained_estimates"][1] - found["contained"][1]) < 0.15
    assert found["verdict"] == "duplicate"
    shown = " ".join(neardup(*pair, cwd=tmp_path).stdout.decode().split())
    assert "at threshold 0.8 or containment 0.9" in shown
    assert "≥ 0.9, if the second one comes later" in shown
    plain = json.loads(neardup(*pair[:-2], "--json", cwd=tmp_path).stdout)
    assert plain["verdict"] == "unique"
    assert "containment" not in plain


@pytest.mark.slow
def test_tune_says_that_it_goes_by_similarity(tmp_path: Path) -> None:
    texts = [f"One text after the other, and this is number {number}." for number in range(9)]
    (tmp_path / "docs.jsonl").write_bytes(
        jsonl({"id": str(number), "text": text} for number, text in enumerate(texts))
    )
    shown = neardup("tune", "docs.jsonl", *CONTAINED, cwd=tmp_path).stdout.decode()
    assert "similarity.containment is set" in shown
    outlooks = json.loads(neardup("tune", "docs.jsonl", *CONTAINED, "--json", cwd=tmp_path).stdout)
    assert {each["bands"] for each in outlooks["outlooks"] if each["threshold"] >= 0.6} == {64}
