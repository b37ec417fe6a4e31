"""The fingerprints of running workers are made anew while documents stream."""

import json
from pathlib import Path

import pytest

from tests.integration.conftest import Launch
from tests.integration.reindexing import Feeder, ends, judged, started
from tests.support.application import ApplicationUnderTest
from tests.support.corpus import corpus, scaled
from worker.admin.cluster import Cluster
from worker.admin.reindex.in_use import planned
from worker.generations.generation import Generation
from worker.generations.plan import Plan

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(600), pytest.mark.slow(ci=False)]

ANEW = {"similarity": {"shingle_size": 4, "fold_digits": True, "threshold": 0.7}}
SLICE = 20
"""A tenth of a second's documents: few, so that they come as long as it takes."""


def plan_of(application: ApplicationUnderTest) -> Plan:
    plan = planned(Cluster(application.settings.kafka_options(), 30), application.settings)
    assert plan is not None
    return plan


def test_a_log_is_made_anew_while_documents_stream_and_a_worker_is_killed(
    launch: Launch, tmp_path: Path
) -> None:
    application = launch(settings={"index": {"shards": 2}})
    application.seat("alpha", "beta")
    feeder = Feeder(application, scaled(20_000, 300_000), 41, each=SLICE)
    application.audit.reach(1_000)
    later = application.write_config("later.toml", ANEW)
    application.worker("beta").config = later  # It starts with other settings than it began with.
    command = started(application, "--from-documents", "--config", str(later))
    application.audit.until(lambda: rewriting(application), 60, "the workers to rewrite the log")
    application.worker("beta").kill()
    application.start("beta")
    said = ends(application, command)
    assert "done: generation 1" in said
    assert "new fingerprints" in said
    assert feeder.feeding, "documents must come until the end"
    feeder.stop()
    longest = judged(application, tmp_path, feeder.fed, [0, 1])
    print(  # noqa: T201 -- a figure
        f"{feeder.fed} documents, longest wait {longest:.2f} s"
    )
    assert Generation.of(application.settings).log == 0
    assert plan_of(application).current.log == 1
    for name in ("alpha", "beta"):
        assert application.worker(name).stop() == 0
    cleaned = ends(application, started(application, "--clean"))
    assert f"deleted {application.topology.fingerprints}" in cleaned.splitlines()
    state = json.loads(ends(application, started(application, "--status", "--json")))
    assert (state["state"], state["generation"], state["left"]) == ("idle", 1, [])
    application.start("alpha")
    texts = corpus(200, 43)
    application.feed(application.documents(texts, feeder.fed))
    application.audit.reach(feeder.fed + 200)


def test_it_is_given_up_and_begun_again_and_the_rules_change_after_it(launch: Launch) -> None:
    application = launch(settings={"index": {"shards": 2}})
    application.seat("alpha")
    texts = corpus(500, 42)
    application.feed(application.documents(texts[:300]))
    later = application.write_config("later.toml", ANEW)
    anew = ("--from-documents", "--config", str(later))
    with started(application, *anew) as command:
        application.audit.until(lambda: rewriting(application), 60, "the workers to rewrite")
        command.kill()
    assert "nothing is being built" in ends(application, started(application, "--abort"))
    assert "deleted" in ends(application, started(application, "--clean"))
    assert "done: generation 2" in ends(application, started(application, *anew))
    application.feed(application.documents(texts[300:400], 300))
    said = ends(application, started(application, "--shards", "3"))
    assert "done: generation 3 (3 shards" in said
    current = plan_of(application).current
    assert (current.number, current.log, current.shards) == (3, 2, 3)
    assert application.worker("alpha").stop() == 0
    application.audit.until(lambda: cleaned(application), 60, "the groups to be empty")
    application.start("alpha")
    application.feed(application.documents(texts[400:], 400))
    application.audit.reach(500)
    application.audit.finish()
    published = [*application.audit.unique, *application.audit.duplicate]
    sequences = {dict(record.headers)["neardup-sequence"] for record in published}
    assert len(sequences) == len(published) == 500


def cleaned(application: ApplicationUnderTest) -> bool:
    """Delete what is left, unless a worker that has stopped still counts as a member."""
    with started(application, "--clean") as command:
        command.communicate()
    return command.returncode == 0


def rewriting(application: ApplicationUnderTest) -> bool:
    """Tell whether the workers have a log to make."""
    plan = planned(Cluster(application.settings.kafka_options()), application.settings)
    return plan is not None and plan.rewriting
