"""Runs the command line as its users do."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
SAMPLES = ROOT / "worker" / "samples"


def neardup(
    *arguments: str | Path, stdin: bytes = b"", cwd: Path | None = None
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "worker.cli", *map(str, arguments)],
        input=stdin,
        capture_output=True,
        check=False,
        cwd=cwd or ROOT,
        env=environment(),
        timeout=120,
    )


def environment() -> dict[str, str]:
    import os  # noqa: PLC0415 -- the one place

    kept = {name: value for name, value in os.environ.items() if not name.startswith("NEARDUP_")}
    return {**kept, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "error"}


def dedupe(*arguments: str | Path, stdin: bytes = b"") -> list[dict[str, Any]]:
    """Run ``neardup dedupe``, which must succeed, and give what it writes."""
    done = neardup("dedupe", *arguments, stdin=stdin)
    assert done.returncode == 0, done.stderr.decode()
    return [json.loads(line) for line in done.stdout.splitlines()]


def jsonl(documents: Iterable[object]) -> bytes:
    return b"".join(json.dumps(document).encode() + b"\n" for document in documents)
