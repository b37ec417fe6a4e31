"""What was forgotten leaves the files of a store in time."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from lsh.index import DocumentBatch, Forgotten
from tests.support.filling import RULES, random_documents
from worker.index.contents import DOCUMENTS_A_PAGE
from worker.index.rocksdb import StoreOptions
from worker.index.store import BandStore

OPTIONS = StoreOptions(erasure_seconds=100, run_documents=200)
COUNT = 1_000
GONE_ROWS = range(300, 320)


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def in_files(path: Path, needle: bytes) -> bool:
    return any(needle in file.read_bytes() for file in path.rglob("*") if file.is_file())


def inserted(store: BandStore) -> DocumentBatch:
    """Insert documents with ids that no compression shortens, in several files."""
    chance = np.random.default_rng(5)
    documents = replace(
        random_documents(COUNT, columns=range(3)), ids=[chance.bytes(24) for _ in range(COUNT)]
    )
    for first in range(0, COUNT, 100):
        rows = slice(first, first + 100)
        part = DocumentBatch(
            documents.sequences[rows],
            documents.times[rows],
            documents.ids[rows],
            documents.shingles[rows],
            documents.columns,
            documents.keys[:, rows],
            documents.sketches[rows],
        )
        store.apply(store.decide(part, RULES), offset=first + 1, documents=100)
        store.flush()
    return documents


def forget(store: BandStore, ids: list[bytes]) -> None:
    nothing = replace(
        random_documents(0, columns=range(3)), forgotten=[Forgotten(0, ident) for ident in ids]
    )
    decision = store.decide(nothing, RULES)
    assert decision.forgotten == len(ids)
    store.apply(decision, offset=store.offset + 1, documents=0)


def test_a_store_remembers_that_something_was_forgotten(tmp_path: Path) -> None:
    path = tmp_path / "s"
    clock = Clock()
    store = BandStore(path, {"test": 1}, options=OPTIONS, clock=clock)
    documents = inserted(store)
    third = replace(
        documents,
        sequences=documents.sequences[3:4],
        times=documents.times[3:4],
        ids=documents.ids[3:4],
        shingles=documents.shingles[3:4],
        keys=documents.keys[:, 3:4],
        sketches=documents.sketches[3:4],
    )
    store.close()
    store = BandStore(path, {"test": 1}, options=OPTIONS, clock=clock)
    # What is forgotten in the batch that it comes in is never written, so no bucket names it.
    more = replace(
        random_documents(2, first=COUNT, columns=range(3)),
        ids=[b"a", b"b"],
        forgotten=[Forgotten(1, b"a")],
    )
    decision = store.decide(more, RULES)
    assert (decision.inserted, decision.forgotten) == (1, 0)
    store.apply(decision, offset=store.offset + 1, documents=2)
    forget(store, [documents.ids[3]])
    for _ in range(2):
        assert not any(answer.matches for answer in store.reader().query(third, RULES))
        clock.now += 50
        for _ in range(COUNT // DOCUMENTS_A_PAGE):
            store.purge_if_due()
        store.close()
        store = BandStore(path, {"test": 1}, options=OPTIONS, clock=clock)
    store.close()


@pytest.mark.parametrize("reopened", [False, True])
def test_no_byte_is_left_in_time(tmp_path: Path, *, reopened: bool) -> None:
    clock = Clock()
    path = tmp_path / "s"
    store = BandStore(path, {"test": 1}, options=OPTIONS, clock=clock)
    documents = inserted(store)
    ids = [documents.ids[row] for row in GONE_ROWS]
    sketches = [documents.sketches[row].tobytes() for row in GONE_ROWS]
    forget(store, ids)
    store.flush()
    # A few bytes of a sketch may be like others, and be compressed.
    secrets = [*ids, *(sketch for sketch in sketches if in_files(path, sketch))]
    assert all(in_files(path, secret) for secret in secrets), "nothing to remove"
    assert len(secrets) > 1.8 * len(GONE_ROWS)
    clock.now = 49
    store.purge_if_due()
    assert in_files(path, secrets[0])
    if reopened:
        store.close()
        store = BandStore(path, {"test": 1}, options=OPTIONS, clock=clock)
    else:
        clock.now = 50
    store.purge_if_due()
    assert [secret for secret in secrets if in_files(path, secret)] == []
    assert in_files(path, documents.ids[0])
    store.purge_if_due()
    assert set(map(store.contents().record, GONE_ROWS)) == {None}
    forgotten = [Forgotten(0, ident) for ident in ids]
    again = store.decide(replace(random_documents(0, columns=range(3)), forgotten=forgotten), RULES)
    assert (again.known, again.forgotten) == ([], 0)
    store.close()
