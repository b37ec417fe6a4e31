"""What docs/how-to/group-duplicates.md tells readers to do with duplicates gives their groups."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from random import Random
from textwrap import dedent

import pytest

from tests.support.checker import History
from tests.support.command_line import ROOT, jsonl, neardup
from tests.support.embedded import Run

_CHAINS = 3
_LONG = 40


def recipe(first: str) -> str:
    """Return the indented block of the page that begins with a line like this one."""
    lines = (ROOT / "docs" / "how-to" / "group-duplicates.md").read_text().splitlines()
    begin = next(place for place, line in enumerate(lines) if line.startswith(f"    {first}"))
    block = []
    for line in lines[begin:]:
        if line and not line.startswith("    "):
            break
        block.append(line)
    return dedent("\n".join(block))


def chains() -> list[tuple[str, str]]:
    """Return texts each of which is a window of words a little further on than the one before."""
    chance = Random(8)
    found = []
    for chain in range(_CHAINS):
        words = [f"{chance.getrandbits(40):x}" for _ in range(2 * _LONG + 60)]
        windows = [" ".join(words[2 * place : 2 * place + 60]) for place in range(_LONG)]
        found += [(f"{chain}-{place}", text) for place, text in enumerate(windows)]
    chance.shuffle(found)
    return found


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> History:
    run = Run(tmp_path_factory.mktemp("groups"), partitions=2, shards=3)
    run.feed(chains())
    return run.finish()


def components(matches: Mapping[str, set[str]]) -> set[frozenset[str]]:
    """Return what pairs connect, by looking at all of them again and again."""
    of = {ident: {ident, *some} for ident, some in matches.items()}
    for some in matches.values():
        for ident in some:
            of.setdefault(ident, {ident})
    grown = True
    while grown:
        grown = False
        for members in list(of.values()):
            whole = set().union(*(of[ident] for ident in members))
            for ident in whole:
                if of[ident] != whole:
                    of[ident], grown = whole, True
    return {frozenset(members) for members in of.values()}


def printed(values: bytes) -> set[frozenset[str]]:
    """Return the groups that the lines of Python print, the largest first."""
    code = [sys.executable, "-c", recipe("import json, sys")]
    done = subprocess.run(code, input=values, capture_output=True, check=True)
    groups = [json.loads(line) for line in done.stdout.splitlines()]
    assert groups == sorted(groups, key=len, reverse=True)
    assert all(len(set(group)) == len(group) > 1 for group in groups)
    return set(map(frozenset, groups))


def test_joined_matches_are_the_components(history: History) -> None:
    values = [record.value for record in history.duplicate if record.value is not None]
    found = [json.loads(value) for value in values]
    matches = {one["id"]: {match["id"] for match in one["duplicate_of"]} for one in found}
    expected = components(matches)
    assert printed(b"\n".join(values)) == expected
    named = {one["duplicate_first"]["id"] for one in found}
    assert len(expected) < len(named), "no chain is cut into pieces"


def test_joined_matches_of_dedupe_are_the_components(tmp_path: Path) -> None:
    documents = jsonl([{"id": ident, "text": text} for ident, text in chains()])
    out = tmp_path / "verdicts.jsonl"
    assert neardup("dedupe", "-o", out, stdin=documents).returncode == 0
    found = [json.loads(line) for line in out.read_text().splitlines()]
    matches = {
        one["id"]: {match["id"] for match in one["duplicate_of"]}
        for one in found
        if one["verdict"] == "duplicate"
    }
    assert printed(out.read_bytes()) == components(matches)


def test_the_earliest_match_is_followed_to_the_end(history: History) -> None:
    rows, firsts = [], {}
    for record in history.duplicate:
        assert record.value is not None
        sequence = int(dict(record.headers)["neardup-sequence"] or b"")
        rows.append((sequence, record.value.decode()))
        firsts[sequence] = json.loads(record.value)["duplicate_first"]["sequence"]
    ends = list(firsts)
    while not firsts.keys().isdisjoint(ends):
        ends = [firsts.get(end, end) for end in ends]
    counts = Counter(ends)
    database = sqlite3.connect(":memory:")
    database.execute("CREATE TABLE duplicate (sequence INTEGER PRIMARY KEY, value TEXT)")
    database.executemany("INSERT INTO duplicate VALUES (?, ?)", rows)
    found = database.execute(recipe("WITH RECURSIVE")).fetchall()
    assert dict(found) == counts
    assert [copies for _, copies in found] == sorted(counts.values(), reverse=True)
    assert len(counts) < len(set(firsts.values())), "nothing to follow"
    published = {dict(record.headers)["neardup-sequence"] for record in history.unique}
    assert {b"%d" % end for end in counts} <= published
