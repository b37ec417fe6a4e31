import io
import json
from typing import Any, cast

import pytest
from confluent_kafka import Message
from rich.console import Console

from worker.admin.observe import VERDICTS, Snapshot, Tally
from worker.admin.unread import Lag
from worker.cli.watch import View, printable
from worker.settings import load


class Record:
    def __init__(self, value: bytes, **headers: str) -> None:
        self._value = value
        self._headers = [(name.replace("_", "-"), text.encode()) for name, text in headers.items()]

    def value(self) -> bytes:
        return self._value

    def key(self) -> bytes | None:
        return None

    def headers(self) -> list[tuple[str, bytes]]:
        return self._headers

    def partition(self) -> int:
        return 1

    def offset(self) -> int:
        return 2


def snapshot(duplicates: int, rejections: int, trouble: str = "") -> Snapshot:
    value = json.dumps({"id": "copy-1", "text": "evil \x1b[31m text " * 50}).encode()
    matches = json.dumps([{"id": "origin-1", "similarity": 0.93}])
    copies: list[Any] = [Record(value, neardup_matches=matches)] * duplicates
    wrong: list[Any] = [Record(b"[1", neardup_error_reason="not-json: bad \x1b]0;x")] * rejections
    return Snapshot(
        seconds=3_725,
        totals=dict.fromkeys(VERDICTS, 123_456_789),
        recent=dict.fromkeys(VERDICTS, 12_345.6),
        overall=dict.fromkeys(VERDICTS, 0.4),
        lag={"fingerprint": Lag(1_234_567, 93.0), "route": Lag(0, None)},
        duplicates=cast("list[Message]", copies),
        rejections=cast("list[Message]", wrong),
        trouble=trouble,
    )


def drawn(seen: Snapshot, width: int, height: int) -> list[str]:
    console = Console(width=width, height=height, file=io.StringIO(), force_terminal=False)
    view = View(load(), seen)
    lines = console.render_lines(view, console.options.update(height=height), pad=False)
    return ["".join(segment.text for segment in line).rstrip() for line in lines]


@pytest.mark.parametrize(("width", "height"), [(80, 24), (120, 40), (60, 15)])
@pytest.mark.parametrize(("duplicates", "rejections"), [(0, 0), (3, 0), (0, 3), (50, 50)])
def test_the_view_fits_the_terminal(
    width: int, height: int, duplicates: int, rejections: int
) -> None:
    lines = drawn(snapshot(duplicates, rejections, "x" * 200), width, height)
    assert len(lines) <= height
    assert max(map(len, lines)) <= width


def test_the_view_says_what_matters() -> None:
    text = "\n".join(drawn(snapshot(2, 2, "no broker answers"), 80, 24))
    for said in ("123,456,789", "12,346/s", "1,234,567 docs", "93 s", "copy-1", "0.93", "origin-1",
                 "not-json", "trouble: no broker answers", "1:02:05"):  # fmt: skip
        assert said in text
    assert "\x1b" not in text


def test_nothing_reaches_the_terminal_as_a_command() -> None:
    assert printable("a\x1b[2J\x9b\u202eb\n") == "a [2J  b "


def test_a_rate_is_of_the_last_ten_seconds() -> None:
    tally = Tally(0.0)
    tally.add(1.0, "unique", 100)
    assert tally.recent(5.0)["unique"] == 20
    tally.add(20.0, "unique", 50)
    assert tally.recent(20.0)["unique"] == 5
    assert tally.overall(20.0)["unique"] == 7.5
    assert tally.totals == {"unique": 150, "duplicate": 0, "rejected": 0}
