from __future__ import annotations

import gzip
import json
from pathlib import Path
from random import Random
from string import ascii_lowercase
from typing import Any

import pytest

from lsh import Fingerprinter, compare
from tests.support.breadth import mostly_slow
from tests.support.command_line import SAMPLES, dedupe, jsonl, neardup
from worker.measuring import pictures
from worker.offline.filter import offline_settings

TEXT = "The council has voted to close the old ferry line, after two years of debate. " * 3
DOCUMENTS = [
    {"id": "a", "text": f"{TEXT}Nobody objected."},
    {"id": "b", "text": "Rivers and mountains, which is something else entirely."},
    {"id": "c", "text": f"{TEXT}Nobody has objected."},
    {"id": "d", "text": f"  THE old ferry {TEXT}Nobody objected."},
    {"id": "e"},
    {"id": "f", "text": f"{TEXT}Nobody objected."},
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "docs.jsonl").write_bytes(jsonl(DOCUMENTS))
    (tmp_path / "comments.jsonl").write_bytes(
        gzip.decompress((SAMPLES / "youtube_spam.jsonl.gz").read_bytes())
    )
    return tmp_path


def evaluated(folder: Path, *arguments: str | Path) -> dict[str, Any]:
    done = neardup("evaluate", "--json", *arguments, cwd=folder)
    assert done.returncode == 0, done.stderr.decode()
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_what_was_found_is_counted_by_the_exact_similarity(folder: Path) -> None:
    found = evaluated(folder, "docs.jsonl")
    assert (found["documents"], found["rejected"], found["duplicates"]) == (6, 1, 3)
    assert (found["clear"], found["found_clear"], found["recall"]) == (3, 3, 1.0)
    assert found["right_pairs"] == found["pairs"] >= 3
    none, *bands = found["bands"]
    assert (none["documents"], none["duplicates"]) == (2, 0)
    assert sum(band["documents"] for band in bands) == 3
    assert bands[-1] == {"low": 1, "high": 1, "documents": 1, "duplicates": 1, "predicted": 1}
    assert sum(row["pairs"] for row in found["estimates"]) == 3
    assert (found["slots"], found["bands"][0]["low"], found["shingle"]) == (128, 0, "char")


def test_the_table_says_the_same(folder: Path) -> None:
    done = neardup("evaluate", "docs.jsonl", cwd=folder)
    text = done.stdout.decode()
    assert text.startswith(
        "6 documents, threshold 0.8, shingles of 5 characters, 128 slots, 18 ban"
    )
    assert "found: 3 of 3 (100.00%) of the documents with an earlier one at 0.85 or above" in text
    assert "rejected, and left out here: 1 document\n" in text
    assert "1 (equal)" in text
    assert "none, or below 0.7" in text


@pytest.mark.slow
def test_real_comments_are_judged_as_dedupe_does_and_compared_as_explain_does(
    folder: Path,
) -> None:
    path = folder / "comments.jsonl"
    found = evaluated(folder, path, "--threshold", "0.7")
    verdicts = dedupe("--threshold", "0.7", path)
    assert found["duplicates"] == sum(each["verdict"] == "duplicate" for each in verdicts)
    texts = {each["id"]: each["text"] for each in map(json.loads, path.read_bytes().splitlines())}
    fingerprinter = Fingerprinter(
        offline_settings(None, {"similarity.threshold": 0.7}).parameters()
    )
    exact = [
        compare(fingerprinter, texts[verdict["id"]], texts[match["id"]]).similarity
        for verdict in verdicts
        for match in verdict.get("duplicate_of", [])
    ]
    assert found["pairs"] == len(exact)
    assert found["right_pairs"] == sum(similarity >= 0.7 for similarity in exact)
    assert found["recall"] >= 0.99
    assert sum(found["missed"].values()) == found["clear"] - found["found_clear"]
    predicted = sum(band["predicted"] for band in found["bands"])
    assert abs(predicted - found["duplicates"]) < 10


def test_few_bands_are_named_as_the_cause_of_what_they_miss(folder: Path) -> None:
    (folder / "few.toml").write_text("[similarity]\nbands = 1\nrows = 100\nslots = 256\n")
    found = evaluated(folder, "comments.jsonl", "--config", "few.toml", "--threshold", "0.5")
    assert found["missed"]["bands"] > found["missed"]["estimate"]
    assert found["recall"] < 0.99


def test_what_the_index_has_forgotten_is_named_as_the_cause_of_a_miss(tmp_path: Path) -> None:
    others = [" ".join(Random(n).choices(ascii_lowercase, k=60)) for n in range(48)]
    before = [{"text": text, "time": 1_000} for text in [TEXT, *others[:32]]]
    documents = before + [{"text": text, "time": 100_000} for text in [*others[32:], TEXT]]
    (tmp_path / "docs.jsonl").write_bytes(jsonl(documents))
    (tmp_path / "window.toml").write_text(
        '[index]\nwindow = "60s"\n[documents]\ntime_field = "time"\ntime_format = "seconds"\n'
    )
    found = evaluated(tmp_path, "docs.jsonl", "--config", "window.toml")
    assert found["missed"] == {"estimate": 0, "bands": 0, "gone": 1}


