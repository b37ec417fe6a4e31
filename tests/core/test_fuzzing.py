"""Short runs of the fuzz targets of the core, on stable Rust."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CORE = ROOT / "core"


@pytest.mark.slow
@pytest.mark.timeout(1_800)
def test_the_targets_hold_for_seeds_and_changes_of_them() -> None:
    """CONTRIBUTING says how to run them longer, and how to run what fails again."""
    command = [
        *(sys.executable, "tools/rust.py", "cargo", "test", "--no-default-features", "--locked"),
        *("--manifest-path", str(CORE / "fuzz" / "Cargo.toml"), "--profile", "quick"),
        *("--target-dir", str(CORE / "target"), "--test", "short"),
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4_000:] + done.stderr[-4_000:]
    assert "5 passed" in done.stdout
