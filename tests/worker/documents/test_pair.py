"""Two published documents are found by their ids on an application's outputs."""

import json
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from tests.support.embedded import Run
from tests.support.ids_of_keys import ODD_KEYS, id_of_key
from worker.bus import Outgoing, TopicPartition
from worker.bus.memory.bus import MemoryBus
from worker.corrections.request import Allow
from worker.documents.lookup import Gone
from worker.documents.pair import Pair, newest, pair
from worker.formats.choice import document_format
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


class Seen:
    """Counts what was read."""

    def __init__(self) -> None:
        self.records = 0

    @contextmanager
    def __call__(self, total: int) -> Iterator[Callable[[int, int], None]]:
        assert total

        def on_read(_offsets: int, records: int) -> None:
            self.records = records

        yield on_read


def looked_up(run: Run, *ids: str, settings: Settings | None = None) -> Pair:
    topics = (run.topology.unique, run.topology.duplicate)
    places = [TopicPartition(topic, number) for topic in topics for number in range(3)]
    spans = {place: (0, run.bus.end_offset(*place)) for place in places}
    with closing(run.bus.log_reader("explain", topics)) as reader:
        return pair(reader, spans, settings or run.settings, ids, Seen())


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


TOPIC = "a.unique"
PLACES = [TopicPartition(TOPIC, 0), TopicPartition(TOPIC, 1)]


def published(number: int, ident: int, partition: int) -> Outgoing:
    headers = (("neardup-source", b"a.documents-0-0"), ("neardup-sequence", b"%d" % number))
    return Outgoing(TOPIC, partition, b"%d" % ident, b'{"text": "%d"}' % number, headers)


@pytest.fixture(scope="module")
def log() -> MemoryBus:
    bus = MemoryBus()
    bus.create_topic(TOPIC, 2)
    bus.append_many(published(number, number // 4, number % 2) for number in range(40_000))
    return bus


def numbers(bus: MemoryBus, *ids: str, seen: Seen | None = None) -> list[int]:
    """Return the sequence numbers of the newest records of some ids."""
    ranges = {place: (0, bus.end_offset(*place)) for place in PLACES}
    documents = document_format(Settings())
    with closing(bus.log_reader("x", [TOPIC])) as reader:
        found = newest(reader, ranges, documents, ids, seen or Seen())
    return [int(dict(record.headers)["neardup-sequence"] or b"") for record in found]


def test_the_newest_record_of_each_id_is_found(log: MemoryBus) -> None:
    assert numbers(log, "9999", "0") == [39_999, 3]


def test_an_id_that_is_given_twice_has_its_newest_two(log: MemoryBus) -> None:
    assert numbers(log, "7", "7") == [30, 31]


def test_a_recent_document_is_found_without_reading_the_rest(log: MemoryBus) -> None:
    seen = Seen()
    numbers(log, "9990", seen=seen)
    assert seen.records == 4_000


def test_an_id_that_is_nowhere_costs_a_read_of_everything(log: MemoryBus) -> None:
    seen = Seen()
    with pytest.raises(Gone, match=r"'nobody' is not on a\.unique within 40,000 offsets"):
        numbers(log, "nobody", seen=seen)
    assert seen.records == 40_000


def test_two_records_in_different_windows_are_both_found(log: MemoryBus) -> None:
    log.append(published(40_000, 3, 0))
    assert numbers(log, "3", "3") == [15, 40_000]