def test_labelled_pairs_are_looked_up(folder: Path) -> None:
    (folder / "pairs.tsv").write_text("c\ta\t0.9\nb\ta\na\tz\n")
    done = neardup("evaluate", "--json", "docs.jsonl", "--pairs", "pairs.tsv", cwd=folder)
    labelled = json.loads(done.stdout)["labelled"]
    assert (labelled["pairs"], labelled["published"], labelled["found"]) == (2, 1, 1)
    assert [(band["pairs"], band["found"]) for band in labelled["bands"]] == [(1, 0), (1, 1)]
    assert b"neardup: 1 of 3 pairs don't name two of the documents" in done.stderr
    shown = neardup("evaluate", "docs.jsonl", "--pairs", "pairs.tsv", cwd=folder).stdout.decode()
    assert "labelled pairs: 2; the later document is a duplicate in 1 of 2 (50.00%)" in shown


def test_wrong_pairs_are_one_line_before_any_work(folder: Path) -> None:
    (folder / "pairs.tsv").write_text("a c\n")
    done = neardup("evaluate", "missing.jsonl", "--pairs", "pairs.tsv", cwd=folder)
    assert done.returncode == 1
    assert done.stderr == b"neardup: pairs.tsv:1: takes two ids, separated by a tab\n"


def test_documents_of_which_none_can_be_judged_are_refused(tmp_path: Path) -> None:
    (tmp_path / "docs.jsonl").write_bytes(jsonl([{"id": "a"}, {"id": "b"}]))
    done = neardup("evaluate", "docs.jsonl", cwd=tmp_path)
    assert done.returncode == 1
    assert b"2 of 2 documents can't be read (the first: docs.jsonl:1, no-text: " in done.stderr


@pytest.mark.needs("matplotlib")
def test_a_picture_is_drawn(folder: Path) -> None:
    done = neardup("evaluate", "docs.jsonl", "--picture", "found.png", cwd=folder)
    assert done.returncode == 0, done.stderr.decode()
    assert (folder / "found.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.needs("matplotlib")
def test_a_picture_of_another_kind_is_refused_before_any_work(folder: Path) -> None:
    done = neardup("evaluate", "missing.jsonl", "--picture", "found.doc", cwd=folder)
    assert done.returncode == 2
    assert done.stderr == b"neardup: --picture: found.doc: must end in .pdf, .png, .svg\n"


def test_a_picture_without_matplotlib_says_what_to_install(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pictures, "find_spec", lambda _name: None)
    done = neardup("evaluate", "docs.jsonl", "--picture", "found.png", cwd=folder)
    assert done.returncode == 2
    assert b"--picture needs matplotlib: pip install 'neardup[plots]'" in done.stderr


@pytest.mark.parametrize("threshold", mostly_slow([0.12, 0.5, 0.63, 0.8, 0.97, 1.0], 0.12, 0.8))
def test_bands_hold_each_document_once_and_one_begins_at_the_threshold(
    folder: Path, threshold: float
) -> None:
    found = evaluated(folder, "docs.jsonl", "--threshold", str(threshold))
    bands = found["bands"]
    assert [band["high"] for band in bands[:-1]] == [band["low"] for band in bands[1:]]
    assert (bands[0]["low"], bands[-1]["low"], bands[-1]["high"]) == (0, 1, 1)
    assert threshold in [band["low"] for band in bands]
    assert sum(band["documents"] for band in bands) == found["documents"] - found["rejected"]
    assert sum(band["duplicates"] for band in bands) == found["duplicates"]


@pytest.mark.parametrize(("common", "more"), [(17, 3), (16, 4), (14, 6)])
def test_a_pair_that_is_exactly_as_much_above_the_threshold_is_clear(
    tmp_path: Path, common: int, more: int
) -> None:
    words = [f"word{number}" for number in range(common + more)]
    texts = [" ".join(words[:common]), " ".join(words)]
    (tmp_path / "docs.jsonl").write_bytes(jsonl([{"text": text} for text in texts]))
    (tmp_path / "neardup.toml").write_text(
        f'[similarity]\nshingle = "word"\nshingle_size = 1\nthreshold = {common / 20 - 0.05:.2f}\n'
    )
    found = evaluated(tmp_path, "docs.jsonl", "--config", "neardup.toml")
    assert (found["clear"], found["at_threshold"]) == (1, 1)


@pytest.mark.parametrize("command", ["dedupe", "evaluate", "tune"])
def test_texts_that_are_alike_whatever_they_say_are_told_with_what_helps(
    tmp_path: Path, command: str
) -> None:
    chance = Random(5)
    texts = ["".join(chance.choices("ACGT", k=3_000)) for _ in range(30)]
    (tmp_path / "docs.jsonl").write_bytes(jsonl([{"text": text} for text in texts]))
    done = neardup(command, "docs.jsonl", cwd=tmp_path)
    assert done.returncode == 0
    warnings = [line for line in done.stderr.decode().splitlines() if "warning" in line]
    assert len(warnings) == 1
    assert "two of the first 30 documents have a similarity of 0." in warnings[0]
    assert "0.00 with similarity.shingle_size = 12" in warnings[0]
