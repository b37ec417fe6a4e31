"""What all workers agree on is recorded, and compared before a worker joins a group."""

import json
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

import pytest

from localkafka.broker import wait_until
from tests.integration.conftest import Launch
from tests.integration.refusal import refused
from tests.support.application import ApplicationUnderTest
from tests.support.command_line import on_kafka
from worker.admin.cluster import Cluster
from worker.admin.layout_log import agree
from worker.bus import Outgoing
from worker.settings.errors import ConfigurationError
from worker.settings.loading import load
from worker.settings.model import Settings

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(120), pytest.mark.slow]

Sections = Mapping[str, Mapping[str, object]]


def neardup(
    application: ApplicationUnderTest, more: Sections, *arguments: str, status: int = 0
) -> str:
    """Run a command with other settings; return what it says."""
    config = application.write_config("other.toml", more)
    done = on_kafka(*arguments, "--config", config)
    assert done.returncode == status, (done.stdout, done.stderr)
    return done.stdout + done.stderr


def work(application: ApplicationUnderTest, *idents: str) -> None:
    """Have documents judged by the worker that runs."""
    texts = [(ident, f"the text that {ident} has for itself") for ident in idents]
    application.feed(application.documents(texts))
    application.audit.finish()


@pytest.mark.parametrize(
    ("more", "name", "theirs", "ours"),
    [
        ({"similarity": {"threshold": 0.6}}, "similarity.threshold", "0.8", "0.6"),
        ({"index": {"shards": 3}}, "index.shards", "4", "3"),
        ({"documents": {"text_fields": ["body"]}}, "documents.text_fields", '["text"]', '["body"]'),
        ({"limits": {"text_characters": 9}}, "limits.text_characters", "2000000", "9"),
    ],
)
def test_a_stranger_is_refused_and_the_others_go_on(
    launch: Launch, more: Sections, name: str, theirs: str, ours: str
) -> None:
    application = launch()
    application.seat("alpha")
    work(application, "a")
    before = set(application.kafka.admin().list_topics(timeout=30).topics)
    assert name in neardup(application, more, "topics", "create", status=2)
    assert set(application.kafka.admin().list_topics(timeout=30).topics) == before
    line = refused(application, more)
    assert f"{name} is {ours} here, must be {theirs}" in line
    del application.workers["refused"]  # It ended as it must.
    work(application, "b")
    assert application.worker("alpha").stop() == 0


def test_a_seed_is_compared_and_not_shown(launch: Launch) -> None:
    application = launch()
    line = refused(application, {"similarity": {"seed": "kept to ourselves"}})
    assert "similarity.seed (its digest)" in line
    assert "kept to ourselves" not in line


def test_nothing_recorded_is_said_and_mended(launch: Launch) -> None:
    application = launch()
    admin = application.kafka.admin()
    topic = application.topology.layout_log
    admin.delete_topics([topic])[topic].result(60)
    assert f"{topic}: the topic is missing" in neardup(
        application, {}, "topics", "verify", status=2
    )
    assert f"created  {topic}" in neardup(application, {}, "topics", "create")
    application.seat("alpha")
    assert application.worker("alpha").stop() == 0


def test_how_documents_are_read_may_be_changed_by_choice(launch: Launch) -> None:
    application = launch()
    application.seat("alpha")
    work(application, "a")
    assert application.worker("alpha").stop() == 0
    more = {"documents": {"text_fields": ["body"]}}
    said = neardup(application, more, "init", status=2)
    assert "`neardup init --accept`" in said
    said = neardup(application, more, "init", "--accept")
    assert 'documents.text_fields: ["text"] became ["body"]' in said
    assert "documents.text_fields" in refused(application)


def test_what_the_index_is_made_of_may_not(launch: Launch) -> None:
    application = launch()
    application.seat("alpha")
    work(application, "a")
    assert application.worker("alpha").stop() == 0
    more = {"similarity": {"threshold": 0.6}}
    said = neardup(application, more, "init", "--accept", status=2)
    assert "similarity.threshold is 0.8 there and 0.6 here" in said
    assert "`neardup reindex --threshold 0.6`" in said


