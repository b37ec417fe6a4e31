"""A worker's directory and name: its own, and nobody else's."""

from __future__ import annotations

import logging
import os
import re
import stat
from pathlib import Path

import pytest

from worker.app import Application
from worker.bus.memory.bus import MemoryBus
from worker.metrics import table
from worker.metrics.metrics import Metrics
from worker.process.state_directory import instance_name, locked, show_disk
from worker.settings.errors import ConfigurationError
from worker.settings.loading import load
from worker.settings.sections import APP_NAME


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


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


def test_the_space_that_a_disk_has_left_is_told_while_it_can_be_asked(tmp_path: Path) -> None:
    metrics = Metrics()
    show_disk(metrics, tmp_path)
    shown = metrics.numbers(table.STATE_DISK_BYTES)
    assert 0 < shown["free",] <= shown["total",]
    show_disk(metrics, tmp_path / "gone")
    assert metrics.numbers(table.STATE_DISK_BYTES) == {}


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


@pytest.mark.parametrize(
    "left",
    ["two words", "a/b", "../x", "n\u00e4me", "\x00\x00\x00", "a\nb", "x" * 101, "x" * 5_000],
)
def test_what_is_no_name_is_refused(tmp_path: Path, left: str) -> None:
    path = tmp_path / "instance"
    path.write_text(left)
    with pytest.raises(ConfigurationError) as refused:
        instance_name(load(), tmp_path)
    assert str(refused.value).startswith(f"{path}: has ")
    assert "\n" not in str(refused.value)
    assert path.read_text() == left
    assert instance_name(load(None, {"worker.instance": "own"}), tmp_path) == "own"


def test_a_name_is_read_from_no_other_file(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text("planted\n")
    (tmp_path / "instance").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ConfigurationError, match="instance: is a symbolic link"):
        instance_name(load(), tmp_path)
    (tmp_path / "instance").unlink()
    (tmp_path / "instance").mkdir()
    with pytest.raises(ConfigurationError, match="instance: is not a file"):
        instance_name(load(), tmp_path)


def test_a_name_is_written_into_no_other_file(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / "instance.new").symlink_to(victim)
    instance_name(load(), tmp_path)
    assert victim.read_text() == "precious"
    assert mode(tmp_path / "instance") == 0o600


def test_a_name_that_is_made_up_is_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: "h\u00f6st name/x.example")
    assert re.fullmatch(APP_NAME, instance_name(load(), tmp_path))


def test_what_a_worker_writes_is_for_its_user_alone(tmp_path: Path) -> None:
    """RocksDB's files, too."""
    before = os.umask(0o022)
    try:
        bus, settings = MemoryBus(), load()
        topology = settings.topology(1)
        bus.create_topic(topology.fingerprints, 1)
        with locked(tmp_path / "state"):
            instance_name(settings, tmp_path / "state")
            application = Application(settings, topology, bus, tmp_path / "state")
            application.directories.open(0).close()
        kept = list((tmp_path / "state").rglob("*"))
        assert any(path.name == "IDENTITY" for path in kept)
        assert {mode(path) for path in kept if path.is_file()} <= {0o600}
        assert {mode(path) for path in [tmp_path / "state", *kept] if path.is_dir()} == {0o700}
        (tmp_path / "after").touch()
        assert mode(tmp_path / "after") == 0o644
    finally:
        os.umask(before)


def test_a_directory_that_others_could_read_is_closed_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    state = tmp_path / "state"
    state.mkdir()
    (state / "lock").touch()
    (state / "lock").chmod(0o644)
    state.chmod(0o755)
    for _ in range(2):
        with locked(state):
            assert (mode(state), mode(state / "lock")) == (0o700, 0o600)
    assert [record.message for record in caplog.records] == [
        f"{state} was open to other users (mode 0755); it is 0700 now"
    ]


def test_a_directory_with_other_files_is_left_as_it_is(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It may be ``/tmp``."""
    (tmp_path / "other").touch()
    tmp_path.chmod(0o777)
    with locked(tmp_path):
        assert mode(tmp_path) == 0o777
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert "is open to other users (mode 0777)" in record.message


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
def test_another_users_directory_is_refused(tmp_path: Path) -> None:
    state = tmp_path / "state"
    state.mkdir()
    os.chown(state, 12_345, -1)
    with pytest.raises(ConfigurationError, match=r"state: belongs to user 12345"):
        locked(state).__enter__()


def test_a_lock_is_no_link(tmp_path: Path) -> None:
    (tmp_path / "victim").touch()
    (tmp_path / "lock").symlink_to(tmp_path / "victim")
    with pytest.raises(ConfigurationError, match="lock: is a symbolic link"):
        locked(tmp_path).__enter__()
