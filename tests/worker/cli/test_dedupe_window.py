"""What ``neardup dedupe --window`` remembers, within a run and from run to run."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.support.breadth import broad
from tests.support.command_line import dedupe, jsonl

TEXT = "The quick brown fox jumps over the lazy dog, again and again. "
OTHER = "A text that nothing else resembles, not even from a great distance. "
FIRST = datetime(2019, 5, 1, tzinfo=UTC)


def document(ident: str, days: float, text: str = TEXT) -> dict[str, str]:
    return {"id": ident, "text": text, "at": (FIRST + timedelta(days=days)).isoformat()}


def verdicts(*documents: dict[str, str], more: tuple[str | Path, ...] = ()) -> dict[str, list[str]]:
    """Return the ids that each document matched."""
    arguments = ("--window", "30d", "--time-field", "at", *more)
    return {
        line["id"]: [match["id"] for match in line.get("duplicate_of", ())]
        for line in dedupe(*arguments, stdin=jsonl(documents))
    }


@pytest.mark.parametrize(("days", "remembered"), [(29.99, True), (30, True), (30.01, False)])
def test_a_document_is_remembered_for_the_window(days: float, *, remembered: bool) -> None:
    found = verdicts(document("a", 0), document("b", days))
    assert found == {"a": [], "b": ["a"] if remembered else []}


def test_a_copy_renews_what_stands_for_it() -> None:
    found = verdicts(document("a", 0), document("b", 20), document("c", 45), document("d", 80))
    assert found == {"a": [], "b": ["a"], "c": ["a"], "d": []}


def test_a_late_document_is_judged_and_not_remembered() -> None:
    found = verdicts(
        document("now", 100, OTHER), document("late", 60), document("later", 61),
        document("back", 80), document("again", 100),
    )  # fmt: skip
    assert found == {"now": [], "late": [], "later": [], "back": [], "again": ["back"]}


def test_times_of_the_future_expire_nothing() -> None:
    found = verdicts(
        document("a", 0), document("wild", 30_000, OTHER), document("b", 1),
        more=("--window", "10000d"),
    )  # fmt: skip
    assert found == {"a": [], "wild": [], "b": ["a"]}


@pytest.mark.parametrize("shards", [broad("1"), "3"])
def test_a_window_reaches_into_earlier_runs(shards: str, tmp_path: Path) -> None:
    more = ("--state", tmp_path / "state", "--shards", shards)
    assert verdicts(document("a", 0), more=more) == {"a": []}
    assert verdicts(document("b", 25), document("x", 25, OTHER), more=more) == {"b": ["a"], "x": []}
    assert verdicts(document("c", 50), document("y", 56, OTHER), more=more) == {"c": ["a"], "y": []}
