"""Eras are given back when all their entries are too old, and not before."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.support.filling import RULES, random_documents
from worker.index.rocksdb import StoreOptions
from worker.index.store import BandStore

WINDOW = 800


@pytest.mark.parametrize(("ahead", "windows"), [(0, 1.25), (WINDOW - 20, 2.25), (WINDOW, 1.25)])
def test_the_disk_holds_at_most_two_windows_and_some_eras(
    tmp_path: Path, ahead: int, windows: float
) -> None:
    """Each hundredth document is dated ahead; what is dated too far ahead counts as of now."""
    rules = replace(RULES, window_ms=WINDOW)
    options = StoreOptions(run_documents=64, window_ms=WINDOW)
    store = BandStore(tmp_path / "s", {"test": 1}, options=options)
    most = 0
    for first in range(0, 8 * WINDOW, 20):
        documents = random_documents(20, first=first)
        documents.times[:] += np.where(documents.times % 100 == 0, ahead, 0)
        store.apply(store.decide(documents, rules), offset=first + 1, documents=20)
        if first > 3 * WINDOW:
            most = max(most, store.parts().documents)
    assert (windows - 0.25) * WINDOW < most < (windows + 0.1) * WINDOW
    store.close()
