"""Fixtures: what undisturbed runs come to."""

from __future__ import annotations

import pytest

from tests.support.embedded import Run, by_id
from tests.worker.index.snapshot_run import TEXTS


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """Return the verdicts on the texts of `SnapshotRun`, by id."""
    run = Run(tmp_path_factory.mktemp("expected"), partitions=1, shards=1)
    run.feed(TEXTS)
    return dict(by_id(run.finish()))
