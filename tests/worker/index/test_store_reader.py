"""Stores that are opened to be asked, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from rocksdict import Options, Rdict

from worker.index.errors import HeaderMismatch, StoreDamaged
from worker.index.keyspace import HEADER, RUNS
from worker.index.read_only import ReadOnlyStore
from worker.index.store import BandStore


def changed(path: Path, key: bytes, value: bytes) -> Path:
    """Return a store with one key written by somebody else."""
    BandStore(path, {"test": 1}).close()
    other = Rdict(str(path), Options(raw_mode=True))
    other[key] = value
    other.close()
    return path


def test_a_store_of_another_format_is_not_read(tmp_path: Path) -> None:
    header = json.dumps({"format": 3, "test": 1}).encode()
    with (
        ReadOnlyStore(changed(tmp_path / "store", HEADER, header)) as store,
        pytest.raises(HeaderMismatch, match="has format 3, and this neardup reads"),
    ):
        store.reader()


def test_a_list_of_runs_that_is_none_is_damage(tmp_path: Path) -> None:
    with (
        ReadOnlyStore(changed(tmp_path / "store", RUNS, b"x")) as store,
        pytest.raises(StoreDamaged, match="the value of key ff72756e73 is cut off"),
    ):
        store.reader()
