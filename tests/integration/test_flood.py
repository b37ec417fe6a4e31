"""A flood of copies and of variants of a template among other documents."""

import json
from random import Random

import pytest

from tests.integration.conftest import Launch
from tests.integration.naive import naive_verdicts
from tests.support.application import ApplicationUnderTest
from tests.support.checker import differences
from tests.support.checker.history import verdicts
from tests.support.command_line import on_kafka
from tests.support.corpus import corpus
from tests.support.proof import prove
from tests.support.waves import changed, distinct

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(600), pytest.mark.slow(ci=False)]

COPIES = 500
VARIANTS = 500
OTHERS = 500


def index_keys(application: ApplicationUnderTest) -> int:
    """Return how many records and cells the shards have; the worker has stopped."""
    directory = application.worker("alpha").state_dir
    done = on_kafka("index", "stats", "--json", "--state-dir", directory)
    assert done.returncode == 0, done.stderr
    return sum(row["keys"] for row in json.loads(done.stdout))


def test_a_flood_is_judged_like_any_documents_and_copies_grow_nothing(launch: Launch) -> None:
    random = Random(42)
    copied, template = distinct(random), distinct(random)
    texts = [
        *((f"copy-{number}", copied) for number in range(COPIES)),
        *((f"variant-{number}", changed(template, 3, random)) for number in range(VARIANTS)),
        *corpus(OTHERS, 42),
    ]
    random.shuffle(texts)
    application = launch(settings={"index": {"bucket_capacity": 8}})
    application.seat("alpha")
    application.feed(application.documents(texts))
    application.audit.reach(len(texts))
    assert application.worker("alpha").stop() == 0
    before = index_keys(application)
    application.seat("alpha")
    more = [(f"copy-{COPIES + number}", copied) for number in range(COPIES)]
    application.feed(application.documents(more))
    history = prove(application, shards=(1, 4))
    assert application.worker("alpha").stop() == 0
    assert index_keys(application) == before

    published = verdicts(history)
    unique: dict[str, int] = {}
    for record in application.inputs:
        kind = (record.key or b"").decode().partition("-")[0]
        alone = not published[record.partition, record.offset].matches
        unique[kind] = unique.get(kind, 0) + alone
    assert unique["copy"] == 1
    assert unique["variant"] < VARIANTS / 20
    assert unique["doc"] > OTHERS / 3
    rules = application.settings.rules()
    expected = naive_verdicts(application.fingerprints(), application.topology, rules)
    assert differences(published, expected) == []
