"""What a soak makes of ``neardup reindex``: rules that always change, and failures that may be."""

from itertools import pairwise

import pytest

from tests.faults.of_reindex import ReindexAnew, ReindexOften
from tests.faults.reindexing import failed_of_brokers
from tests.faults.soak import REINDEXING
from tests.support.application import SHARDS
from worker.admin.reindex.rewriting import fingerprinted
from worker.generations.generation import Generation
from worker.settings import load


@pytest.mark.parametrize(
    ("status", "said", "again"),
    [
        (1, "building generation 1\nneardup: the cluster doesn't answer\n", True),
        (1, "Traceback (most recent call last):\nKeyError: 1\n", False),
        (2, "neardup: reindex: another one is under way\n", False),
        (-9, "building generation 1\n", False),
        (1, "", False),
    ],
)
def test_a_command_is_run_again_if_it_said_in_a_line_that_a_broker_failed(
    status: int, said: str, *, again: bool
) -> None:
    assert failed_of_brokers(status, said) is again


def test_each_reindex_has_other_shards_than_the_one_before() -> None:
    targets = ReindexOften.targets(())
    shards = [target.split()[1] for target in targets]
    assert all(target.startswith("--shards ") for target in targets)
    assert all(one != other for one, other in pairwise([*shards, shards[0]]))
    assert str(SHARDS) not in shards


def test_each_reindex_from_documents_makes_other_fingerprints_than_the_one_before() -> None:
    sections = ({}, *ReindexAnew.sections)
    given = [{f"similarity.{name}": value for name, value in one.items()} for one in sections]
    made = [Generation.fingerprinted(load(None, {"app": "a", **one})) for one in given]
    different = {fingerprinted(one, one.signing) for one in made}
    assert len(different) == len(sections) == 4


def test_no_reindex_of_a_soak_finds_more_than_the_rules_it_begins_with() -> None:
    assert REINDEXING.containment is not None
    for target in ReindexOften.targets(()):
        words = target.split()
        given = dict(zip(words[::2], words[1::2], strict=True))
        assert float(given.get("--threshold", 0.8)) >= 0.8
        share = given.get("--containment", "none")
        assert share == "none" or float(share) >= REINDEXING.containment
