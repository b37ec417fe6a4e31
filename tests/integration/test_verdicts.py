"""Verdicts depend on nothing but the order: not on workers, shards, or who came first."""

import json
from random import Random

import pytest

from tests.integration.conftest import Launch
from tests.support.corpus import corpus, scaled
from tests.support.proof import prove
from worker.bus import Outgoing

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(900)]

TRIO = ("alpha", "beta", "gamma")


@pytest.mark.slow
def test_a_replay_with_any_number_of_shards_comes_to_the_same_verdicts(launch: Launch) -> None:
    application = launch()
    application.start(*TRIO)
    documents = corpus(scaled(3_000, 50_000), 1)
    for first in range(0, len(documents), 1_000):
        application.feed(application.documents(documents[first : first + 1_000], first))
    history = prove(application, shards=(1, 2, 4, 18), seconds=600)
    assert len(history.duplicate) > len(documents) / 5


@pytest.mark.slow
def test_of_copies_that_arrive_at_the_same_instant_one_is_unique(launch: Launch) -> None:
    application = launch()
    application.start(*TRIO)
    groups = scaled(200, 2_000)
    random = Random(2)
    # Unlike each other, so that no group's text is near another's.
    distinct = [" ".join(f"{random.getrandbits(32):x}" for _ in range(60)) for _ in range(groups)]
    application.feed(
        Outgoing(
            application.topology.documents,
            copy,
            None,
            json.dumps({"id": f"{group}-{copy}", "text": distinct[group]}).encode(),
        )
        for group in range(groups)
        for copy in range(application.topology.layout.partitions)
    )
    history = prove(application, shards=(1, 4), seconds=300)
    verdict: dict[str, list[str]] = {}
    for kind, record in history.published():
        assert record.value is not None
        group = json.loads(record.value)["id"].partition("-")[0]
        verdict.setdefault(group, []).append(kind)
    firsts = [kinds.count("unique") for kinds in verdict.values()]
    assert firsts == [1] * groups
