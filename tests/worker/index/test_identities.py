"""Documents by id: how much is read to find those of an id that comes again all the time."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.worker.index.decisions import RULES, Document, batch
from worker.index.keyspace import PREVIOUS
from worker.index.spans import span
from worker.index.store import BandStore

COLUMNS = [0, 1]
VERSIONS = 40


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
        store.apply(decision, offset=offset, now=0, documents=1)
    assert decision.records, "the last version is no copy"
    assert store.identified([b"page"]) == {b"page": [store.inserted - 1]}
    assert list(span(store._db, PREVIOUS)) == []
    store.close()


def test_without_a_rule_all_documents_of_an_id_are_found(tmp_path: Path) -> None:
    store = BandStore(tmp_path / "s", {"test": 1})
    for number in range(5):
        document = Document(number + 1, number, 0, (number, number))
        document.id = b"page"
        decision = store.decide(batch([document], COLUMNS), RULES)
        store.apply(decision, offset=number + 1, now=0, documents=1)
    assert store.identified([b"page", b"none"]) == {b"page": [4, 3, 2, 1, 0]}
    store.close()
