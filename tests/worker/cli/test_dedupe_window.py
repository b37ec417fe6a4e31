"""What ``neardup dedupe --window`` remembers, within a run and from run to run."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from random import Random

import pytest

from tests.support.breadth import slow
from tests.support.command_line import dedupe, jsonl, neardup

TEXT = "The quick brown fox jumps over the lazy dog, again and again. "
FIRST = datetime(2019, 5, 1, tzinfo=UTC)
NUMBERS = count()

Line = dict[str, str]


def document(ident: str, days: float | None, text: str = TEXT) -> Line:
    line = {"id": ident, "text": text}
    return line if days is None else {**line, "at": (FIRST + timedelta(days=days)).isoformat()}


def others(many: int, days: float) -> list[Line]:
    """Return documents that nothing else resembles."""
    numbers = [next(NUMBERS) for _ in range(many)]
    return [document(f"other {n}", days, unlike_all(n)) for n in numbers]


def unlike_all(number: int) -> str:
    return " ".join(Random(number).choices("abcdefghijklmnopqrstuvwxyz", k=60))


BEFORE, LATER = 32, 16
"""So many documents make a first now; so many make another one."""


def judged(*documents: Line, more: tuple[str | Path, ...] = ()) -> tuple[dict[str, list[str]], str]:
    """Return the ids that each document matched, without others, and what the run said."""
    done = neardup("dedupe", "--window", "30d", "--time-field", "at", *more, stdin=jsonl(documents))
    assert done.returncode == 0, done.stderr.decode()
    lines = map(json.loads, done.stdout.splitlines())
    found = {line["id"]: [match["id"] for match in line.get("duplicate_of", ())] for line in lines}
    for ident in [ident for ident in found if ident.startswith("other")]:
        assert found.pop(ident) == []
    return found, done.stderr.decode()


@pytest.mark.parametrize(("days", "remembered"), [(29.99, True), (30, True), (30.01, False)])
def test_a_document_is_remembered_for_the_window(days: float, *, remembered: bool) -> None:
    found, _ = judged(
        *others(BEFORE, 0), document("a", 0), *others(LATER, days), document("b", days)
    )
    assert found == {"a": [], "b": ["a"] if remembered else []}


@pytest.mark.parametrize(
    ("time_format", "first", "later"),
    [
        ("%Y%m%d", "20240101", "20240601"),
        slow("%Y%m", "202401", "202406"),
        slow("excel", "45292", "45444"),
        slow("seconds", "0", "13132800"),
        ("auto", "Mon, 01 Jan 2024 00:00:00 GMT", "Sat, 01 Jun 2024 00:00:00 +0200"),
        slow("auto", "1704067200", "1717200000000"),
    ],
)
@pytest.mark.parametrize("table", [True, False])
def test_the_window_goes_by_the_times_that_the_format_reads(
    time_format: str, first: str, later: str, *, table: bool, tmp_path: Path
) -> None:
    text = TEXT.replace(",", "")
    dated = [(text, first), *[(unlike_all(n), first) for n in range(BEFORE)]]
    dated += [*[(unlike_all(n), later) for n in range(BEFORE, BEFORE + LATER)], (text, later)]
    rows = [{"id": str(n), "text": text, "at": at} for n, (text, at) in enumerate(dated)]
    file = tmp_path / f"docs.{'csv' if table else 'jsonl'}"
    lines = "".join(f'{row["id"]},{row["text"]},"{row["at"]}"\n' for row in rows)
    file.write_bytes(f"id,text,at\n{lines}".encode() if table else jsonl(rows))
    for window, verdict in (("30d", "unique"), ("200d", "duplicate")):
        times = ("--window", window, "--time-field", "at", "--time-format", time_format)
        assert dedupe(*times, file)[-1]["verdict"] == verdict


def test_a_copy_renews_what_stands_for_it() -> None:
    found, _ = judged(
        *others(BEFORE, 0), document("a", 0),
        *others(LATER, 20), document("b", 20),
        *others(LATER, 45), document("c", 45),
        *others(LATER, 80), document("d", 80),
    )  # fmt: skip
    assert found == {"a": [], "b": ["a"], "c": ["a"], "d": []}


def test_copies_of_what_is_old_meet_and_are_counted() -> None:
    found, said = judged(
        *others(BEFORE, 100), document("old", 60), document("copy", 2), document("1971", -17_600),
        *others(LATER, 129), document("still", 10), *others(LATER, 160), document("gone", 160),
    )  # fmt: skip
    assert found == {"old": [], "copy": ["old"], "1971": ["old"], "still": ["old"], "gone": []}
    assert said.splitlines()[-1] == (
        "neardup: 4 documents were dated more than a window before now, and counted as of now"
    )


@pytest.mark.parametrize("place", [0, 30, 31, 32, 119])
def test_one_wrong_date_decides_nothing(place: int) -> None:
    """Sixty pairs of 2019, each a day apart, and one record of 2024 somewhere among them."""
    texts = [unlike_all(next(NUMBERS)) for _ in range(60)]
    lines = [
        document(f"{number}{twice}", number + (twice == "b"), texts[number])
        for number in range(60)
        for twice in "ab"
    ]
    lines.insert(place, document("other wrong", 1_800, unlike_all(next(NUMBERS))))
    found, said = judged(*lines)
    assert found == {f"{n}{twice}": [f"{n}a"] * (twice == "b") for n in range(60) for twice in "ab"}
    assert "now went" not in said
    assert "dated more than a window before now" not in said


def feed(days: int) -> Iterator[list[Line]]:
    """Yield a day's documents, and next to them a copy of one of the day before."""
    before = ""
    for day in range(days):
        text = unlike_all(next(NUMBERS))
        yield [
            *others(4, day),
            document(f"{day}", day, text),
            *([document(f"copy {day}", day, before)] if before else []),
        ]
        before = text


