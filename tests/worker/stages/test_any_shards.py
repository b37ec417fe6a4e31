"""The verdicts on a feed with a window don't depend on how many shards give them, or who dies."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Final

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.checker import differences
from tests.support.checker.history import Source, Verdict
from tests.support.feeds import PARTITIONS, feed_settings, frames_of_feed
from tests.support.killed_replay import KilledReplay
from tests.support.replay import replay
from worker.stages.answers import Judged

SHARDS: Final = (2, 5, 18)


class Feed:
    """A feed's frames, and the verdicts of one shard on it."""

    def __init__(self, seed: int, documents: int, path: Path) -> None:
        self.settings = feed_settings(Random(seed))
        self.topology = self.settings.topology(PARTITIONS)
        feed = documents, seed, self.settings, self.topology
        self.frames = frames_of_feed(*feed, path / "fingerprint")
        self._path = path
        self.verdicts = self.replayed(1)
        assert len(self.verdicts) >= documents
        assert any(verdict.matches for verdict in self.verdicts.values())

    def replayed(self, shards: int) -> Mapping[Source, Verdict]:
        return replay(self.frames, self.settings, self.topology, shards, self._path)


def compare(feed: Feed) -> None:
    """Fail if one shard and several come to other verdicts."""
    for shards in SHARDS:
        assert not list(differences(feed.verdicts, feed.replayed(shards)))


def kill(feed: Feed, seed: int, path: Path) -> None:
    """Fail if shards that are killed come to other verdicts."""
    chance = Random(seed)
    given = feed.frames, feed.settings, feed.topology, 2
    killed = KilledReplay(*given, path, chance)
    assert not list(differences(feed.verdicts, killed.verdicts()))
    assert killed.kills
    assert killed.replayed


def test_any_number_of_shards_comes_to_the_same_verdicts(tmp_path: Path) -> None:
    feed = Feed(7, 300, tmp_path)
    compare(feed)
    kill(feed, 7, tmp_path)


@pytest.mark.slow(ci=False)
@pytest.mark.parametrize("seed", range(100, 112))
def test_any_number_of_shards_comes_to_the_same_verdicts_for_longer(
    seed: int, tmp_path: Path
) -> None:
    compare(Feed(seed, 2_000, tmp_path))


@pytest.mark.slow(ci=False)
@pytest.mark.parametrize("seed", range(200, 208))
def test_shards_that_are_killed_come_to_the_same_verdicts(seed: int, tmp_path: Path) -> None:
    kill(Feed(seed, 1_500, tmp_path), seed, tmp_path)


_OFFSETS = st.lists(st.integers(0, 30), unique=True).map(sorted)


def judged(offsets: list[int]) -> Judged:
    return Judged(np.array(offsets, np.int64), np.array(offsets, np.uint64) + 100, 1_000)


def described(these: Judged) -> list[tuple[int, int, int]]:
    """Return offset, checksum and sequence number of each."""
    numbers = range(these.sequence, these.sequence + len(these.offsets))
    return list(zip(these.offsets.tolist(), these.checksums.tolist(), numbers, strict=True))


@given(_OFFSETS, st.integers(0, 31))
def test_a_split_keeps_each_with_its_number(offsets: list[int], until: int) -> None:
    whole = judged(offsets)
    before, after = map(described, whole.split(until))
    assert before + after == described(whole)
    assert all(offset < until for offset, _, _ in before)
    assert all(offset >= until for offset, _, _ in after)


@given(_OFFSETS, _OFFSETS)
def test_each_offset_has_its_row_if_it_was_judged(offsets: list[int], asked: list[int]) -> None:
    rows, there = judged(offsets).rows_of(np.array(asked, np.int64))
    assert there.tolist() == [offset in offsets for offset in asked]
    assert rows.tolist() == [sum(one < offset for one in offsets) for offset in asked]
