"""Runs the command line as its users do, but in this process: to start one takes seconds."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, chdir, contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from worker.cli.root import main

ROOT = Path(__file__).parents[2]
SAMPLES = ROOT / "worker" / "samples"


def neardup(
    *arguments: str | Path, stdin: bytes = b"", cwd: Path | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Run a command to its end; files stand for its standard streams."""
    line = ["neardup", *map(str, arguments)]
    with ExitStack() as stack:
        given, out, err = (stack.enter_context(tempfile.TemporaryFile()) for _ in range(3))
        given.write(stdin)
        given.seek(0)
        with (
            open(given.fileno(), encoding="utf-8", closefd=False) as reader,
            open(out.fileno(), "w", encoding="utf-8", closefd=False) as writer,
            open(err.fileno(), "w", encoding="utf-8", closefd=False) as teller,
            patch.object(sys, "argv", line),
            patch.object(sys, "stdin", reader),
            patch.dict(os.environ, environment(), clear=True),
            redirect_stdout(writer),
            redirect_stderr(teller),
            chdir(cwd or ROOT),
            _interpreter_as_before(),
        ):
            status = _status()
        for written in (out, err):
            written.seek(0)
        return subprocess.CompletedProcess(line, status, out.read(), err.read())


def on_kafka(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a command that has clients of Kafka to its end; none of them is left after it."""
    done = neardup(*arguments)
    gc.collect()  # What an error refers to may have clients.
    out, err = done.stdout.decode(), done.stderr.decode()
    return subprocess.CompletedProcess(done.args, done.returncode, out, err)


def _status() -> int:
    with pytest.raises(SystemExit) as ended:
        main()
    assert isinstance(ended.value.code, int)
    return ended.value.code


@contextmanager
def _interpreter_as_before() -> Iterator[None]:
    """Undo what a command sets for the process that would end with it."""
    thresholds, turn = gc.get_threshold(), sys.getswitchinterval()
    try:
        yield
    finally:
        sys.setswitchinterval(turn)
        gc.set_threshold(*thresholds)
        gc.unfreeze()


def environment() -> dict[str, str]:
    """Return the environment without settings; warnings in a process are errors."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("NEARDUP_")}
    return {**kept, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "error"}


def dedupe(*arguments: str | Path, stdin: bytes = b"") -> list[dict[str, Any]]:
    """Run ``neardup dedupe``, which must succeed, and return what it writes."""
    done = neardup("dedupe", *arguments, stdin=stdin)
    assert done.returncode == 0, done.stderr.decode()
    return [json.loads(line) for line in done.stdout.splitlines()]


def jsonl(documents: Iterable[object]) -> bytes:
    """Return a line of JSON for each."""
    return b"".join(json.dumps(document).encode() + b"\n" for document in documents)
