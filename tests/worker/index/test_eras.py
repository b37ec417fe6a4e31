"""Eras are given back when all their entries are too old, and not before."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.support.filling import RULES, random_documents
from worker.index.eras import ERAS_A_WINDOW, Eras
from worker.index.store import BandStore, StoreOptions

WINDOW = 800


def test_an_era_is_dropped_once_its_latest_entry_is_too_old() -> None:
    eras = Eras()
    for number in range(4):
        eras.note(100 * number, 100 * number + (350 if number == 1 else 10), WINDOW)
        eras.begin(10 * (number + 1), 100 * (number + 1))
    assert eras.drop(WINDOW, WINDOW) == 0
    assert eras.drop(WINDOW + 50, WINDOW) == 1
    assert eras.first == 10
    assert eras.drop(WINDOW + 450, WINDOW) == 0
    assert eras.drop(WINDOW + 500, WINDOW) == 3
    assert [era.first for era in eras.kept] == [40]


def test_the_latest_time_is_rounded_up_so_that_the_list_seldom_changes() -> None:
    eras = Eras()
    changes = sum(eras.note(time, time, WINDOW) for time in range(100))
    assert changes < 12
    assert 99 <= eras.current.latest < 99 + WINDOW // 32


def test_before_there_is_a_now_nothing_begins_or_ends() -> None:
    eras = Eras()
    assert not eras.note(None, 7, WINDOW)
    assert (eras.due(None, WINDOW), eras.drop(None, WINDOW)) == (False, 0)
    assert eras.note(5, 7, WINDOW)
    assert (eras.current.since, eras.due(5, WINDOW)) == (5, False)
    assert eras.due(5 + WINDOW // ERAS_A_WINDOW, WINDOW)


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
