"""With a site's key, only what its workers wrote is a snapshot."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.breadth import slow
from tests.support.embedded import by_id
from tests.worker.index.snapshot_run import SHARDS, SnapshotRun, lose_everything
from worker.index.snapshots.manifest import read_key
from worker.settings.errors import ConfigurationError

Change = Callable[[Path], None]


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    path = tmp_path / "key"
    path.write_bytes(b"k" * 32 + b"\n")
    return path


def edited(path: Path, **changes: object) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def unsigned(path: Path) -> None:
    edited(path, hmac=None)


def of_another_key(path: Path) -> None:
    edited(path, hmac="0" * 64)


def not_ascii(path: Path) -> None:
    edited(path, hmac="ä")


def with_another_count(path: Path) -> None:
    edited(path, documents=7)


def with_another_file(path: Path) -> None:
    files = json.loads(path.read_text())["files"]
    edited(path, files=[*files, {"name": "x", "size": 0, "sha256": "0" * 64, "content": ""}])


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (unsigned, "not signed, although index.snapshots.key_file is set"),
        slow(of_another_key, "signed with another key"),
        slow(not_ascii, "signed with another key"),
        slow(with_another_count, "or changed"),
        (with_another_file, "or changed"),
    ],
)
def test_a_manifest_that_no_worker_signed_is_passed_over_for_an_older_one(
    tmp_path: Path,
    key_file: Path,
    expected: dict[str, object],
    caplog: pytest.LogCaptureFixture,
    change: Change,
    why: str,
) -> None:
    run = SnapshotRun(tmp_path, trim_log=True, key_file=str(key_file))
    for first in (0, 50):
        run.feed_some(first, first + 50)
        run.snapshot()
    run.close()
    lose_everything(run)
    for shard in range(SHARDS):
        change(run.manifests(shard)[-1])
    caplog.set_level("INFO")
    run.open()
    run.feed_some(100, 120)
    assert by_id(run.finish()) == expected
    said = [record.getMessage() for record in caplog.records]
    assert sum(why in text and "can't be used" in text for text in said) == SHARDS
    older = [text for text in said if "fetching the snapshot at offset" in text]
    assert len(older) == SHARDS
    run.close()


def test_layout_and_order_of_a_signed_manifest_may_change(tmp_path: Path, key_file: Path) -> None:
    run = SnapshotRun(tmp_path, key_file=str(key_file))
    run.feed_some(0, 30)
    run.snapshot()
    (path,) = run.manifests(0)
    found = json.loads(path.read_text())
    path.write_text(json.dumps(dict(reversed(found.items()))))
    repository = run.embedded.application.repository()
    assert repository is not None
    assert len(repository.shard(0).manifests()) == 1
    run.close()


def test_without_a_key_signed_manifests_are_read_too(tmp_path: Path, key_file: Path) -> None:
    run = SnapshotRun(tmp_path, key_file=str(key_file))
    run.feed_some(0, 30)
    run.snapshot()
    run.close()
    plain = SnapshotRun(tmp_path)
    repository = plain.embedded.application.repository()
    assert repository is not None
    (found,) = repository.shard(0).manifests()
    assert found.hmac is not None
    plain.close()


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (None, "No such file or directory"),
        (b"", "got 0 bytes, must be at least 32"),
        (b"k" * 31 + b"\n", "got 31 bytes, must be at least 32"),
        (b"k" * 70_000, "got more than 65536 bytes"),
    ],
)
def test_a_key_that_cannot_be_is_a_wrong_setting(
    tmp_path: Path, content: bytes | None, why: str
) -> None:
    path = tmp_path / "key"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigurationError, match=rf"^index\.snapshots\.key_file: .*{why}"):
        read_key(path)


def test_a_key_is_what_the_file_holds_without_its_newline(tmp_path: Path) -> None:
    (tmp_path / "key").write_bytes(b" k" * 16 + b"\r\n")
    assert read_key(tmp_path / "key") == b" k" * 16
    assert read_key(None) is None
