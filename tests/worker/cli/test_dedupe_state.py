"""What ``neardup dedupe --state`` keeps from run to run, and refuses to go on with."""

from __future__ import annotations

import fcntl
import gzip
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import pytest

from tests.support.breadth import slow
from tests.support.command_line import ROOT, SAMPLES, dedupe, environment, jsonl, neardup

LINES = gzip.decompress((SAMPLES / "pypa_advisories.jsonl.gz").read_bytes()).splitlines(
    keepends=True
)


def content(folder: Path) -> dict[str, bytes]:
    """Give all that counts of a state."""
    current = json.loads((folder / "CURRENT").read_text())
    index = folder / current["generation"]
    files = [folder / "CURRENT", *(path for path in index.rglob("*") if path.is_file())]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


@pytest.mark.parametrize("shards", [slow("1"), "3"])
def test_runs_one_after_the_other_are_one_run(shards: str, tmp_path: Path) -> None:
    state = tmp_path / "state"
    cuts = [0, 700, 701, 701, len(LINES)]
    parts = [b"".join(LINES[a:b]) for a, b in pairwise(cuts)]
    kept = [
        verdict
        for part in parts
        for verdict in dedupe("--shards", shards, "--state", state, stdin=part)
    ]
    assert kept == dedupe(stdin=b"".join(LINES))
    names = sorted(path.name for path in state.iterdir())
    assert names == ["CURRENT", "generation-0000004", "lock"]


@pytest.mark.slow
def test_a_killed_run_leaves_the_state_and_the_next_cleans_up(tmp_path: Path) -> None:
    state, out = tmp_path / "state", tmp_path / "out"
    dedupe("--state", state, stdin=b"".join(LINES[:1000]))
    before = content(state)
    with subprocess.Popen(
        [sys.executable, "-m", "worker.cli", "dedupe", "-o", out, "--state", state],
        stdin=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=ROOT,
        env=environment(),
    ) as process:
        assert process.stdin is not None
        for _ in range(8):
            process.stdin.write(b"".join(LINES[1000:]))
        process.stdin.flush()
        deadline = time.monotonic() + 30
        part = tmp_path / ".out.part"
        while not (part.exists() and part.stat().st_size) and time.monotonic() < deadline:
            os.sched_yield()
        busy = neardup("dedupe", "--state", state)
        process.send_signal(signal.SIGKILL)
        process.wait(30)
        with suppress(BrokenPipeError):
            process.stdin.close()
    assert busy.returncode == 2
    assert busy.stderr.decode() == f"neardup: --state: {state} is in use by another run\n"
    assert content(state) == before
    assert (state / "generation-0000002").is_dir()
    assert not out.exists()
    again = dedupe("--state", state, stdin=b"".join(LINES[1000:]))
    assert again == dedupe(stdin=b"".join(LINES))[1000:]
    assert not (state / "generation-0000001").exists()
    assert dedupe("--state", state, "-o", out, stdin=b"") == []
    assert not part.exists()


