import io
import json
from dataclasses import replace

import pytest
from rich.cells import cell_len

from worker.bus import Record
from worker.cli.screen import screen
from worker.cli.watch import Screen, facts
from worker.formats.choice import document_format
from worker.observe.lag import Lag
from worker.observe.observer import VERDICTS, Tally, View
from worker.observe.presence import Presence
from worker.settings.loading import load


def record(value: bytes, **headers: str) -> Record:
    named = ((name.replace("_", "-"), text.encode()) for name, text in headers.items())
    return Record("t", 1, 2, -1, None, value, tuple(named))


def view(duplicates: int, rejections: int, trouble: str = "") -> View:
    value = json.dumps({"id": "copy-1", "text": "evil \x1b[31m text " * 50}).encode()
    matches = json.dumps([{"id": "origin-1", "similarity": 0.93}])
    copies = [record(value, neardup_matches=matches)] * duplicates
    wrong = [record(b"[1", neardup_error_reason="not-json: bad \x1b]0;x")] * rejections
    return View(
        seconds=3_725,
        totals=dict.fromkeys(VERDICTS, 123_456_789),
        recent=dict.fromkeys(VERDICTS, 12_345.6),
        overall=dict.fromkeys(VERDICTS, 0.4),
        lag={"fingerprint": Lag(1_234_567, 93.0), "route": Lag(0, None)},
        present=Presence(("worker-a", "worker-b"), 8, (2, 5), {7: 25.4}),
        duplicates=copies,
        rejections=wrong,
        trouble=trouble,
    )


def drawn(seen: View, width: int, height: int) -> list[str]:
    console = screen(width=width, height=height, file=io.StringIO())
    view = Screen(load(), document_format(load()), seen)
    lines = console.render_lines(view, console.options.update(height=height), pad=False)
    return ["".join(segment.text for segment in line).rstrip() for line in lines]


@pytest.mark.parametrize(("width", "height"), [(80, 24), (120, 40), (60, 15)])
@pytest.mark.parametrize(("duplicates", "rejections"), [(0, 0), (3, 0), (0, 3), (50, 50)])
def test_the_view_fits_the_terminal(
    width: int, height: int, duplicates: int, rejections: int
) -> None:
    lines = drawn(view(duplicates, rejections, "x" * 200), width, height)
    assert len(lines) <= height
    assert max(map(len, lines)) <= width


def test_the_view_says_what_matters() -> None:
    text = "\n".join(drawn(view(2, 2, "no broker answers"), 80, 24))
    for said in ("123,456,789", "12,346/s", "1,234,567 docs", "93 s", "copy-1", "0.93", "origin-1",
                 "not-json", "trouble: no broker answers", "1:02:05"):  # fmt: skip
        assert said in text
    assert "\x1b" not in text


WILD = "[/b][link=http://x]:smile:\x1b[2J\x9b\u202e\x7f\nz"
SEEN = "[/b][link=http://x]:smile:\\x1b[2J\\x9b\\u202e\\x7f\\nz"


def test_nothing_reaches_the_terminal_as_a_command() -> None:
    value = json.dumps({"id": WILD, "text": WILD}).encode()
    matches = json.dumps([{"id": WILD, "similarity": 1}])
    copy = record(value, neardup_matches=matches)
    wrong = record(value, neardup_error_reason=f"{WILD}: {WILD}")
    seen = replace(view(0, 0, WILD), duplicates=[copy], rejections=[wrong])
    text = "\n".join(drawn(seen, 400, 30))
    assert text.count(SEEN) == 6
    assert text.count(SEEN.replace("\\n", " ")) == 1  # An excerpt has spaces for line breaks.
    assert all(c.isprintable() for c in text.replace("\n", ""))


@pytest.mark.parametrize("matches", ["[" * 100_000, '[{"id": 1, "similarity": "x"}]', "[1]", "{}"])
def test_matches_that_somebody_else_wrote_are_left_out(matches: str) -> None:
    copy = record(b'{"id": "copy-1", "text": "a"}', neardup_matches=matches)
    assert "copy-1" in "\n".join(drawn(replace(view(0, 0), duplicates=[copy]), 80, 24))


