"""A worker's directory and name."""

from __future__ import annotations

from pathlib import Path

import pytest

from worker.service import instance_name, locked
from worker.settings import ConfigurationError, load


def test_no_two_workers_share_a_directory(tmp_path: Path) -> None:
    with locked(tmp_path / "state"):
        second = locked(tmp_path / "state")
        with pytest.raises(ConfigurationError, match="in use by another worker"):
            second.__enter__()
    with locked(tmp_path / "state"):
        assert (tmp_path / "state").is_dir()


def test_a_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    lock = locked(tmp_path / "file" / "state")
    with pytest.raises(ConfigurationError, match=r"worker\.state_dir: .*file/state: Not a dir"):
        lock.__enter__()


def test_a_name_is_kept_with_the_state(tmp_path: Path) -> None:
    first = instance_name(load(), tmp_path)
    assert instance_name(load(), tmp_path) == first
    assert instance_name(load(None, {"worker.instance": "own"}), tmp_path) == "own"
    (tmp_path / "other").mkdir()
    assert instance_name(load(), tmp_path / "other") != first


@pytest.mark.parametrize("left", ["", "\n"])
def test_a_name_that_a_crash_has_cut_short_is_made_anew(tmp_path: Path, left: str) -> None:
    (tmp_path / "instance").write_text(left)
    name = instance_name(load(), tmp_path)
    assert name
    assert instance_name(load(), tmp_path) == name
    assert [path.name for path in tmp_path.iterdir()] == ["instance"]
