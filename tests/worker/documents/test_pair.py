"""Two published documents are found by their ids on an application's outputs."""

import json
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from tests.support.embedded import Run
from tests.support.ids_of_keys import ODD_KEYS, id_of_key
from worker.bus import Outgoing, TopicPartition
from worker.corrections.request import Allow
from worker.documents.lookup import Gone
from worker.documents.pair import Pair, pair
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


@contextmanager
def no_progress(total: int) -> Iterator[Callable[[int, int], None]]:
    assert total
    yield lambda _offsets, _records: None


def looked_up(run: Run, *ids: str, settings: Settings | None = None) -> Pair:
    topics = (run.topology.unique, run.topology.duplicate)
    places = [TopicPartition(topic, number) for topic in topics for number in range(3)]
    spans = {place: (0, run.bus.end_offset(*place)) for place in places}
    with closing(run.bus.log_reader("explain", topics)) as reader:
        return pair(reader, spans, settings or run.settings, ids, no_progress)


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
    with pytest.raises(Gone, match=message):
        looked_up(run, *ids)


def test_an_allowance_that_let_a_document_through_is_named(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.correct(Allow("slogan", TEXT, exact=True))
    run.feed([("first", TEXT), ("second", TEXT)], one_by_one=True)
    run.finish()
    said = "'second' is unique: the allowance 'slogan' let it through"
    with pytest.raises(Gone, match=said):
        looked_up(run, "second")


def test_other_settings_than_the_workers_are_noticed(run: Run) -> None:
    settings = Settings.model_validate({"documents": {"text_fields": ["body"]}})
    with pytest.raises(Gone, match=r"no-text.*not the settings of the workers"):
        looked_up(run, "a", "b", settings=settings)


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
