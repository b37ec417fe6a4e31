"""What ``neardup explain --kafka`` finds on an application's outputs."""

import json
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from tests.support.embedded import Run
from tests.support.ids_of_keys import ODD_KEYS, id_of_key
from tests.worker.admin.fake import FakeCluster
from worker.bus import Outgoing, TopicPartition
from worker.cli.errors import CommandError
from worker.cli.explain_kafka import Judged, in_use_there, judged_in
from worker.corrections.request import Allow
from worker.generations.generation import Generation
from worker.generations.log import PLAN_KEY, dump
from worker.generations.plan import Plan
from worker.settings.loading import load
from worker.settings.model import Settings

TEXT = "The council has voted to close the old ferry line, after two years of debate. " * 4
DOCUMENTS = [
    ("a", f"{TEXT}Nobody objected."),
    ("other", "Rivers and mountains, which is something else entirely."),
    ("b", f"{TEXT}Nobody has objected."),
]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    made = Run(tmp_path)
    made.feed(DOCUMENTS, one_by_one=True)
    made.finish()
    return made


def looked_up(run: Run, *ids: str, settings: Settings | None = None) -> Judged:
    topics = (run.topology.unique, run.topology.duplicate)
    places = [TopicPartition(topic, number) for topic in topics for number in range(3)]
    spans = {place: (0, run.bus.end_offset(*place)) for place in places}
    with closing(run.bus.log_reader("explain", topics)) as reader:
        return judged_in(reader, spans, settings or run.settings, ids)


def test_a_duplicate_is_compared_with_its_best_match(run: Run) -> None:
    found = looked_up(run, "b")
    assert (found.left.id, found.right.id) == ("b", "a")
    assert (found.left.text, found.right.text) == (DOCUMENTS[2][1], DOCUMENTS[0][1])
    assert found.recorded is not None
    assert found.recorded > 0.8


def test_two_ids_are_looked_up_on_both_outputs(run: Run) -> None:
    matched, strange = looked_up(run, "a", "b"), looked_up(run, "a", "other")
    assert (matched.left.id, matched.right.id) == ("a", "b")
    assert (strange.left.id, strange.right.id) == ("a", "other")
    assert matched.recorded is not None
    assert strange.recorded is None


def test_an_id_that_was_sent_twice_can_be_compared_with_itself(run: Run) -> None:
    run.feed([("other", "Rivers and mountains again, but in other words.")])
    run.finish()
    found = looked_up(run, "other", "other")
    assert {found.left.text, found.right.text} == {
        DOCUMENTS[1][1],
        "Rivers and mountains again, but in other words.",
    }


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        (("a",), "'a' is unique: it matched nothing"),
        (("b", "x\x1b"), r"'x\\x1b' is not on neardup.duplicate and neardup.unique within 6"),
        (("b", "b"), "'b' is not twice on"),
    ],
)
def test_what_is_not_there_is_said(run: Run, ids: tuple[str, ...], message: str) -> None:
    with pytest.raises(CommandError, match=message):
        looked_up(run, *ids)


def test_an_allowance_that_let_a_document_through_is_named(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.correct(Allow("slogan", TEXT, exact=True))
    run.feed([("first", TEXT), ("second", TEXT)], one_by_one=True)
    run.finish()
    said = "'second' is unique: the allowance 'slogan' let it through"
    with pytest.raises(CommandError, match=said):
        looked_up(run, "second")


def test_other_settings_than_the_workers_are_noticed(run: Run) -> None:
    settings = Settings.model_validate({"documents": {"text_fields": ["body"]}})
    with pytest.raises(CommandError, match=r"no-text.*not the settings of the workers"):
        looked_up(run, "a", "b", settings=settings)


def settings_of(**given: object) -> Settings:
    settings: Settings = load(
        None, {"app": "a", **{k.replace("__", "."): v for k, v in given.items()}}
    )
    return settings


def test_the_settings_of_the_workers_are_those_given() -> None:
    cluster = FakeCluster(settings_of()).as_cluster()
    used, rules, others = in_use_there(cluster, settings_of())
    assert (used.parameters(), rules, others) == (settings_of().parameters(), None, [])


@pytest.mark.parametrize("threshold", [0.8, 0.7, 0.5])
def test_after_a_reindex_the_rules_are_those_in_use(threshold: float) -> None:
    """Whatever the settings say that were given: those of the beginning, or of nobody."""
    begun = settings_of(similarity__threshold=0.7)
    cluster = FakeCluster(begun)
    following = msgspec.structs.replace(Generation.of(begun), threshold=0.95)
    building = Plan.of(begun).start_build(following)
    given = settings_of(similarity__threshold=threshold)

    def threshold_and_whose(plan: Plan) -> tuple[float, str | None]:
        cluster.records["a.layout"][PLAN_KEY] = dump(plan)
        used = in_use_there(cluster.as_cluster(), given)
        return used.settings.parameters().threshold, used.rules

    over = building.hand_over()
    assert over is not None
    assert threshold_and_whose(building) == (0.7, "generation 0 of the index, in use now")
    for plan in (over, over.finish()):
        assert threshold_and_whose(plan) == (0.95, "generation 1 of the index, in use now")


def test_what_the_application_recorded_counts_whatever_is_given() -> None:
    own = {
        "similarity__preset": "news",
        "similarity__containment": 0.9,
        "similarity__shingle": "word",
    }
    begun = settings_of(**own)
    used, whose, others = in_use_there(FakeCluster(begun).as_cluster(), settings_of())
    assert used.parameters() == begun.parameters()
    assert whose == "those that a has recorded; the settings given here differ"
    assert others == []
    used, *_ = in_use_there(FakeCluster(settings_of()).as_cluster(), begun)
    assert used.parameters() == settings_of().parameters()


def test_what_can_not_be_taken_over_is_named() -> None:
    begun = settings_of(
        similarity__seed="a secret of our own, of 32 bytes",
        documents__text_fields=["title", "body"],
        documents__time_field="at",
        topics__unique="elsewhere",
    )
    _, _, others = in_use_there(FakeCluster(begun).as_cluster(), settings_of())
    assert [one.name for one in others] == ["similarity.seed (its digest)", "documents.text_fields"]


@pytest.mark.parametrize("key", ODD_KEYS)
def test_a_document_is_looked_up_by_the_id_of_its_key(tmp_path: Path, key: bytes) -> None:
    run = Run(tmp_path)
    for partition, (ident, text) in enumerate(DOCUMENTS):
        value = json.dumps({"text": text}).encode()
        given = key if partition == 0 else ident.encode()
        run.put(Outgoing(run.topology.documents, partition, given, value))
        run.finish()
    found = looked_up(run, id_of_key(key).decode(), "b")
    assert (found.left.id, found.left.text) == (id_of_key(key).decode(), DOCUMENTS[0][1])
    assert found.recorded is not None


def test_a_delete_is_not_the_document_that_it_deletes(tmp_path: Path) -> None:
    run = Run(tmp_path, documents={"deletes": "forget"})
    run.feed(DOCUMENTS, one_by_one=True)
    run.put(Outgoing(run.topology.documents, 0, b"key", b'{"id":"b","text":null}'))
    run.finish()
    assert looked_up(run, "b").left.text == DOCUMENTS[2][1]