OFFSETS = {"offline.documents": [1], "offline.shards": [1], "offline.fingerprints": [1]}


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a state of one document, which no run may change, and with files."""
    folder = tmp_path_factory.mktemp("kept")
    dedupe("--state", folder / "state", stdin=LINES[0])
    assert json.loads((folder / "state" / "CURRENT").read_text())["offsets"] == OFFSETS
    (folder / "cut.gz").write_bytes(gzip.compress(b"".join(LINES))[:-50])
    (folder / "few.jsonl").write_bytes(LINES[0] + b'{"title": "a"}\n' * 2)
    (folder / "lines.txt").write_text("Accept all\n")
    (folder / "html.toml").write_text("similarity = { strip_html = true }\n")
    (folder / "menu.toml").write_text("similarity = { boilerplate = 'lines.txt' }\n")
    (folder / "out").write_bytes(b"earlier")
    return folder


OTHERWISE = "state has documents that were read otherwise ({}): read these in the same way, or name"
FIELDS = "documents.text_fields: it has text, the settings say "
NEW = "): set these, or name a new directory\n"


@pytest.mark.parametrize(
    ("arguments", "status", "says"),
    [
        ("cut.gz", 2, "cut.gz: the gzip data ends too early"),
        (
            "few.jsonl",
            1,
            "reject_share is 0.5; -o out and --state state are unchanged",
        ),
        slow("--threshold 0.7", 2, "threshold: it has 0.8, the settings say 0.7"),
        slow("--shards 2", 2, "shards: it has 1, the settings say 2"),
        ("--window 25h", 2, f"window: it has none, the settings say 1d1h{NEW}"),
        slow("--containment 0.9", 2, "containment: it has none, the settings say 0.9"),
        ("--same-id ignore", 2, f"same_id: it has none, the settings say ignore{NEW}"),
        ("--config html.toml", 2, f"strip_html: it has False, the settings say True{NEW}"),
        ("--config menu.toml", 2, "boilerplate: it has none, the settings say "),
        ("--text-field title", 2, OTHERWISE.format(f"{FIELDS}title")),
        slow("--text-field text --text-field a", 2, OTHERWISE.format(f"{FIELDS}text,a")),
        slow("--id-field key", 2, "documents.id_field: it has id, the settings say key"),
        ("--time-field at", 2, "documents.time_field: it has none, the settings say at"),
        ("--format lines", 2, "documents.format: it has json, the settings say lines"),
    ],
)
def test_a_run_that_fails_leaves_state_and_output(
    arguments: str, status: int, says: str, kept: Path
) -> None:
    before = content(kept / "state")
    line = ("--state", "state", "-o", "out", *shlex.split(arguments))
    done = neardup("dedupe", *line, stdin=LINES[0], cwd=kept)
    assert done.returncode == status
    assert done.stderr.decode().startswith("neardup: ")
    assert says in done.stderr.decode()
    assert status == 1 or done.stderr.count(b"\n") == 1
    assert content(kept / "state") == before
    assert len(list((kept / "state").iterdir())) == 3
    assert (kept / "out").read_bytes() == b"earlier"


@pytest.mark.parametrize(
    "changed",
    [
        b"",
        b"[]",
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"format": 1e999}',
        b'{"format": 3, "generation": "x"}',
        {"format": 2},
        {"generation": "../state/generation-0000001"},
        {"generation": 1},
        {"documents": []},
        {"more": 1},
        {"offsets": {}},
        {"offsets": {"offline.documents": [1]}},
        {"offsets": {name.replace("offline", "app"): at for name, at in OFFSETS.items()}},
        {"offsets": {**OFFSETS, "offline.shards": []}},
        {"offsets": {**OFFSETS, "offline.fingerprints": [0]}},
        {"offsets": {**OFFSETS, "offline.documents": [-1]}},
        {"offsets": {**OFFSETS, "offline.documents": [True]}},
        {"offsets": {**OFFSETS, "offline.documents": [1 << 70]}},
        {"offsets": {**OFFSETS, "offline.documents": [7]}},
        {"offsets": {**OFFSETS, "offline.shards": [7], "offline.fingerprints": [7]}},
        {"offsets": {**OFFSETS, "offline.shards": [0], "offline.fingerprints": [0]}},
    ],
)
def test_a_damaged_state_is_refused_in_one_line(
    changed: bytes | dict[str, object], kept: Path
) -> None:
    state = kept / "state"
    path = state / "CURRENT"
    before, index = path.read_bytes(), content(state)
    version = (
        f"neardup: --state: {state} has format 2, but this neardup reads only format 3: name a"
        " new directory, or run the version that made this one"
    )
    other = changed == {"format": 2}
    if isinstance(changed, dict):
        changed = json.dumps({**json.loads(before), **changed}).encode()
    path.write_bytes(changed)
    try:
        done = neardup("dedupe", "--state", state, stdin=LINES[0])
        assert path.read_bytes() == changed
    finally:
        path.write_bytes(before)
    assert content(state) == index
    (line,) = done.stderr.decode().splitlines()
    assert (done.returncode, done.stdout) == (2, b"")
    assert line.startswith(f"neardup: --state: {state}")
    assert line == version if other else "is damaged" in line


@pytest.mark.parametrize("name", ["*.sst", slow("MANIFEST-*"), slow("CURRENT"), slow("*")])
def test_a_damaged_index_of_a_state_is_named_and_left_alone(name: str, tmp_path: Path) -> None:
    state = tmp_path / "state"
    dedupe("--state", state, stdin=LINES[0])
    shard = state / "generation-0000001" / "shard-000"
    for path in shard.glob(name):
        path.unlink()
    if name == "*":
        shard.rmdir()
    before = content(state)
    done = neardup("dedupe", "--state", state, stdin=LINES[0])
    assert done.returncode == 2
    (line,) = done.stderr.decode().splitlines()
    assert line.startswith(f"neardup: --state: {state} is damaged: {shard}")
    assert line.endswith("judge the files of the earlier runs again with a new directory")
    assert content(state) == before
    shown = neardup("index", "stats", "--state", state)
    assert shown.returncode == (0 if name == "*" else 1)
    assert b"Traceback" not in shown.stderr


def test_the_same_fields_in_another_file_and_lengths_are_no_difference(tmp_path: Path) -> None:
    text = "one text of a few words"
    (tmp_path / "docs.csv").write_bytes(f"id,text\nb,{text}\n".encode("utf-16"))
    (tmp_path / "c.txt").write_text(text)
    state = ("--state", tmp_path / "state")
    dedupe(*state, "--window", "24h", stdin=jsonl([{"id": "a", "text": text}]))
    for name in ("docs.csv", "c.txt"):
        (verdict,) = dedupe(*state, "--window", "1d", tmp_path / name)
        assert verdict["duplicate_first"] == {"id": "a"}
    refused = neardup("dedupe", *state, stdin=LINES[0])
    assert refused.returncode == 2
    assert b"window: it has 1d, the settings say none" in refused.stderr


def test_a_query_reads_a_document_as_the_state_did(tmp_path: Path) -> None:
    state, file = tmp_path / "state", tmp_path / "one.json"
    file.write_bytes(b'{"body": "one text of a few words"}')
    dedupe("--state", state, "--text-field", "body", file)
    done = neardup("query", "--state", state, "--file", file, "--json")
    assert done.returncode == 0, done.stderr.decode()
    assert json.loads(done.stdout)["answers"][0]["verdict"] == "duplicate"


def test_two_runs_do_not_write_one_output(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with (tmp_path / ".out.part").open("wb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        done = neardup("dedupe", "-o", out, stdin=LINES[0])
    assert done.returncode == 2
    assert b"another run is writing this file" in done.stderr


TEXT = "The quick brown fox jumps over the lazy dog, again and again. "
OTHER = "A text that nothing else resembles, not even from a great distance. "
FIRST = [("a", TEXT), ("b", TEXT), ("a", OTHER)]
THEN = [("d", OTHER), ("c", TEXT)]


@pytest.mark.parametrize("shards", [slow("1"), "3"])
@pytest.mark.parametrize(
    ("rule", "first", "then"),
    [
        slow((), [[], ["a"], []], [["a"], ["a"]]),
        (("--same-id", "replace"), [[], ["a"], []], [["a"], []]),
        (("--same-id", "ignore"), [[], ["a"], []], [[], ["a"]]),
    ],
)
def test_ids_repeat_within_a_run_and_from_run_to_run(
    tmp_path: Path, shards: str, rule: tuple[str, ...], first: list[list[str]],
    then: list[list[str]],
) -> None:  # fmt: skip
    def matches(documents: list[tuple[str, str]], *more: str | Path) -> list[list[str]]:
        lines = jsonl({"id": ident, "text": text} for ident, text in documents)
        judged = dedupe(*rule, "--shards", shards, *more, stdin=lines)
        return [[match["id"] for match in line.get("duplicate_of", ())] for line in judged]

    assert matches([*FIRST, *THEN]) == [*first, *then]
    assert matches(FIRST, "--state", tmp_path / "state") == first
    assert matches(THEN, "--state", tmp_path / "state") == then
