"""What earlier generations have left is deleted, and nothing that is read."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from tests.worker.admin.fake import FakeCluster
from worker.admin.reindex.cleaning import delete_left
from worker.generations import Generation, Plan
from worker.settings import load

SETTINGS = load(None, {"app": "a", "index.shards": 1})
BASE = SETTINGS.topology(2)
FIRST = Plan.of(SETTINGS)
ANEW = msgspec.structs.replace(Generation.fingerprinted(SETTINGS), log=1)


class Emptied(FakeCluster):
    """A cluster that notes what is deleted."""

    def __init__(self) -> None:
        super().__init__(SETTINGS)
        self.groups: list[str] = []

    def delete_group(self, group: str) -> None:
        self.groups.append(group)

    def delete(self, topics: Iterable[str]) -> list[str]:
        return list(topics)


def deleted(plan: Plan) -> tuple[list[str], list[str]]:
    """Return the topics and the groups that go."""
    cluster = Emptied()
    topics = list(delete_left(cluster.as_cluster(), plan, BASE))
    return [name.removeprefix("a.") for name in topics], cluster.groups


def test_a_log_stays_as_long_as_a_generation_reads_it() -> None:
    plain = msgspec.structs.replace(FIRST.current, shards=2)
    assert deleted(FIRST.building(plain).done()) == (["shards", "matches-0"], ["a.index"])
    building = FIRST.building(plain).done().building(msgspec.structs.replace(ANEW, log=2))
    assert deleted(building) == (["shards", "matches-0"], ["a.index"])


def test_a_log_goes_with_the_last_generation_that_has_read_it() -> None:
    topics, groups = deleted(FIRST.building(ANEW).done())
    assert topics == ["shards", "matches-0", "fingerprints"]
    assert groups == ["a.index", "a.fingerprint", "a.g1.refingerprint"]


def test_a_log_that_was_given_up_goes_at_once() -> None:
    topics, groups = deleted(FIRST.building(ANEW).aborted())
    assert topics == ["g1.shards", "g1.matches-0", "g1.fingerprints"]
    assert groups == ["a.g1.index", "a.g1.refingerprint", "a.g1.fingerprint"]
