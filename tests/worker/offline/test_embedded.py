"""All stages on the in-process log: what verdicts don't depend on."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Literal

import pytest

from tests.support.breadth import mostly_slow, slow
from tests.support.checker.history import History, reason
from tests.support.embedded import Run, Texts, Verdicts, by_id, first_matches
from tests.support.texts import near_copies
from worker.bus import TopicPartition


@pytest.fixture(scope="module")
def texts() -> Texts:
    return near_copies(150, 1)


@pytest.fixture(scope="module")
def history(texts: Texts, tmp_path_factory: pytest.TempPathFactory) -> History:
    """Give what one shard publishes that sees one document at a time."""
    run = Run(tmp_path_factory.mktemp("expected"), partitions=1, shards=1, batch=1)
    run.feed(texts)
    return run.finish()


@pytest.fixture(scope="module")
def expected(history: History) -> Verdicts:
    found = by_id(history)
    assert sum(map(bool, found.values())) > len(found) / 5
    return found


@pytest.fixture(scope="module")
def expected_firsts(history: History) -> dict[str, str]:
    found, verdicts = first_matches(history), by_id(history)
    assert any(first != verdicts[ident][0][0] for ident, first in found.items())
    return found


@pytest.mark.parametrize("shards", mostly_slow([1, 2, 4, 18], 1, 2, 18))
@pytest.mark.parametrize(
    "batch", [pytest.param(1, marks=pytest.mark.slow(ci=False)), 7, slow(4_000)]
)
def test_verdicts_do_not_depend_on_shards_or_batches(
    tmp_path: Path,
    texts: Texts,
    expected: Verdicts,
    expected_firsts: dict[str, str],
    shards: int,
    batch: int,
) -> None:
    run = Run(tmp_path, partitions=1, shards=shards, batch=batch)
    run.feed(texts)
    history = run.finish()
    assert by_id(history) == expected
    assert first_matches(history) == expected_firsts


@pytest.mark.parametrize(
    "partitions", [slow(1), pytest.param(2, marks=pytest.mark.slow(ci=False)), 5]
)
def test_verdicts_do_not_depend_on_partitions(
    tmp_path: Path,
    texts: Texts,
    expected: Verdicts,
    expected_firsts: dict[str, str],
    partitions: int,
) -> None:
    run = Run(tmp_path, partitions=partitions)
    run.feed(texts, one_by_one=True)
    history = run.finish()
    assert by_id(history) == expected
    assert first_matches(history) == expected_firsts


@pytest.mark.parametrize("seed", mostly_slow(range(5), 0, 3))
def test_in_any_order_of_arrival_one_of_equal_texts_is_unique(tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    groups = [text for _, text in near_copies(12, seed) if len(text) > 60]
    distinct = enumerate(dict.fromkeys(groups))
    arrivals = [(f"{group}-{copy}", text) for group, text in distinct for copy in range(6)]
    random.shuffle(arrivals)
    run = Run(tmp_path, partitions=random.choice((2, 3, 5)), batch=random.choice((2, 9, 4_000)))
    run.feed(arrivals)
    history = run.prove(tmp_path, shards=random.choice((1, 2, 18)))
    firsts = [json.loads(r.value or b"")["id"].partition("-")[0] for r in history.unique]
    assert len(firsts) == len(set(firsts))


def test_tombstones_are_passed_on_to_both_outputs(tmp_path: Path, texts: Texts) -> None:
    run = Run(tmp_path)
    for number, text in enumerate(texts[:60]):
        run.feed([text])
        if number % 5 == 0:
            run.forget(f"key-{number}", number % 3)
    history = run.prove(tmp_path)
    assert sum(record.value is None for record in history.duplicate) == 12


@pytest.mark.parametrize(
    ("batch", "how"),
    [slow(3, "restart"), (3, "crash"), (4_000, "restart"), slow(4_000, "crash")],
)
def test_a_worker_that_comes_back_goes_on_with_its_state(
    tmp_path: Path, texts: Texts, expected: Verdicts, how: Literal["restart", "crash"], batch: int
) -> None:
    run = Run(tmp_path, partitions=1, batch=batch)
    for first in range(0, len(texts), 30):
        run.feed(texts[first : first + 30])
        run.finish()
        getattr(run, how)()
    assert by_id(run.finish()) == expected
    run.prove(tmp_path)


def empty(run: Run, topic: str) -> None:
    """Delete all of a topic, with the markers at its ends, as retention does after a while."""
    for number in range(run.bus.partitions([topic])[topic] or 0):
        place = TopicPartition(topic, number)
        run.bus.trim(*place, run.bus.log_reader("", [topic]).watermarks(place)[1])


@pytest.mark.parametrize("ends", ["restart", "crash"])
def test_a_worker_comes_back_after_retention_has_emptied_the_answers(
    tmp_path: Path, texts: Texts, ends: str
) -> None:
    run = Run(tmp_path / "run")
    run.feed(texts[:50])
    run.finish()
    for shard in range(run.topology.layout.shards):
        empty(run, run.topology.matches(shard))
    getattr(run, ends)()
    run.feed(texts[50:100])
    run.prove(tmp_path / "replay")


def test_documents_deleted_once_they_were_judged_are_rejected(tmp_path: Path, texts: Texts) -> None:
    run = Run(tmp_path / "run")
    run.feed(texts[:50])
    for _ in range(3):
        for loop in run.embedded.loops[:-1]:
            loop.step(0.0)
    empty(run, run.topology.documents)
    run.restart()
    history = run.finish()
    assert len(history.rejected) == 50
    assert not history.unique
    assert {reason(record) for record in history.rejected} == {"payload-gone"}
    run.feed(texts[50:60])
    history = run.finish()
    assert len(history.unique) + len(history.duplicate) == 10
