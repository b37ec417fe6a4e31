"""What a worker that can't start writes, and what the command says of itself."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.command_line import neardup
from worker import __version__
from worker.process.state_directory import locked


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    """Undo what a worker sets for a process of its own."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    for handler in handlers:
        root.removeHandler(handler)
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


def last(*arguments: str | Path, status: int = 2) -> str:
    done = neardup("run", "--bootstrap", "127.0.0.1:1", *arguments)
    assert done.returncode == status
    assert done.stdout == b""
    return done.stderr.decode().splitlines()[-1]


@pytest.mark.parametrize("format_", ["text", "json"])
def test_the_line_that_ends_a_worker_has_the_form_of_its_log(tmp_path: Path, format_: str) -> None:
    with locked(tmp_path):
        said = last("--log-format", format_, "--state-dir", tmp_path)
    if format_ == "text":
        assert said.startswith("neardup: worker.state_dir: ")
        return
    line = json.loads(said)
    assert (line["level"], line["app"]) == ("critical", "neardup")
    assert "is in use by another worker" in line["message"]
    assert "--state-dir" in line["message"]


def test_that_a_setting_is_wrong_is_json_too() -> None:
    line = json.loads(last("--log-format", "json", "--stages", "no\x1bne"))
    assert line["level"] == "critical"
    assert "worker.stages" in line["message"]


def test_an_error_is_one_visible_line() -> None:
    done = neardup("dedupe", "no\n\x1b]2;file")
    assert done.returncode == 2
    assert done.stderr.decode() == "neardup: no\\n\\x1b]2;file: No such file or directory\n"


def test_verdicts_command_no_terminal(tmp_path: Path) -> None:
    ident = "a\x1b\x7f\x9b\u202eé漢"
    given = tmp_path / "in.jsonl"
    given.write_text("".join(json.dumps({"id": ident, "text": "a text"}) + "\n" for _ in range(2)))
    lines = neardup("dedupe", given).stdout.decode().split("\n")[:-1]
    assert all(line.isprintable() for line in lines)
    assert [json.loads(line)["id"] for line in lines] == [ident, ident]
    assert json.loads(lines[1])["duplicate_of"][0]["id"] == ident


def test_version() -> None:
    assert neardup("--version").stdout.decode() == f"neardup {__version__}\n"


def test_a_shell_completes_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = {
        "_NEARDUP_COMPLETE": "complete_bash",
        "COMP_WORDS": "neardup topics v",
        "COMP_CWORD": "2",
    }
    for name, value in asked.items():
        monkeypatch.setenv(name, value)
    assert neardup().stdout.decode().split() == ["verify"]
