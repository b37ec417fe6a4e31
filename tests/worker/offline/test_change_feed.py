"""Deletes of change feeds, through all stages: what they do, and what they don't stop."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

import pytest

from tests.support.breadth import slow
from tests.support.embedded import Run
from worker.bus import Outgoing, Record
from worker.stages.base import StageError

FIELDS = {"id_field": "payload.after.id", "text_fields": ["payload.after.text"]}
FORGETS = {**FIELDS, "deletes": "forget", "deleted_id_field": "payload.before.id"}


def row(number: int, text: str | None = None) -> dict[str, object]:
    return {"id": number, "text": text or f"Row {number * 7919} says that pier {number} is {text}."}


def created(number: int, text: str | None = None) -> bytes:
    return json.dumps({"payload": {"before": None, "after": row(number, text), "op": "c"}}).encode()


def deleted(number: int) -> bytes:
    return json.dumps({"payload": {"before": {"id": number}, "after": None, "op": "d"}}).encode()


def put(run: Run, values: Iterable[bytes | None], partition: int = 0) -> None:
    for number, value in enumerate(values):
        key = b'{"id":%d}' % number
        run.put(Outgoing(run.topology.documents, partition, key, value))


def reasons(records: Iterable[Record]) -> list[str]:
    named = (dict(record.headers)["neardup-error-reason"] or b"" for record in records)
    return [reason.decode() for reason in named]


def verdicts(run: Run) -> dict[int, tuple[str, list[str]]]:
    """Return the verdict on each row by its number, and the ids that it matches."""
    found = {}
    history = run.finish()
    for kind, records in (("unique", history.unique), ("duplicate", history.duplicate)):
        for record in records:
            headers = dict(record.headers)
            if "neardup-verdict" in headers:
                matches = json.loads(headers.get("neardup-matches") or b"[]")
                number = json.loads(record.value or b"")["payload"]["after"]["id"]
                found[number] = (kind, [match["id"] for match in matches])
    return found


def test_by_default_deletes_are_set_aside_and_stop_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run = Run(tmp_path, partitions=1, documents=FIELDS)
    put(run, [*map(created, range(50)), *(deleted(n % 50) for n in range(200))])
    history = run.finish()
    assert reasons(history.rejected) == ["null-text: 'payload.after' is null"] * 200
    assert len(history.unique) + len(history.duplicate) == 50
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


def test_a_few_odd_records_among_many_deletes_stop_nothing(tmp_path: Path) -> None:
    run = Run(tmp_path, partitions=1, documents=FIELDS)
    put(run, [*[b"{}"] * 20, *map(deleted, range(2_000))])
    history = run.finish()
    assert len(history.rejected) == 2_020


@pytest.mark.parametrize("documents", [FIELDS, FORGETS], ids=["reject", "forget"])
def test_a_field_that_no_document_has_stops_it_however_many_deletes_there_are(
    tmp_path: Path, documents: dict[str, object]
) -> None:
    """Tombstones after deletes, as Debezium writes them, hide it no more than these do."""
    wrong = {**documents, "text_fields": ["payload.after.body"]}
    run = Run(tmp_path, partitions=1, documents=wrong)
    deletes = (value for n in range(1_000) for value in (deleted(n % 50), None))
    put(run, [*map(created, range(50)), *deletes])
    with pytest.raises(StageError, match=r"^50 of the last 50 documents .* no-text \(50\)"):
        run.finish()


@pytest.mark.parametrize("shards", [1, slow(5)])
@pytest.mark.parametrize("batch", [2, 4_000])
@pytest.mark.parametrize("how", [None, "restart", "crash"])
def test_a_delete_is_forgotten_and_passed_on_where_it_is(
    tmp_path: Path, shards: int, batch: int, how: Literal["restart", "crash"] | None
) -> None:
    run = Run(tmp_path, partitions=1, shards=shards, batch=batch, documents=FORGETS)
    text = "The harbour master of pier 39595 counted 56 ferries on the 5th morning of the month."
    put(run, [created(1, text), created(2, text), deleted(1), deleted(2)])
    if how is not None:
        run.finish()
        getattr(run, how)()
    put(run, [created(3, text), created(4, text), created(1, text), deleted(7), created(5)])
    assert verdicts(run) == {
        1: ("duplicate", ["3"]),
        2: ("duplicate", ["1"]),
        3: ("unique", []),
        4: ("duplicate", ["3"]),
        5: ("unique", []),
    }
    history = run.finish()
    assert not history.rejected
    sent = {record.offset: record for record in run.inputs}
    for records in (history.unique, history.duplicate):
        passed = [record for record in records if not record.headers]
        assert [record.value for record in passed] == [deleted(1), deleted(2), deleted(7)]
        assert [record.key for record in passed] == [sent[n].key for n in (2, 3, 7)]
    places = [json.loads(record.value or b"")["payload"]["op"] for record in history.unique]
    assert places == ["c", "d", "d", "c", "d", "c"]


def test_a_delete_that_names_no_document_is_set_aside(tmp_path: Path) -> None:
    run = Run(tmp_path, partitions=1, documents=FORGETS)
    truncated = json.dumps({"payload": {"before": None, "after": None, "op": "t"}}).encode()
    run.put(Outgoing(run.topology.documents, 0, None, truncated))
    run.put(Outgoing(run.topology.documents, 0, None, created(1)))
    history = run.finish()
    (reason,) = reasons(history.rejected)
    assert reason == (
        "no-id: 'payload.after' is null, and it names no document: it has no field"
        " 'payload.before.id' and no key"
    )
    assert len(history.unique) == 1
