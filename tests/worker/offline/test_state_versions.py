"""Who can read the state that runs keep."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from worker.offline.state_versions import StateVersions


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("existing", [True, False])
def test_only_its_user_can_read_a_state(tmp_path: Path, *, existing: bool) -> None:
    state = tmp_path / "state"
    before = os.umask(0o022)
    try:
        if existing:
            state.mkdir()
        with StateVersions(state):
            assert (mode(state), mode(state / "lock")) == (0o700, 0o600)
    finally:
        os.umask(before)


def test_a_lock_is_no_link(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "lock").symlink_to(tmp_path / "victim")
    with pytest.raises(OSError, match="is a symbolic link"):
        StateVersions(tmp_path / "state")
    assert not (tmp_path / "victim").exists()
