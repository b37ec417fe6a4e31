"""What a worker writes on standard error."""

from __future__ import annotations

import json
import logging
import threading
from typing import Literal

import pytest

from worker.process.logs import set_up


@pytest.fixture(autouse=True)
def _restored(monkeypatch: pytest.MonkeyPatch) -> None:
    root = logging.getLogger()
    monkeypatch.setattr(root, "handlers", list(root.handlers))
    monkeypatch.setattr(root, "level", root.level)


def test_lines_of_json(capsys: pytest.CaptureFixture[str]) -> None:
    set_up("info", "json")
    logging.getLogger("worker.x").warning("ä %d", 5)
    line = json.loads(capsys.readouterr().err)
    assert (line["level"], line["message"], line["logger"]) == ("warning", "ä 5", "worker.x")


def test_lines_of_json_carry_what_they_are_about(capsys: pytest.CaptureFixture[str]) -> None:
    fields = set_up("info", "json")
    logging.getLogger("worker.x").warning("a")
    assert json.loads(capsys.readouterr().err).keys() == {
        "time", "level", "thread", "logger", "message"
    }  # fmt: skip
    fields.app, fields.instance = "news", "one"
    logging.getLogger("worker.index.store").warning("b", extra={"topic": "t", "partition": 0})
    line = json.loads(capsys.readouterr().err)
    assert (line["app"], line["instance"], line["stage"]) == ("news", "one", "index")
    assert (line["topic"], line["partition"]) == ("t", 0)
    work = threading.Thread(target=logging.getLogger("worker.loop").warning, args=("c",))
    work.name = "route"
    work.start()
    work.join()
    assert json.loads(capsys.readouterr().err)["stage"] == "route"


WILD = "a\nneardup: ok\r\x1b[2J\x9b\u2028\u202e\x7f\ud800"


@pytest.mark.parametrize("kind", ["text", "json"])
def test_a_line_stays_one_line_whatever_is_in_it(
    kind: Literal["text", "json"], capsys: pytest.CaptureFixture[str]
) -> None:
    set_up("info", kind)
    logging.getLogger("worker.x").warning("topic %s", WILD)
    [line] = capsys.readouterr().err.split("\n")[:-1]
    assert line.isprintable()
    if kind == "json":
        assert json.loads(line)["message"] == f"topic {WILD}"
    else:
        assert line.endswith(r"topic a\nneardup: ok\r\x1b[2J\x9b\u2028\u202e\x7f\ud800")


@pytest.mark.parametrize("kind", ["text", "json"])
def test_what_belongs_to_a_line_stands_below_it_or_in_it(
    kind: Literal["text", "json"], capsys: pytest.CaptureFixture[str]
) -> None:
    set_up("info", kind)
    try:
        int(WILD)
    except ValueError:
        logging.getLogger("worker.x").exception("failed", extra={"details": ["in a", "in\x1bb"]})
    first, *below = capsys.readouterr().err.split("\n")[:-1]
    if kind == "json":
        assert below == []
        assert json.loads(first)["details"] == ["in a", "in\x1bb"]
        assert json.loads(first)["error"].startswith("Traceback")
        return
    assert first.endswith("failed")
    assert below[:3] == ["    in a", r"    in\x1bb", "    Traceback (most recent call last):"]
    assert all(line.startswith("    ") and line.isprintable() for line in below)


def test_librdkafka_does_not_flood(capsys: pytest.CaptureFixture[str]) -> None:
    set_up("info", "text")
    for number in range(100):
        logging.getLogger("librdkafka").error("FAIL [thrd:%d] Connection refused", number)
        logging.getLogger("librdkafka").error("REQTMOUT [thrd:%d] Timed out", number)
        logging.getLogger("worker.loop").warning("ours %d", number)
    lines = capsys.readouterr().err.splitlines()
    assert sum("FAIL" in line for line in lines) == 1
    assert sum("REQTMOUT" in line for line in lines) == 1
    assert sum("ours" in line for line in lines) == 100
