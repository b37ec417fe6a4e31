"""Documents by id: how much is kept for ids that come again, and that all are found."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from tests.support.filling import random_documents
from tests.worker.index.decisions import RULES, WINDOW, Document, batch
from worker.index.keyspace import ID_LISTS
from worker.index.rocksdb import StoreOptions, span
from worker.index.store import BandStore
from worker.index.store_reader import matches_of

COLUMNS = [0, 1]
VERSIONS = 40


def forgotten(store: BandStore, ident: bytes) -> int:
    """Return how many documents would be forgotten with an id."""
    return store.decide(batch([ident], COLUMNS), RULES).forgotten


def test_an_id_that_is_replaced_again_and_again_has_a_short_chain(tmp_path: Path) -> None:
    """Every other version is a copy of another document, so it has no record of its own."""
    rules = replace(RULES, same_id="replace")
    store = BandStore(tmp_path / "s", {"test": 1})
    other = Document(1, 0, 0, (0, 0))
    documents = [Document(n, n % 2 * n, 0, (n % 2 * n, 0)) for n in range(2, VERSIONS)]
    for document in documents:
        document.id = b"page"
    for offset, document in enumerate([other, *documents], 1):
        decision = store.decide(batch([document], COLUMNS), rules)
        store.apply(decision, offset=offset, documents=1)
    assert decision.inserted, "the last version is no copy"
    assert forgotten(store, b"page") == 1
    assert list(span(store.db, ID_LISTS)) == []
    store.close()


def test_without_a_rule_all_documents_of_an_id_are_found(tmp_path: Path) -> None:
    store = BandStore(tmp_path / "s", {"test": 1})
    for number in range(5):
        document = Document(number + 1, number, 0, (number, number))
        document.id = b"page"
        decision = store.decide(batch([document], COLUMNS), RULES)
        store.apply(decision, offset=number + 1, documents=1)
    assert (forgotten(store, b"page"), forgotten(store, b"none")) == (5, 0)
    store.close()


def test_what_verdicts_name_is_kept_once_an_era(tmp_path: Path) -> None:
    """So that it is there as long as they are, and can be forgotten in all of them."""
    rules = replace(RULES, window_ms=WINDOW, same_id="ignore")
    options = StoreOptions(run_documents=3, window_ms=WINDOW, erasure_seconds=60)
    clock = iter(range(0, 1_000_000, 100))
    store = BandStore(tmp_path / "s", {"test": 1}, options=options, clock=lambda: next(clock))
    first = Document(0, 0, 0, (0, 0), 0)
    first.id = b"the first of all"
    later = [Document(n, 0, 4, (0, n), 50 + n // 10) for n in range(1, 20)]
    for offset, document in enumerate([first, *later], 1):
        decision = store.decide(batch([document], COLUMNS), rules)
        store.apply(decision, offset=offset, documents=1)
    assert store.parts().time_slices > 1
    gone = store.decide(batch([first.id], COLUMNS), rules)
    assert (gone.known, gone.forgotten) == ([first.id], 2)
    store.flush()
    assert in_files(tmp_path, first.id)
    store.apply(gone, offset=store.offset + 1, documents=0)
    while store.purge.due:
        store.purge_if_due()
    assert not in_files(tmp_path, first.id)
    last = store.decide(batch([later[-1]], COLUMNS), rules)
    assert first.sequence in {
        match.sequence for match in matches_of(last.matches)[0] if not match.id
    }
    store.close()


def in_files(path: Path, needle: bytes) -> bool:
    return any(needle in file.read_bytes() for file in path.rglob("*") if file.is_file())


def test_an_index_begins_with_all_its_columns(tmp_path: Path) -> None:
    """Its first documents may leave no bucket, or none in a column."""
    rules = replace(RULES, same_id="ignore")
    first, copy = (Document(number, 0, 0, (0, 0)) for number in (1, 2))
    for name, column in (("none", 0), ("one", 1)):
        copy.keys = (0, column)
        store = BandStore(tmp_path / name, {"test": 1})
        decision = store.decide(batch([first, copy, first.id], COLUMNS), rules)
        assert decision.inserted == 1
        store.apply(decision, offset=1, documents=2)
        again = store.decide(batch([copy, Document(3, 0, 0, (0, 1))], COLUMNS), rules)
        assert again.repeated == 1
        store.apply(again, offset=2, documents=2)
        assert store.inserted == 2
        store.close()


def test_a_copy_takes_the_space_of_its_id_and_a_match(tmp_path: Path) -> None:
    rules = replace(RULES, same_id="ignore")
    chance, copies = np.random.default_rng(1), 4_000
    store = BandStore(tmp_path / "s", {"test": 1})
    one = random_documents(1, columns=range(19))
    all_alike = replace(
        one,
        sequences=np.arange(copies, dtype=np.uint64),
        times=np.zeros(copies, np.int64),
        ids=[chance.bytes(12) for _ in range(copies)],
        shingles=np.ones(copies, np.uint32),
        keys=np.repeat(one.keys, copies, 1),
        sketches=np.repeat(one.sketches, copies, 0),
    )
    decision = store.decide(all_alike, rules)
    store.apply(decision, offset=1, documents=copies)
    store.flush()
    store.db.compact_range(None, None)  # Nothing is packed before.
    assert store.inserted == copies
    assert store.size_bytes() < 60 * copies
    store.close()
