from __future__ import annotations

import fcntl
import gzip
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import pytest

from tests.support.breadth import slow
from tests.support.command_line import ROOT, SAMPLES, dedupe, environment, neardup

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
    assert sorted(path.name for path in state.iterdir()) == [
        "CURRENT",
        "generation-0000004",
        "lock",
    ]


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


def test_an_input_error_leaves_the_state(tmp_path: Path) -> None:
    state, cut = tmp_path / "state", tmp_path / "cut.gz"
    dedupe("--state", state, stdin=LINES[0])
    before = content(state)
    cut.write_bytes(gzip.compress(b"".join(LINES))[:-50])
    assert neardup("dedupe", "--state", state, cut).returncode == 2
    assert content(state) == before
    assert len(list(state.iterdir())) == 3


@pytest.mark.slow
def test_other_parameters_are_refused_by_name(tmp_path: Path) -> None:
    state = tmp_path / "state"
    dedupe("--state", state, stdin=LINES[0])
    before = content(state)
    for arguments, says in [
        (("--threshold", "0.7"), "threshold: it has 0.8, the settings say 0.7"),
        (("--shards", "2"), "shards: it has 1, the settings say 2"),
        (("--window", "30d"), "window: it has none, the settings say 30d"),
    ]:
        done = neardup("dedupe", "--state", state, *arguments, stdin=LINES[0])
        assert done.returncode == 2
        assert says in done.stderr.decode()
        assert done.stderr.count(b"\n") == 1
        assert content(state) == before


def test_runs_on_one_state_have_one_window(tmp_path: Path) -> None:
    state = tmp_path / "state"
    dedupe("--state", state, "--window", "24h", stdin=LINES[0])
    (verdict,) = dedupe("--state", state, "--window", "1d", stdin=LINES[0])
    assert verdict["verdict"] == "duplicate"
    for arguments, says in [((), "settings say none"), (("--window", "25h"), "settings say 1d1h")]:
        done = neardup("dedupe", "--state", state, *arguments, stdin=LINES[0])
        assert done.returncode == 2
        assert f"window: it has 1d, the {says}" in done.stderr.decode()
        assert done.stderr.count(b"\n") == 1
    done = neardup("dedupe", "--window", "1 day", stdin=LINES[0])
    assert done.returncode == 2
    assert done.stderr.startswith(b"neardup: index.window: got '1 day', must be none, or a length")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--text-field", "title"), "documents.text_fields: it has text, the settings say title"),
        slow(
            ("--text-field", "text", "--text-field", "title"),
            "documents.text_fields: it has text, the settings say text,title",
        ),
        slow(("--id-field", "key"), "documents.id_field: it has id, the settings say key"),
        (("--time-field", "at"), "documents.time_field: it has none, the settings say at"),
        (("--format", "lines"), "documents.format: it has json, the settings say lines"),
    ],
)
def test_documents_that_are_read_otherwise_are_refused(
    arguments: tuple[str, ...], says: str, tmp_path: Path
) -> None:
    state, out = tmp_path / "state", tmp_path / "out"
    dedupe("--state", state, stdin=LINES[0])
    before = content(state)
    done = neardup("dedupe", "--state", state, "-o", out, *arguments, stdin=LINES[0])
    assert done.returncode == 2
    assert done.stderr.decode() == (
        f"neardup: --state: {state} has documents that were read otherwise ({says}): read these in"
        " the same way, or name a new directory\n"
    )
    assert (content(state), out.exists()) == (before, False)


def test_another_normal_form_is_refused(tmp_path: Path) -> None:
    state, config = tmp_path / "state", tmp_path / "neardup.toml"
    dedupe("--state", state, stdin=LINES[0])
    (tmp_path / "lines.txt").write_text("Accept all\n")
    for setting, says in [
        ("strip_html = true", "strip_html: it has False, the settings say True"),
        (f"boilerplate = '{tmp_path}/lines.txt'", "boilerplate: it has none, the settings say "),
    ]:
        config.write_text(f"[similarity]\n{setting}\n")
        done = neardup("dedupe", "--state", state, "--config", config, stdin=LINES[0])
        assert done.returncode == 2
        assert says in done.stderr.decode()
        assert done.stderr.decode().endswith("): set these, or name a new directory\n")


def test_the_same_fields_in_another_file_are_no_difference(tmp_path: Path) -> None:
    state, table = tmp_path / "state", tmp_path / "docs.csv"
    dedupe("--state", state, stdin=b'{"id": "a", "text": "one text of a few words"}\n')
    table.write_bytes("id,text\nb,one text of a few words\n".encode("utf-16"))
    (verdict,) = dedupe("--state", state, table)
    assert verdict["duplicate_first"] == {"id": "a"}
    (tmp_path / "c.txt").write_text("one text of a few words")
    (verdict,) = dedupe("--state", state, tmp_path / "c.txt")
    assert verdict["duplicate_first"] == {"id": "a"}


def test_a_query_reads_a_document_as_the_state_did(tmp_path: Path) -> None:
    state, file = tmp_path / "state", tmp_path / "one.json"
    file.write_bytes(b'{"body": "one text of a few words"}')
    dedupe("--state", state, "--text-field", "body", file)
    done = neardup("query", "--state", state, "--file", file, "--json")
    assert done.returncode == 0, done.stderr.decode()
    assert json.loads(done.stdout)["answers"][0]["verdict"] == "duplicate"


def test_a_state_of_another_version_is_refused(tmp_path: Path) -> None:
    state = tmp_path / "state"
    dedupe("--state", state, stdin=LINES[0])
    current = state / "CURRENT"
    current.write_text(current.read_text().replace('"format": 3', '"format": 2'))
    before = content(state)
    done = neardup("dedupe", "--state", state, stdin=LINES[0])
    assert done.returncode == 2
    assert done.stderr.decode() == (
        f"neardup: --state: {state} has format 2, but this neardup reads only format 3: name a"
        " new directory, or run the version that made this one\n"
    )
    assert content(state) == before


OFFSETS = {"offline.documents": [1], "offline.shards": [1], "offline.fingerprints": [1]}


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a state that no run may change."""
    state = tmp_path_factory.mktemp("kept") / "state"
    dedupe("--state", state, stdin=LINES[0])
    assert json.loads((state / "CURRENT").read_text())["offsets"] == OFFSETS
    return state


@pytest.mark.parametrize(
    "changed",
    [
        b"",
        b"[]",
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"format": 1e999}',
        b'{"format": 3, "generation": "x"}',
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
    path = kept / "CURRENT"
    before = path.read_bytes()
    if isinstance(changed, dict):
        changed = json.dumps({**json.loads(before), **changed}).encode()
    index = content(kept)
    path.write_bytes(changed)
    try:
        done = neardup("dedupe", "--state", kept, stdin=LINES[0])
        assert path.read_bytes() == changed
    finally:
        path.write_bytes(before)
    assert content(kept) == index
    (line,) = done.stderr.decode().splitlines()
    assert (done.returncode, done.stdout) == (2, b"")
    assert line.startswith(f"neardup: --state: {kept}")
    assert "is damaged" in line


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


def test_two_runs_do_not_write_one_output(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with (tmp_path / ".out.part").open("wb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        done = neardup("dedupe", "-o", out, stdin=LINES[0])
    assert done.returncode == 2
    assert b"another run is writing this file" in done.stderr
