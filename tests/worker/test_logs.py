"""What a worker writes on standard error."""

from __future__ import annotations

import json
import logging

import pytest

from worker.logs import set_up


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