def test_a_file_of_wrong_dates_forgets_once_and_says_so() -> None:
    days = list(feed(20))
    found, said = judged(
        *(line for day in days[:10] for line in day),
        *others(LATER, 4_000),
        *(line for day in days[10:] for line in day),
    )
    missed = [f"copy {day}" for day in range(1, 20) if found[f"copy {day}"] != [f"{day - 1}"]]
    assert missed == ["copy 10"]
    (leap,) = [line for line in said.splitlines() if "at one document" in line]
    assert leap.startswith("neardup: now went from 2019-05-")
    assert "the index has forgotten what is older" in leap


def test_what_has_no_date_counts_as_of_now() -> None:
    found, _ = judged(
        *others(BEFORE, 0), document("a", None), *others(LATER, 29), document("b", None),
        *others(LATER, 58), document("c", None), *others(LATER, 90), document("d", None),
    )  # fmt: skip
    assert found == {"a": [], "b": ["a"], "c": ["a"], "d": []}


def test_before_there_is_a_now_nothing_expires() -> None:
    found, _ = judged(document("a", 0), *others(15, 400), document("b", 400), document("c", 9_000))
    assert found == {"a": [], "b": ["a"], "c": ["a"]}


@pytest.mark.parametrize("shards", [slow("1"), "3"])
@pytest.mark.parametrize("first", [5, BEFORE])
def test_a_window_reaches_into_earlier_runs(shards: str, first: int, tmp_path: Path) -> None:
    """Also into those before there was a now."""
    more = ("--state", tmp_path / "state", "--shards", shards)
    assert judged(*others(first, 0), document("a", 0), more=more)[0] == {"a": []}
    again = others(BEFORE, 25)
    assert judged(*again, document("b", 25), more=more)[0] == {"b": ["a"]}
    assert judged(*others(LATER, 50), document("c", 50), more=more)[0] == {"c": ["a"]}
    assert judged(*others(LATER, 81), document("d", 81), more=more)[0] == {"d": []}
