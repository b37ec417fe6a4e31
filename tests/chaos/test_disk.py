"""The small disk: it fills, and has space again."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults.disk import NoSmallDisk, mounted

WRITE = "import pathlib, sys; pathlib.Path(sys.argv[1]).write_bytes(bytes(1 << 20))"


def test_a_disk_that_is_full_has_space_again(tmp_path: Path) -> None:
    directory = tmp_path / "disk"
    try:
        with mounted(directory, 4) as disk:
            write = [*disk.wrapper(tmp_path), sys.executable, "-c", WRITE, str(directory / "file")]
            disk.fill()
            full = subprocess.run(write, capture_output=True, text=True, check=False, timeout=30)
            assert "No space left on device" in full.stderr
            disk.free()
            assert subprocess.run(write, check=False, timeout=30).returncode == 0
            assert (disk.inside / "file").stat().st_size == 1 << 20
            assert not list(directory.iterdir()), "seen outside its namespace, too"
    except NoSmallDisk as why:
        pytest.skip(f"no disk can be mounted here: {why}")
