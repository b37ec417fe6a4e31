"""An index in memory and one in RocksDB are one index, and a query sees what a verdict does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import replace
from itertools import chain, count, cycle, repeat
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lsh.index import (
    BucketKeys,
    BucketReader,
    BucketRules,
    DocumentBatch,
    MemoryIndex,
    decide,
    match,
)
from lsh.index.clock import NO_TIME
from lsh.index.layout import BEYOND, Record, unpack_record
from tests.support.corpus import examples
from tests.support.killed_disk import left_by_kill
from tests.worker.index.decisions import (
    LITTLE,
    NOWS,
    RULES,
    WINDOW,
    Document,
    batch,
    documents_strategy,
    timed_documents_strategy,
    with_now,
)
from worker.index.store import BandStore, StoreOptions

COLUMNS = [0, 1, 2, 3]


class Entry(NamedTuple):
    """An entry of a bucket: its document's sequence number, and its time in ms."""

    sequence: int
    time: int


@pytest.fixture
def paths(tmp_path: Path) -> Iterator[Path]:
    """Return a new path for each store of a test."""
    return (tmp_path / str(number) for number in count())


def entries(index: BucketReader, keys: BucketKeys, window: int) -> dict[bytes, list[Entry]]:
    """Return the live entries of buckets: the document's sequence number, and the entry's time."""
    found, packed = index.buckets(keys), keys.packed()
    live: dict[bytes, list[Entry]] = {}
    for place, bucket in found.items():
        column, numbers = int(keys.columns[place]), [one for one in bucket if one != BEYOND]
        for number, record in zip(numbers, map(read_record(index), numbers), strict=True):
            if record is not None:
                renewed = index.renewals([number]).get(number, {})
                time = np.array([renewed.get(column, record.time)], np.int64)
                entry = Entry(record.sequence, int(index.clock.settled(time)[0]))
                live.setdefault(packed[place], []).append(entry)
    now = index.clock.now
    oldest = NO_TIME if now is None else now - window
    kept = {key: [entry for entry in some if entry.time >= oldest] for key, some in live.items()}
    return {key: some for key, some in kept.items() if some}


def read_record(index: BucketReader) -> Callable[[int], Record | None]:
    """Return what reads the record of a document; that returns None if it was forgotten."""

    def read(number: int) -> Record | None:
        (packed,) = index.records([number])
        assert packed is not None
        return unpack_record(packed) if packed else None

    return read


class Survivor:
    """A store that is closed or killed at times, and the dictionaries of each state it was in.

    Every other time that it is opened, it keeps almost nothing in memory of what it has read.
    """

    def __init__(
        self, paths: Iterator[Path], run_documents: int, rules: BucketRules = RULES
    ) -> None:
        self._paths = paths
        self._path = next(paths)
        self._options = StoreOptions(run_documents=run_documents, window_ms=rules.window_ms)
        self._buffers = cycle((LITTLE, self._options.write_buffer_bytes))
        self._rules = rules
        self.store = self._opened()
        self.states = {0: MemoryIndex()}

    def _opened(self) -> BandStore:
        options = replace(self._options, write_buffer_bytes=next(self._buffers))
        return BandStore(self._path, {"test": 1}, options=options)

    def insert(self, documents: DocumentBatch) -> None:
        """Judge documents in the store and in a dictionary, and compare everything."""
        memory = deepcopy(self.states[self.store.offset])
        of_memory = decide(memory, documents, self._rules)
        of_store = self.store.decide(documents, self._rules)
        assert of_memory.matches == of_store.matches
        counts = [(d.absorbed, d.divided, d.dropped) for d in (of_memory, of_store)]
        assert counts[0] == counts[1]
        assert of_memory.dates.clock == of_store.dates.clock
        if self._rules.window_ms is None:
            assert of_memory.candidates == of_store.candidates
            assert of_memory.buckets == of_store.buckets
            assert of_memory.records == of_store.records
        memory.apply(of_memory)
        count = len(documents.ids)
        offset = self.store.offset + count
        self.store.apply(of_store, offset=offset, documents=count)
        self.states[offset] = memory

    def flush(self) -> None:
        self.store.flush()

    def reopen(self) -> None:
        self.store.close()
        self.store = self._opened()
        self.check()

    def kill(self) -> None:
        """Continue with what is on disk now."""
        left = next(self._paths)
        left_by_kill(self._path, left)
        self.store.close()
        self._path = left
        self.store = self._opened()
        self.check()

    def check(self) -> None:
        """Check that the store is in a state that it was in, and holds what it held then."""
        memory = self.states[self.store.offset]
        contents = self.store.contents()
        window = self._rules.window_ms
        if window is not None:
            keys = BucketKeys.unpacked(sorted(memory.items()))
            assert self.store.clock == memory.clock
            assert entries(self.store, keys, window) == entries(memory, keys, window)
            return
        assert contents.buckets() == dict(memory.items())
        assert self.store.inserted == memory.inserted
        assert list(contents.records()) == memory.records(range(memory.inserted))


@settings(
    max_examples=examples(45, 160),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    documents=documents_strategy,
    sizes=st.lists(st.integers(1, 6), min_size=1, max_size=12),
    events=st.lists(st.sampled_from(["", "", "flush", "reopen", "kill"]), max_size=24),
    run_documents=st.integers(1, 5),
)
def test_a_store_is_a_dictionary_whatever_happens_to_it(
    paths: Iterator[Path],
    documents: list[Document],
    sizes: list[int],
    events: list[str],
    run_documents: int,
) -> None:
    """Documents are inserted in batches. A killed store continues where it was last flushed."""
    survivor = Survivor(paths, run_documents)
    for size, event in zip(cycle(sizes), chain(events, repeat(""))):
        some = documents[survivor.store.offset :][:size]
        if not some:
            break
        survivor.insert(batch(some, COLUMNS))
        if event:
            getattr(survivor, event)()
    survivor.check()
    survivor.reopen()
    survivor.store.close()


@settings(
    max_examples=examples(45, 160),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    documents=timed_documents_strategy,
    sizes=st.lists(st.integers(1, 6), min_size=1, max_size=12),
    events=st.lists(st.sampled_from(["", "", "flush", "reopen", "kill"]), max_size=24),
    run_documents=st.integers(1, 5),
    rules=st.sampled_from([with_now(RULES, now) for now in NOWS]),
)
def test_with_a_window_it_forgets_what_the_dictionary_has_forgotten(
    paths: Iterator[Path],
    documents: list[Document],
    sizes: list[int],
    events: list[str],
    run_documents: int,
    rules: BucketRules,
) -> None:
    survivor = Survivor(paths, run_documents, replace(rules, window_ms=WINDOW))
    for size, event in zip(cycle(sizes), chain(events, repeat(""))):
        some = documents[survivor.store.offset :][:size]
        if not some:
            break
        survivor.insert(batch(some, COLUMNS))
        if event:
            getattr(survivor, event)()
    survivor.check()
    survivor.reopen()
    survivor.store.close()


@settings(max_examples=examples(50), deadline=None)
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
