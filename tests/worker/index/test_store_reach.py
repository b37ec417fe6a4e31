"""How far back a store reaches, as its metrics tell."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.filling import RULES, random_documents
from worker.index.store import BandStore, StoreOptions
from worker.stages import StoreReach

HEADER: dict[str, str | int | float | bool] = {"shard": 1}


def fed(path: Path, seconds: int, window_ms: int | None) -> BandStore:
    """Return a store that was given a document each second."""
    store = BandStore(path, HEADER, options=StoreOptions(run_documents=16, window_ms=window_ms))
    rules = replace(RULES, window_ms=window_ms, now_rank=1, now_of=1, now_least=1)
    for second in range(seconds):
        documents = random_documents(1, first=second)
        documents.times[:] = second * 1_000
        decision = store.decide(documents, rules)
        store.apply(decision, offset=second + 1, documents=1)
    return store


def test_an_empty_store_reaches_nowhere(tmp_path: Path) -> None:
    store = fed(tmp_path / "s", 0, 80_000)
    assert isinstance(store, StoreReach)
    assert (store.oldest_seconds(), store.expired_eras()) == (None, 0)
    store.close()


@pytest.mark.slow
def test_without_a_window_a_store_reaches_back_to_its_first_document(tmp_path: Path) -> None:
    store = fed(tmp_path / "s", 400, None)
    assert (store.oldest_seconds(), store.expired_eras()) == (399, 0)
    store.close()


def test_with_a_window_it_reaches_an_era_further_back(tmp_path: Path) -> None:
    store = fed(tmp_path / "s", 400, 80_000)
    assert store.oldest_seconds() == pytest.approx(90, abs=10)
    dropped = store.expired_eras()
    assert dropped == pytest.approx(28, abs=1)
    reached = store.oldest_seconds()
    store.close()
    again = fed(tmp_path / "s", 0, 80_000)
    assert (again.oldest_seconds(), again.expired_eras()) == (reached, dropped)
    again.close()
