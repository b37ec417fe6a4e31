"""What `neardup topics verify` prints, for people and for programs."""

from __future__ import annotations

import json
from dataclasses import asdict, replace

import pytest

from tests.worker.admin.fake import FakeCluster
from worker.admin.checks import Inspection, inspect
from worker.cli.errors import CommandError
from worker.cli.topics import report
from worker.settings.loading import load


@pytest.fixture
def cluster() -> FakeCluster:
    return FakeCluster(load(overrides={"app": "a"}))


def inspected(cluster: FakeCluster) -> Inspection:
    return inspect(cluster.as_cluster(), load(overrides={"app": "a"}))


def test_what_is_in_order_as_json(cluster: FakeCluster, capsys: pytest.CaptureFixture[str]) -> None:
    report(inspected(cluster), as_json=True)
    facts = json.loads(capsys.readouterr().out)
    assert {name: facts[name] for name in ("ok", "app", "partitions", "shards", "brokers")} == {
        "ok": True, "app": "a", "partitions": 2, "shards": 2, "brokers": 3
    }  # fmt: skip
    assert facts["problems"] == []
    [documents] = [one for one in facts["topics"] if one["name"] == "a.documents"]
    assert (documents["exists"], documents["partitions"], documents["replicas"]) == (True, 2, 3)
    assert facts["groups"][0] == {"name": "a.fingerprint", "offsets": 2, "inputs": 2}


def test_problems_as_json(cluster: FakeCluster, capsys: pytest.CaptureFixture[str]) -> None:
    cluster.states["a.unique"] = None
    cluster.change("a.rejected", cleanup_policy="compact")
    found = inspected(cluster)
    with pytest.raises(CommandError, match="a worker can't run: 2 errors") as ended:
        report(found, as_json=True)
    assert ended.value.status == 2
    facts = json.loads(capsys.readouterr().out)
    assert facts["ok"] is False
    assert {"name": "a.unique", "exists": False} in facts["topics"]
    assert facts["problems"] == [asdict(problem) for problem in found.problems]


def test_what_others_named_is_no_markup(
    cluster: FakeCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.change("a.rejected", cleanup_policy="compact")
    found = inspected(cluster)
    wild = replace(found.problems[0], has="[/b][red]x\x1b[2J", takes=":smile:\n", why="", fix="[x]")
    with pytest.raises(CommandError):
        report(replace(found, problems=[wild]), as_json=False)
    text = capsys.readouterr().out
    assert r"is [/b][red]x\x1b[2J, must be :smile:\n" in text
    assert "fix: [x]" in text
    assert "\x1b" not in text
