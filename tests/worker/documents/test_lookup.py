"""Searches of the outputs, from the newest record to the oldest."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from tests.worker.serve.parts import Site
from worker.documents.lookup import Lookup


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with Site(tmp_path) as found:
        for number in range(20):
            found.judge({"id": f"d{number}", "text": f"A text of its own: {number}."})
        yield found


def test_a_search_ends_in_time_also_within_a_window(site: Site) -> None:
    ticks = count()
    with Lookup(site.settings, site.topology, site.bus, lambda: float(next(ticks))) as lookup:
        found = lookup.with_id("nobody")
        assert not found.complete
        assert found.searched < 10
        assert not lookup.never_came("nobody"), "it isn't certain"


def test_what_never_came_is_told_apart(site: Site) -> None:
    with Lookup(site.settings, site.topology, site.bus) as lookup:
        assert lookup.never_came("nobody")
        assert not lookup.never_came("d3")
