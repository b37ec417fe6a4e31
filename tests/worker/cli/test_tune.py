from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_line import SAMPLES, jsonl, neardup

COMMENTS = SAMPLES / "youtube_spam.jsonl.gz"


def tuned(*arguments: str | Path) -> dict[str, Any]:
    done = neardup("tune", "--json", *arguments)
    assert done.returncode == 0, done.stderr.decode()
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_it_expects_what_evaluate_measures() -> None:
    outlooks = {each["threshold"]: each for each in tuned(COMMENTS)["outlooks"]}
    assert list(outlooks) == [0.5, 0.6, 0.7, 0.8, 0.9]
    for threshold in (0.5, 0.8):
        done = neardup("evaluate", "--json", COMMENTS, "--threshold", str(threshold))
        measured = json.loads(done.stdout)
        expected = outlooks[threshold]
        assert expected["clear"] == measured["clear"]
        assert abs(expected["found"] - measured["recall"]) < 0.01
        assert abs(expected["duplicates"] - measured["duplicates"]) < 0.05 * measured["duplicates"]
        compared = measured["comparisons"] / measured["documents"]
        assert abs(expected["compared"] - compared) < 0.25 * compared


def test_choices_of_bands_and_rows_stand_side_by_side() -> None:
    given = ("--sample", "500", "--threshold", "0.75", "--compare", "18x7, 9×13")  # noqa: RUF001
    outlooks = tuned(COMMENTS, *given)["outlooks"]
    at = [(each["bands"], each["rows"]) for each in outlooks if each["threshold"] == 0.75]
    assert at == [(36, 7), (18, 7), (9, 13)]
    assert [each["threshold"] for each in outlooks] == sorted(e["threshold"] for e in outlooks)
    most, middle, least = (each for each in outlooks if each["threshold"] == 0.75)
    assert most["compared"] > middle["compared"] > least["compared"]
    assert most["duplicates"] > least["duplicates"]


def test_the_table_has_a_line_for_each_and_the_curves() -> None:
    done = neardup("tune", COMMENTS, "--sample", "300")
    assert done.returncode == 0, done.stderr.decode()
    text = done.stdout.decode()
    assert text.startswith("300 documents, of which ")
    assert text.count("18 x 7") == 2
    assert "Share of pairs that are published, by similarity:" in text


@pytest.mark.parametrize(
    ("choice", "said"),
    [
        ("18", "got '18', takes bands and rows, such as 18x7"),
        ("0x7", "got '0x7', takes bands and rows, such as 18x7"),
        ("18x8", "18 * 8 is more than similarity.slots, 128"),
    ],
)
def test_choices_that_cannot_be_are_refused(choice: str, said: str) -> None:
    done = neardup("tune", COMMENTS, "--compare", choice)
    assert (done.returncode, done.stderr.decode()) == (2, f"neardup: --compare: {said}\n")


def test_a_picture_is_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    done = neardup("tune", COMMENTS, "--sample", "300", "--picture", tmp_path / "curves.png")
    assert done.returncode == 0, done.stderr.decode()
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")


def test_a_sample_without_pairs_is_refused() -> None:
    done = neardup("tune", "-", stdin=jsonl([{"text": "alone"}, {"no": "text"}]))
    assert (done.returncode, done.stderr) == (
        1,
        b"neardup: fewer than two documents can be judged\n",
    )
