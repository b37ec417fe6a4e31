"""An image that was built: what is in it, and that it runs as compose and the chart run it.

`make test-image` builds one, and names its root and its description in the environment.
"""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from localkafka.broker import wait_until
from localkafka.ports import free_ports
from tests.support.command_line import ROOT
from worker import __version__

HERE = os.environ.get("NEARDUP_TEST_IMAGE")
pytestmark = pytest.mark.skipif(HERE is None, reason="no image was built: make test-image")

USER = 10_001
STATE = "var/lib/neardup"
CONFINED = f"""
set -e
root=$1; shift
mount --bind "$root" "$root"
mount -o remount,bind,ro "$root"
mount -t tmpfs -o mode=1777 none "$root/tmp"
mount -t tmpfs -o uid={USER},mode=0700 none "$root/{STATE}"
mount --bind /proc "$root/proc"
mount --bind /dev "$root/dev"
exec chroot --userspec={USER}:{USER} "$root" "$@"
"""
"""Runs a command in a root that is read-only but for a small /tmp and the volume."""


@pytest.fixture
def root() -> Path:
    return Path(str(HERE))


@pytest.fixture
def config() -> dict[str, Any]:
    described = json.loads(Path(os.environ["NEARDUP_TEST_IMAGE_CONFIG"]).read_text())
    found: dict[str, Any] = described["Docker"]["config"]
    return found


def inside(root: Path, *command: str) -> list[str]:
    return ["unshare", "--mount", "sh", "-c", CONFINED, "confined", str(root), *command]


def run(root: Path, environment: dict[str, str], *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        inside(root, *command), env=environment, capture_output=True, text=True, check=False
    )


@pytest.fixture
def environment(config: dict[str, Any]) -> dict[str, str]:
    return dict(one.split("=", 1) for one in config["Env"])


def packages(root: Path) -> Path:
    (found,) = root.glob("opt/neardup/lib/python3.*/site-packages")
    return found


def test_what_it_starts_is_described(config: dict[str, Any]) -> None:
    assert config["User"] == str(USER)
    assert config["Volumes"] == {f"/{STATE}": {}}
    assert config["Entrypoint"] == ["tini", "-s", "--", "neardup"]
    assert config["Cmd"] == ["run"]
    assert config["Healthcheck"]["Test"] == ["CMD", "neardup-health", "/healthz"]


def test_the_volume_belongs_to_the_user_alone(root: Path) -> None:
    found = (root / STATE).stat()
    assert (found.st_uid, stat.S_IMODE(found.st_mode)) == (USER, 0o700)
    assert list((root / STATE).iterdir()) == []


def test_it_has_all_files_of_the_packages_and_no_others(root: Path) -> None:
    listed = subprocess.run(
        ["git", "ls-files", "lsh", "neardup", "worker"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    of_lsh_alone = {"lsh/pyproject.toml", *(f"lsh/{one.name}" for one in ROOT.glob("lsh/LICENSE*"))}
    there = {
        str(path.relative_to(packages(root)))
        for name in ("lsh", "neardup", "worker")
        for path in (packages(root) / name).rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }
    assert there == {*listed.stdout.split(), "lsh/_core.abi3.so"} - of_lsh_alone


def test_compilers_stay_behind(root: Path) -> None:
    for program in ("usr/bin/gcc", "usr/bin/cc", "usr/local/cargo", "usr/local/rustup"):
        assert not (root / program).exists()


def test_all_clients_of_object_stores_are_there_or_none(root: Path) -> None:
    there = {name for name in ("s3fs", "gcsfs", "adlfs") if (packages(root) / name).is_dir()}
    size = sum(path.lstat().st_size for path in packages(root).rglob("*") if path.is_file())
    assert len(there) in {0, 3}
    assert there or size < 300 << 20


def test_its_version_is_that_of_the_project(root: Path, environment: dict[str, str]) -> None:
    done = run(root, environment, "tini", "-s", "--", "neardup", "--version")
    assert done.returncode == 0, done.stderr
    assert __version__ in done.stdout


def test_nothing_but_the_volume_and_tmp_is_written(root: Path, environment: dict[str, str]) -> None:
    for folder in ("/", "/opt/neardup", "/var/lib", "/etc"):
        refused = run(root, environment, "touch", f"{folder}/new")
        assert refused.returncode != 0, folder
        assert "Read-only" in refused.stderr or "denied" in refused.stderr
    done = run(root, environment, "neardup", "demo")
    assert done.returncode == 0, done.stderr
    assert "is a duplicate of" in done.stdout


@contextmanager
def started(
    root: Path, environment: dict[str, str], log: Path
) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("wb") as to:
        worker = subprocess.Popen(
            inside(root, "tini", "-s", "--", "neardup", "run"),
            env=environment,
            stdout=to,
            stderr=to,
        )
        try:
            yield worker
        finally:
            worker.kill()
            worker.wait()


def test_its_health_is_asked_and_it_ends(
    root: Path, environment: dict[str, str], tmp_path: Path
) -> None:
    """Without a Kafka, a worker lives and isn't ready."""
    http, nobody = free_ports(2)
    environment |= {
        "NEARDUP_WORKER__HTTP_PORT": str(http),
        "NEARDUP_KAFKA__BOOTSTRAP": f"127.0.0.1:{nobody}",
    }

    def healthy(path: str) -> bool:
        return run(root, environment, "neardup-health", path).returncode == 0

    with started(root, environment, tmp_path / "log") as worker:
        wait_until(lambda: healthy("/healthz"), 60, "the worker to live")
        assert not healthy("/readyz")
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(30) == 0, (tmp_path / "log").read_text()
