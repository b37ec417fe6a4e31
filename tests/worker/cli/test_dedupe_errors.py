from __future__ import annotations

import gzip
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
import zstandard

from tests.support.breadth import slow
from tests.support.command_line import ROOT, environment, jsonl, neardup

LINES = jsonl({"id": n, "text": f"document number {n} of quite a few"} for n in range(2000))


def files(folder: Path) -> dict[str, bytes]:
    folder.mkdir()
    made = {
        "good": LINES,
        "cut.gz": gzip.compress(LINES)[:-100],
        "cut.zst": zstandard.compress(LINES)[:-20],
        "cut-nameless": gzip.compress(LINES)[:-100],
        "damaged.gz": gzip.compress(LINES)[:200] + b"\0" * 50 + gzip.compress(LINES)[250:],
        "named.gz": LINES,
        "empty.gz": b"",
        "settings.toml": b"[similarity]\nthreshhold = 0.5\n",
    }
    for name, data in made.items():
        (folder / name).write_bytes(data)
    return made


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["missing"], "missing: No such file"),
        slow(["."], ".: no file in it has a known suffix (.csv, .eml, .htm, .html, .json, .jsonl"),
        (["good", "cut.gz"], "cut.gz: the gzip data ends too early"),
        (["-", "good", "-"], "-: standard input can be read only once"),
        slow(["cut.zst"], "cut.zst: the zstd data ends too early"),
        slow(["cut-nameless"], "cut-nameless: the gzip data ends too early"),
        slow(["damaged.gz"], "damaged.gz: damaged gzip data"),
        (["named.gz"], "named.gz: is not a gzip file"),
        slow(["empty.gz"], "empty.gz: is not a gzip file"),
        (["good", "-o", "good"], "-o good is one of the inputs"),
        (["good", "--encoding", "base64"], "--encoding: got 'base64', must be an encoding"),
        slow(["good", "--encoding", "utf-9"], "--encoding: got 'utf-9', must be an encoding"),
        slow(["good", "-o", "nowhere/out"], "-o nowhere/out: No such file"),
        (["good", "--threshold", "1.5"], "similarity.threshold: got 1.5"),
        slow(["good", "--threshold", "0"], "similarity.threshold: got 0"),
        slow(["good", "--shards", "0"], "index.shards: got 0"),
        slow(["good", "--format", "xml"], "--format: got 'xml', must be json, text or lines"),
        slow(["good", "--config", "missing.toml"], "missing.toml is not a file"),
        (["good", "--config", "settings.toml"], "did you mean similarity.threshold?"),
        (["good", "--state", "."], "has other files"),
        slow(["good", "--state", "good"], "File exists"),
    ],
)
def test_an_error_is_one_line_and_leaves_nothing(
    arguments: list[str], says: str, tmp_path: Path
) -> None:
    folder = tmp_path / "folder"
    made = files(folder)
    extra = [] if "-o" in arguments else ["-o", "out"]
    done = neardup("dedupe", *arguments, *extra, cwd=folder)
    assert done.returncode == 2
    assert done.stderr.decode().startswith("neardup: ")
    assert done.stderr.count(b"\n") == 1
    assert says in done.stderr.decode()
    assert done.stdout == b""
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == made


def test_an_error_leaves_the_earlier_output(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    files(folder)
    out = tmp_path / "out"
    out.write_bytes(b"earlier")
    assert neardup("dedupe", folder / "good", folder / "cut.gz", "-o", out).returncode == 2
    assert out.read_bytes() == b"earlier"


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), slow(signal.SIGTERM, 143)])
def test_a_signal_cleans_up(number: signal.Signals, status: int, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with subprocess.Popen(
        [sys.executable, "-m", "worker.cli", "dedupe", "-o", out, "--state", tmp_path / "state"],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=ROOT,
        env=environment(),
    ) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        for _ in range(2):  # more than a pipe holds: it has begun to read when this returns
            process.stdin.write(LINES)
        process.stdin.flush()
        process.send_signal(number)
        assert process.wait(30) == status
        assert process.stderr.read().count(b"\n") == 1
        with suppress(BrokenPipeError):
            process.stdin.close()
    assert not out.exists()
    assert {path.name for path in tmp_path.iterdir()} == {"state"}
    assert {path.name for path in (tmp_path / "state").iterdir()} == {"lock"}


@pytest.mark.slow
def test_a_reader_that_has_gone_is_no_error_to_speak_of(tmp_path: Path) -> None:
    file = tmp_path / "docs"
    file.write_bytes(LINES * 20)
    command = f"{sys.executable} -m worker.cli dedupe {file} --state {tmp_path / 'state'}"
    done = subprocess.run(
        ["bash", "-c", f"{command} | head -n 1; exit ${{PIPESTATUS[0]}}"],
        capture_output=True,
        check=False,
        cwd=ROOT,
        env=environment(),
    )
    assert done.stdout == b'{"id":"0","verdict":"unique"}\n'
    assert done.stderr == b""
    assert done.returncode == 1
    assert not (tmp_path / "state" / "CURRENT").exists()
