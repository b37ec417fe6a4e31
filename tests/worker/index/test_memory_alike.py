"""An index in memory and one in RocksDB are one index, and a query sees what a verdict does."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count, pairwise
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lsh.index import MemoryIndex, decide, match
from tests.worker.index.decisions import RULES, Document, batch, documents_strategy
from worker.index.store import BandStore

COLUMNS = [0, 1, 2, 3]


@pytest.fixture
def paths(tmp_path: Path) -> Iterator[Path]:
    """Return a new path for each store of a test."""
    return (tmp_path / str(number) for number in count())


@settings(
    max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(documents=documents_strategy, cuts=st.lists(st.integers(0, 40), max_size=5))
def test_both_decide_alike_and_become_the_same(
    paths: Iterator[Path], documents: list[Document], cuts: list[int]
) -> None:
    memory, store = MemoryIndex(), BandStore(next(paths), {"test": 1})
    edges = [0, *sorted({cut for cut in cuts if 0 < cut < len(documents)}), len(documents)]
    for low, high in pairwise(edges):
        some = batch(documents[low:high], COLUMNS)
        of_memory, of_store = decide(memory, some, RULES), store.decide(some, RULES)
        assert of_memory.matches == of_store.matches
        assert of_memory.keys.tolist() == of_store.keys.tolist()
        assert of_memory.buckets == of_store.buckets
        assert of_memory.records == of_store.records
        counts = [(d.candidates, d.absorbed, d.dropped) for d in (of_memory, of_store)]
        assert counts[0] == counts[1]
        memory.apply(of_memory)
        store.apply(of_store, offset=high, now=high, documents=high - low)
        assert store.items() == memory.items()
        sequences = [document.sequence for document in documents[:high]]
        assert store.records(sequences) == memory.records(sequences)
    store.close()


@settings(max_examples=50, deadline=None)
@given(documents=documents_strategy)
def test_a_query_finds_what_the_verdict_names_and_changes_nothing(
    documents: list[Document],
) -> None:
    index = MemoryIndex()
    for document in documents:
        one = batch([document], COLUMNS)
        before = dict(index.items())
        found = match(index, one.columns, one.keys, one.sketches, RULES)
        assert dict(index.items()) == before
        decision = decide(index, one, RULES)
        assert found == decision.matches
        index.apply(decision)
    # All at once, they see an index that does not change under them.
    every = batch(documents, COLUMNS)
    together = match(index, every.columns, every.keys, every.sketches, RULES)
    for row, document in enumerate(documents):
        one = batch([document], COLUMNS)
        alone = match(index, one.columns, one.keys, one.sketches, RULES)
        assert together.get(row, []) == alone.get(0, [])
