"""Commands on the pages exist, those that say so run, and links lead somewhere."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.command_line import ROOT, SAMPLES, environment
from tools.commands import commands

TEXTS = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")
GENERATED = {"commands.md", "lsh.md"}  # by `make docs`
PAGES = [
    *(ROOT / name for name in TEXTS),
    *(page for page in sorted((ROOT / "docs").rglob("*.md")) if page.name not in GENERATED),
]
KNOWN = commands()
COMMAND = re.compile(
    r"^(?:    |\$ |    \$ )?(?:[A-Z_]+=\S+ )*(?:zcat \S+ \| )?neardup (?P<rest>.*)"
)
BLOCK = re.compile(r"^<!-- (run|prints) -->\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)
RUNNABLE = [page for page in PAGES if "<!-- run -->" in page.read_text(encoding="utf-8")]


def named(page: Path) -> str:
    return str(page.relative_to(ROOT))


def lines(page: Path) -> Iterator[list[str]]:
    """Yield the words after `neardup` of each command in a block of the page."""
    text = page.read_text(encoding="utf-8").replace(" \\\n", " ")
    within = False
    for line in text.splitlines():
        within ^= line.startswith("```")
        found = COMMAND.match(line)
        if found and (within or line.startswith("    ")):
            words = shlex.shlex(found["rest"], posix=True, punctuation_chars="|&;<>")
            words.whitespace_split = True
            yield list(words)


def parsed(words: list[str]) -> None:
    """Have the command line parse a command; what it doesn't take is an error."""
    size = 2 if " ".join(words[:2]) in KNOWN else 1
    command = KNOWN[" ".join(words[:size])]
    end = next((at for at, word in enumerate(words) if word[0] in "|&;<>"), len(words))
    if words[end - 1 : end + 1] == ["2", ">"]:
        end -= 1
    arguments = [word for word in words[size:end] if word != "…"]
    command.make_context(" ".join(words[:size]), arguments)


def test_the_command_line_takes_every_command() -> None:
    found = [(page, words) for page in PAGES for words in lines(page) if words[:1] > ["a"]]
    assert len(found) > 80
    for page, words in found:
        try:
            parsed(words)
        except Exception as error:  # noqa: BLE001 -- whatever it is, the page is wrong
            pytest.fail(f"{named(page)}: neardup {shlex.join(words)}: {error!r}")


def test_a_command_that_does_not_exist_is_found() -> None:
    with pytest.raises(KeyError):
        parsed(["dedup", "a.jsonl"])


@pytest.mark.parametrize("page", RUNNABLE, ids=named)
def test_a_page_that_runs_prints_what_it_shows(page: Path, tmp_path: Path) -> None:
    program = tmp_path / "bin" / "neardup"
    program.parent.mkdir()
    code = "from worker.cli.root import main; main()"
    program.write_text(f"#!/bin/sh\nexec {sys.executable} -c '{code}' \"$@\"\n")
    program.chmod(0o755)
    path = f"{program.parent}:{os.environ['PATH']}"
    settings = {**environment(), "PATH": path, "SAMPLES": str(SAMPLES)}
    printed = ""
    for kind, block in BLOCK.findall(page.read_text(encoding="utf-8")):
        if kind == "run":
            done = subprocess.run(
                ["bash", "-euc", block],
                cwd=tmp_path,
                env=settings,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
            )
            assert done.returncode == 0, done.stdout
            printed = done.stdout
        for line in block.splitlines() if kind == "prints" else ():
            pattern = ".*".join(map(re.escape, line.split("…")))
            assert re.search(f"^{pattern}[ ]*$", printed, re.MULTILINE), (line, printed)


def test_pages_run() -> None:
    assert {named(page) for page in RUNNABLE} >= {
        "docs/tutorials/folder.md",
        "docs/tutorials/moderation.md",
    }


@pytest.mark.parametrize("name", TEXTS)
def test_links_from_outside_the_site_lead_to_files_and_headings(name: str) -> None:
    """Sphinx looks at all others."""
    found = re.findall(r"\]\(([^):#]+)(?:#([^)]+))?\)", (ROOT / name).read_text(encoding="utf-8"))
    for target, anchor in found:
        path = ROOT / target
        assert path.exists(), target
        if anchor:
            headings = re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
            anchors = {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in headings}
            assert anchor in anchors, (target, anchor)