def test_before_the_first_document_all_of_it_may_be_replaced(launch: Launch) -> None:
    application = launch()
    more = {"similarity": {"threshold": 0.6}}
    assert "init --accept" in neardup(application, more, "init", status=2)
    assert "init --accept" in neardup(application, more, "topics", "verify", status=2)
    said = neardup(application, more, "init", "--accept")
    assert "similarity.threshold: 0.8 became 0.6" in said
    assert "similarity.threshold" in refused(application)


def test_a_seed_may_follow_a_first_start_that_read_nothing(launch: Launch) -> None:
    application = launch()
    application.seat("alpha")
    alpha = application.worker("alpha")
    assert alpha.stop() == 0
    seed = {"similarity": {"seed": "a secret of more than sixteen bytes"}}
    said = neardup(application, seed, "init", "--accept")
    assert "similarity.seed (its digest)" in said
    assert "public" not in said
    assert "similarity.seed is the default, which is public" in neardup(
        application, {}, "init", "--accept"
    )
    neardup(application, seed, "init", "--accept")
    alpha.config = application.write_config("seeded.toml", seed)
    application.seat("alpha")
    work(application, "a")
    assert alpha.stop() == 0


def test_another_application_goes_on_where_one_ended(launch: Launch) -> None:
    """Nothing is lost or published twice: the way out for one whose log can't be used."""
    first = launch()
    first.seat("alpha")
    work(first, "a", "b", "c")
    topics = {
        name: getattr(first.topology, name)
        for name in ("documents", "unique", "duplicate", "rejected")
    }
    second = f"{first.topology.app}-2"
    start = ("--app", second, "--from", f"app:{first.topology.app}")
    said = neardup(first, {"topics": topics}, "topics", "create", *start, status=1)
    assert "has active members" in said
    assert first.worker("alpha").stop() == 0
    waiting = ("d", "e", "f", "g")
    first.feed(first.documents([(ident, f"of {ident} and nothing else") for ident in waiting]))
    # It is a static member, so the group waits for it until its session ends.
    wait_until(lambda: not members(first), 30, "the session of the last member to end")
    neardup(first, {"topics": topics}, "topics", "create", *start)
    config = first.write_config("second.toml", {"topics": topics})
    beta = first.worker("beta")
    beta.config = config
    first.start("beta", arguments=("--app", second))
    audit = first.audit
    audit.until(lambda: len(audit.records) >= 3 + len(waiting), 60, "the rest to be published")
    assert beta.stop() == 0
    audit.read(1.0)
    published = sorted(json.loads(one.value or b"")["id"] for one in audit.records)
    assert published == ["a", "b", "c", *waiting]


def members(application: ApplicationUnderTest) -> int:
    """Count who is in the group that publishes."""
    group = application.topology.group("route")
    admin = application.kafka.admin()  # Held: its requests die with it.
    return len(admin.describe_consumer_groups([group])[group].result(30).members)


def test_a_record_of_a_newer_version_is_not_guessed_at(launch: Launch) -> None:
    application = launch()
    topic = application.topology.layout_log
    newer = Outgoing(topic, 0, b"layout", b'{"version": 99}')
    application.write(application._producer, [newer])
    line = refused_with(application, 1)
    assert "its version is 99, and this neardup reads 1" in line


def refused_with(application: ApplicationUnderTest, status: int) -> str:
    """Start a worker that must end at once with this status; return its last line."""
    worker = application.worker("refused")
    application.track(worker.start())
    assert worker.wait(60) == status, worker.tail()
    return worker.output().splitlines()[-1]


def test_of_two_that_record_at_once_one_is_refused(launch: Launch) -> None:
    application = launch()
    options, topology = application.settings.kafka_options(), application.topology
    forget = Outgoing(topology.layout_log, 0, b"layout", None)
    application.write(application._producer, [forget])
    others = [
        load(application.write_config(f"{n}.toml", {"index": {"bucket_capacity": n}}))
        for n in (7, 8)
    ]

    def say(settings: Settings) -> str:
        try:
            agree(Cluster(options, 30), settings, topology)
        except ConfigurationError as error:
            return str(error)
        return ""

    with ThreadPoolExecutor(2) as pool:
        said = list(pool.map(say, others))
    assert sorted(map(bool, said)) == [False, True]
    winner = others[said.index("")].index.bucket_capacity
    value = Cluster(options, 30).last_records(topology.layout_log)[b"layout"]
    assert json.loads(value)["facts"]["index.bucket_capacity"] == winner
