"""The shard's decisions against a naive model, and their independence of how they are cut."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import count, pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lsh.index import BucketRules, DocumentBatch, Match, SameId
from tests.support.breadth import slow
from tests.support.corpus import examples, scaled
from tests.worker.index.decisions import (
    CONTAINING,
    LITTLE,
    RULES,
    WINDOW,
    Document,
    batch,
    documents_strategy,
    drawn_documents,
    model,
    rules_strategy,
    timed_documents_strategy,
    with_forgotten,
    with_now,
)
from worker.index.inspection import verify_store
from worker.index.read_only import ReadOnlyStore
from worker.index.rocksdb import StoreOptions
from worker.index.store import BandStore
from worker.index.store_reader import matches_of

LEVELS = 5
"""How many overflow buckets there are behind one another."""
RUN_DOCUMENTS = 3
"""So few that some documents are in runs, and others in the open one."""


@pytest.fixture
def paths(tmp_path: Path) -> Iterator[Path]:
    """Give a new path for each store of a test."""
    return (tmp_path / str(number) for number in count())


def run(
    path: Path,
    documents: Sequence[Document | bytes],
    columns: list[int],
    cuts: list[int],
    rules: BucketRules = RULES,
) -> list[list[Match]]:
    options = StoreOptions(run_documents=RUN_DOCUMENTS, window_ms=rules.window_ms)
    if len(cuts) % 2:
        options = replace(options, write_buffer_bytes=LITTLE)
    store = BandStore(path, {"test": 1}, options=options)
    answers: list[list[Match]] = []
    edges = [0, *sorted({cut % len(documents) for cut in cuts}), len(documents)]
    for low, high in pairwise(edges):
        part = documents[low:high]
        if not part:
            continue
        documents_of_it = batch(part, columns)
        decision = store.decide(documents_of_it, rules)
        count = len(documents_of_it.ids)
        answers += matches_of(decision.matches)
        store.apply(decision, offset=high, documents=count)
    store.close()
    return answers


@settings(
    max_examples=examples(12, 300),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    documents=documents_strategy,
    cuts=st.lists(st.integers(0, 1000), max_size=5),
    rules=rules_strategy,
)
def test_decisions_are_the_models_however_the_batches_are_cut(
    paths: Iterator[Path], documents: list[Document], cuts: list[int], rules: BucketRules
) -> None:
    columns = [0, 1, 2, 3]
    found = run(next(paths), documents, columns, cuts, rules)
    assert found == model(documents, columns, rules)


@settings(
    max_examples=examples(15, 200),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(documents=documents_strategy, shards=st.integers(1, 4), rules=rules_strategy)
def test_shards_together_find_what_one_finds(
    paths: Iterator[Path], documents: list[Document], shards: int, rules: BucketRules
) -> None:
    alone = run(next(paths), documents, [0, 1, 2, 3], [], rules)
    parts = [
        run(next(paths), documents, list(range(shard, 4, shards)), [7], rules)
        for shard in range(shards)
    ]
    together = [
        sorted(
            {match for part in parts for match in part[row]},
            key=lambda match: (-match.similarity, match.sequence),
        )[: RULES.max_matches]
        for row in range(len(documents))
    ]
    assert together == alone


@settings(
    max_examples=examples(12, 300),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    documents=timed_documents_strategy,
    cuts=st.lists(st.integers(0, 1000), max_size=30),
    shards=st.integers(1, 4),
    rules=rules_strategy,
)
def test_with_a_window_shards_are_lists_of_dated_entries(
    paths: Iterator[Path],
    documents: list[Document],
    cuts: list[int],
    shards: int,
    rules: BucketRules,
) -> None:
    rules = replace(rules, window_ms=WINDOW)
    parts = []
    for shard in range(shards):
        columns = list(range(shard, 4, shards))
        path = next(paths)
        parts.append(run(path, documents, columns, [cut + shard for cut in cuts], rules))
        assert parts[-1] == model(documents, columns, rules)
        findings = verify_store(path)
        assert (findings.faults, findings.more_faults) == ([], 0)
    together = [
        sorted(
            {match for part in parts for match in part[row]},
            key=lambda match: (-match.similarity, match.sequence),
        )[: rules.max_matches]
        for row in range(len(documents))
    ]
    assert together == model(documents, [0, 1, 2, 3], rules)


@pytest.mark.parametrize("seed", range(scaled(1, 5)))
@pytest.mark.parametrize("crowded", [slow(False), True])
def test_over_many_windows_nothing_is_kept_or_lost(
    tmp_path: Path, seed: int, *, crowded: bool
) -> None:
    """The records, runs and grown buckets of many eras are dropped meanwhile."""
    rules = replace(with_now(RULES, (5, 16, 8)), window_ms=WINDOW)
    documents = drawn_documents(scaled(1_000, 1_500), seed, crowded=crowded)
    cuts = np.random.default_rng(seed).integers(0, len(documents), 400).tolist()
    columns = [0, 1, 2, 3]
    found = run(tmp_path / "s", documents, columns, cuts, rules)
    assert found == model(documents, columns, rules)
    with ReadOnlyStore(tmp_path / "s") as store:
        contents = store.contents()
        kept = list(contents.records())
        assert contents.eras[0][0] > 30
        assert len(contents.runs) < 60
    assert len(kept) < 400 < contents.inserted
    findings = verify_store(tmp_path / "s")
    assert (findings.faults, findings.more_faults) == ([], 0)


@pytest.mark.parametrize("seed", range(scaled(1, 5)))
@pytest.mark.parametrize("crowded", [slow(False), True])
@pytest.mark.parametrize("window", [slow(None), WINDOW])
def test_what_is_forgotten_matches_nothing(
    tmp_path: Path, seed: int, window: int | None, *, crowded: bool
) -> None:
    """Ids repeat, also within a batch, and are forgotten before and after they expire."""
    rules = replace(with_now(RULES, (2, 9, 6)), window_ms=window)
    events = with_forgotten(drawn_documents(700, seed, crowded=crowded), seed)
    cuts = np.random.default_rng(seed).integers(0, len(events), 150).tolist()
    columns = [0, 1, 2, 3]
    assert run(tmp_path / "s", events, columns, cuts, rules) == model(events, columns, rules)
    findings = verify_store(tmp_path / "s")
    assert (findings.faults, findings.more_faults) == ([], 0)


@pytest.mark.parametrize("same_id", ["replace", slow("ignore")])
@pytest.mark.parametrize("window", [slow(None), WINDOW])
def test_shards_with_ids_that_come_again_are_lists(
    paths: Iterator[Path], same_id: SameId, window: int | None
) -> None:
    rules = replace(with_now(CONTAINING, (2, 9, 6)), window_ms=window, same_id=same_id)
    events = with_forgotten(drawn_documents(500, 1, crowded=False), 1)
    cuts = np.random.default_rng(1).integers(0, len(events), 120).tolist()
    for columns in ([0, 2], [1, 3]):
        path = next(paths)
        assert run(path, events, columns, cuts, rules) == model(events, columns, rules)
        findings = verify_store(path)
        assert (findings.faults, findings.more_faults) == ([], 0)


def test_copies_grow_nothing(tmp_path: Path) -> None:
    store = BandStore(tmp_path / "s", {"test": 1})
    first = store.decide(batch([Document(1, 0, 0, (1, 2))], [0, 1]), RULES)
    store.apply(first, offset=1, documents=1)
    before = store.contents().buckets()
    copies = [Document(number, 0, 0, (1, 2)) for number in range(2, 500)]
    decision = store.decide(batch(copies, [0, 1]), RULES)
    store.apply(decision, offset=2, documents=len(copies))
    assert store.contents().buckets() == before
    assert [match.id for match in matches_of(decision.matches)[400]] == [b"d1"]
    assert decision.absorbed == 2 * len(copies)
    store.close()


def test_what_comes_to_a_full_bucket_goes_to_finer_ones(tmp_path: Path) -> None:
    store = BandStore(tmp_path / "s", {"test": 1})
    documents = [Document(number, number, 0, (5,)) for number in range(1, 6)]
    decision = store.decide(batch(documents, [0]), RULES)
    store.apply(decision, offset=1, documents=5)
    buckets = store.contents().buckets()
    assert buckets.pop((0, 5)) == ([0, 1, 2], True)
    assert sorted(buckets.values()) == [([3], False), ([4], False)]
    assert (decision.divided, decision.dropped) == (1, 0)
    again = [Document(number + 5, number, 0, (5,)) for number in range(1, 6)]
    found = matches_of(store.decide(batch(again, [0]), RULES).matches)
    assert [found[row][0].sequence for row in range(5)] == [1, 2, 3, 4, 5]
    store.close()


def test_the_finest_bucket_drops_its_oldest(tmp_path: Path) -> None:
    """These have the same sketch as far as buckets see, and aren't absorbed."""
    rules = replace(RULES, threshold=1.1, absorb=1.1)
    store = BandStore(tmp_path / "s", {"test": 1})
    documents = [Document(number, 0, 0, (5,)) for number in range((LEVELS + 1) * 3 + 2)]
    decision = store.decide(batch(documents, [0]), rules)
    assert (decision.divided, decision.dropped) == (LEVELS, 2)
    store.apply(decision, offset=1, documents=len(documents))
    held = [number for bucket in store.contents().buckets().values() for number in bucket.documents]
    gone = set(range(len(documents))).difference(held)
    assert gone == {LEVELS * 3, LEVELS * 3 + 1}
    store.close()


def test_an_empty_batch_changes_nothing(tmp_path: Path) -> None:
    store = BandStore(tmp_path / "s", {"test": 1})
    empty = DocumentBatch(
        np.zeros(0, np.uint64),
        np.zeros(0, np.int64),
        [],
        np.zeros(0, np.uint32),
        [0],
        np.zeros((1, 0), np.uint64),
        np.zeros((0, 0), np.uint8),
    )
    decision = store.decide(empty, RULES)
    store.apply(decision, offset=9, documents=0)
    assert store.offset == 9
    assert store.contents().buckets() == {}
    store.close()
