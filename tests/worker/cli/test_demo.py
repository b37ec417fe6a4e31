from __future__ import annotations

import json
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from rich.cells import cell_len
from rich.console import Console

from tests.support.command_line import ROOT, environment, neardup
from worker.cli.comparison import compared
from worker.cli.demo import typed


def test_the_demo_shows_counts_and_pairs_in_plain_text() -> None:
    done = neardup("demo")
    assert done.returncode == 0
    assert done.stderr == b""
    text = done.stdout.decode()
    assert "5,184" in text
    assert text.count(" is a duplicate of ") == 3
    assert f"{typed()} dedupe FILE" in text
    assert "\x1b" not in text


def test_the_page_of_the_demo_is_on_a_port_until_it_is_interrupted() -> None:
    command = [sys.executable, "-c", "from worker.cli.root import main; main()", "demo", "--page"]
    with subprocess.Popen(
        command, env=environment(), cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as demo:
        assert demo.stdout is not None
        try:
            said = next(line for line in demo.stdout if line.startswith("The page is on "))
            address = said.split()[4]
            with urllib.request.urlopen(f"{address}v1/duplicates", timeout=30) as answer:  # noqa: S310 -- ours
                assert json.loads(answer.read())["duplicates"]
            with urllib.request.urlopen(address, timeout=30) as answer:  # noqa: S310
                assert b"<title>neardup</title>" in answer.read()
            demo.send_signal(signal.SIGINT)
            assert demo.wait(30) == 0
        finally:
            demo.kill()


def test_the_commands_that_the_demo_names_can_be_typed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = tmp_path / "venv" / "bin" / "neardup"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [str(program)])
    assert typed() == "venv/bin/neardup"
    monkeypatch.setattr(sys, "argv", ["venv/bin/neardup"])
    assert typed() == "venv/bin/neardup"
    monkeypatch.chdir("/")
    monkeypatch.setattr(sys, "argv", [str(program)])
    assert typed() == str(program)[1:]
    monkeypatch.setenv("PATH", str(program.parent))
    assert typed() == "neardup"
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(sys, "argv", ["/somewhere/worker/cli/__main__.py"])
    assert typed() == f"{sys.executable} -m worker.cli"


def rendered(width: int, left: str, right: str) -> str:
    console = Console(width=width, color_system=None, record=True, quiet=False, file=None)
    with console.capture() as capture:
        console.print(compared(("one", left), ("two", right), str.casefold, marked=True))
    return capture.get()


@pytest.mark.parametrize("width", [40, 80, 100, 160])
def test_comparisons_fit_their_width(width: int) -> None:
    text = rendered(width, "a b c " * 60 + "x" * 500, "a b d 界 " * 60)
    assert max(cell_len(line) for line in text.splitlines()) <= width


def test_differences_are_marked_as_phrases_and_the_rest_is_trimmed() -> None:
    same = "the same words again " * 20
    text = rendered(200, f"{same}one two three {same}", f"{same}four five {same}")
    assert "[-one two three-]" in text
    assert "{+four five+}" in text
    assert "…" in text
    assert len(text) < 1500
