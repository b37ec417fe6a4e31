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


@pytest.mark.parametrize(
    ("time_format", "first", "later"),
    [
        ("%Y%m%d", "20240101", "20240601"),
        broad("%Y%m", "202401", "202406"),
        broad("excel", "45292", "45444"),
        broad("seconds", "0", "13132800"),
        ("auto", "Mon, 01 Jan 2024 00:00:00 GMT", "Sat, 01 Jun 2024 00:00:00 +0200"),
        broad("auto", "1704067200", "1717200000000"),
    ],
)
@pytest.mark.parametrize("table", [True, False])
def test_the_window_goes_by_the_times_that_the_format_reads(
    time_format: str, first: str, later: str, *, table: bool, tmp_path: Path
) -> None:
    rows = [{"id": "a", "text": TEXT, "at": first}, {"id": "b", "text": TEXT, "at": later}]
    file = tmp_path / f"docs.{'csv' if table else 'jsonl'}"
    lines = "".join(f'{row["id"]},{TEXT.replace(",", "")},"{row["at"]}"\n' for row in rows)
    file.write_bytes(f"id,text,at\n{lines}".encode() if table else jsonl(rows))
    for window, verdict in (("30d", "unique"), ("200d", "duplicate")):
        times = ("--window", window, "--time-field", "at", "--time-format", time_format)
        assert [line["verdict"] for line in dedupe(*times, file)] == ["unique", verdict]


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