@pytest.mark.parametrize(
    ("width", "ident", "row"),
    [
        (60, "crawl-0000000000000000000000123", "crawl-0…0000123 a text a"),
        (80, "crawl-0000000000000000000000123", "crawl-000…0000000123 a text a"),
        (200, "crawl-0000000000000000000000123", "crawl-0000000000000000000000123 a text a"),
        (80, "https://news.example/2024/a-story.html", "…e/2024/a-story.html a text a"),
        (80, "界" * 20 + "末尾", "界界界界…界界界末尾 a text a"),
    ],
)
def test_ids_that_do_not_fit_are_cut_where_they_are_alike(width: int, ident: str, row: str) -> None:
    copy = record(json.dumps({"id": ident, "text": "a text " * 99}).encode())
    lines = drawn(replace(view(0, 0), duplicates=[copy]), width, 24)
    [seen] = [line for line in lines if "a text" in line]
    assert " ".join(seen.split()).startswith(row)
    assert cell_len(seen) == width


def test_numbers_are_whole_in_a_narrow_terminal() -> None:
    totals = dict.fromkeys(VERDICTS, 123_456)
    seen = replace(view(0, 0), totals=totals, lag={"route": Lag(9, 1.0)}, present=None)
    text = "\n".join(drawn(seen, 60, 20))
    assert "…" not in text
    assert "123,456" in text
    assert "duplicate" in text


@pytest.mark.parametrize(
    ("width", "said"),
    [(60, ("12.3 M", "1,234.6 M", "98.8 G")), (80, ("12,345,678", "1,234.6 M", "98.8 G"))],
)
def test_long_numbers_are_rounded_rather_than_cut_off(width: int, said: tuple[str, ...]) -> None:
    totals = dict(zip(VERDICTS, (12_345_678, 1_234_567_890, 98_765_432_100), strict=True))
    lines = drawn(replace(view(0, 0), totals=totals, present=None), width, 20)
    text = "\n".join(lines)
    assert "…" not in text
    assert all(f" {number}" in text for number in said)
    assert "98,765,432,100" in "\n".join(drawn(replace(view(0, 0), totals=totals), 200, 20))


def test_a_view_for_other_programs() -> None:
    assert facts(view(1, 1)) == {
        "seconds": 3_725,
        "totals": dict.fromkeys(VERDICTS, 123_456_789),
        "per_second": dict.fromkeys(VERDICTS, 12_345.6),
        "lag": {
            "fingerprint": {"records": 1_234_567, "seconds": 93.0},
            "route": {"records": 0, "seconds": None},
        },
        "present": {
            "workers": ("worker-a", "worker-b"),
            "shards": 8,
            "shards_without_worker": (2, 5),
            "shards_still": {"7": 25},
        },
        "trouble": None,
    }


@pytest.mark.parametrize(
    ("present", "said"),
    [
        (None, ""),
        (Presence((), 2, (0, 1)), "2 shards, without a worker: 0, 1; no worker"),
        (Presence(("a", "b"), 2), "2 shards, all at work; 2 workers: a, b"),
        (
            Presence(("a",), 40, tuple(range(9))),
            "40 shards, without a worker: 0, 1, 2, 3, 4, 5, 6, 7, …; 1 worker: a",
        ),
        (
            Presence(("a",), 40, (1,), {30: 12.0, 31: 200.0}),
            "40 shards, without a worker: 1, restoring or stuck for 3 min: 30, 31; 1 worker: a",
        ),
        (
            Presence((f"{WILD}-pod-0123456789abcdef", "b"), 1),
            "1 shard, all at work; 2 workers: [/b][link=h…456789abcdef, b",
        ),
    ],
)
def test_it_says_who_is_here(present: Presence | None, said: str) -> None:
    lines = drawn(replace(view(0, 0), present=present), 200, 24)
    assert lines[1] == said


def test_a_rate_is_of_the_last_ten_seconds() -> None:
    tally = Tally(0.0)
    tally.add(1.0, "unique", 100)
    assert tally.recent(5.0)["unique"] == 20
    tally.add(20.0, "unique", 50)
    assert tally.recent(20.0)["unique"] == 5
    assert tally.overall(20.0)["unique"] == 7.5
    assert tally.totals == {"unique": 150, "duplicate": 0, "rejected": 0}
