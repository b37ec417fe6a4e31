"""Each invariant finds the history that breaks it; a good one passes."""

import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.integration.checker import History, Verdict, check, differences, verdicts
from worker.bus.port import Record

Doctor = Callable[[History], History]


def document(offset: int, ident: str) -> Record:
    value = json.dumps({"id": ident, "text": "t"}).encode()
    return Record("documents", 0, offset, 5, ident.encode(), value, (("own", b"\xff"),))


def published(given: Record, offset: int, sequence: int, *matches: str) -> Record:
    kind = "duplicate" if matches else "unique"
    own: list[tuple[str, bytes | None]] = [
        ("neardup-verdict", kind.encode()),
        ("neardup-sequence", b"%d" % sequence),
        ("neardup-source", b"documents-0-%d" % given.offset),
    ]
    value = given.value
    if matches:
        listed = json.dumps(
            [{"id": ident, "similarity": 0.9} for ident in matches], separators=(",", ":")
        ).encode()
        own.append(("neardup-matches", listed))
        assert value is not None
        value = value[:-1] + b',"duplicate_of":' + listed + b"}"
    return given._replace(topic=kind, offset=offset, value=value, headers=(*given.headers, *own))


def rejected(given: Record) -> Record:
    why = (("neardup-error-partition", b"0"), ("neardup-error-offset", b"%d" % given.offset))
    return given._replace(topic="rejected", headers=(*given.headers, *why))


A, B, C, D = (document(offset, ident) for offset, ident in enumerate("abcd"))
GONE = Record("documents", 0, 4, 5, b"a", None)

GOOD = History(
    [A, B, C, D, GONE],
    [published(A, 0, 10), published(C, 2, 12), GONE],
    [published(B, 0, 11, "a"), GONE],
    [rejected(D)],
)


def unique(*records: Record) -> Doctor:
    return lambda history: replace(history, unique=list(records))


def duplicate(*records: Record) -> Doctor:
    return lambda history: replace(history, duplicate=list(records))


def test_a_good_history_has_no_problems() -> None:
    assert check(GOOD) == []


@pytest.mark.parametrize(
    ("doctor", "problem"),
    [
        (unique(published(A, 0, 10), GONE), "(0, 2) is on no output"),
        (unique(*GOOD.unique, published(C, 9, 12)), "is on ['unique', 'unique']"),
        (unique(*GOOD.unique, published(B, 9, 13)), "is on ['unique', 'duplicate']"),
        (unique(*GOOD.unique, rejected(C)), "is on ['unique', 'unique']"),
        (unique(*GOOD.unique, published(document(9, "z"), 9, 13)), "never written"),
        (unique(published(A, 0, 10), published(C, 2, 12)), "tombstone"),
        (unique(*GOOD.unique, GONE), "2 times, not 1"),
        (unique(published(A._replace(key=b"x"), 0, 10), *GOOD.unique[1:]), "key, headers"),
        (unique(published(A._replace(headers=()), 0, 10), *GOOD.unique[1:]), "key, headers"),
        (unique(published(A._replace(timestamp=6), 0, 10), *GOOD.unique[1:]), "timestamp"),
        (unique(published(A._replace(value=b"{}"), 0, 10), *GOOD.unique[1:]), "the value is not"),
        (unique(GOOD.unique[1], GOOD.unique[0], GONE), "comes after"),
        (unique(published(A, 0, 10)._replace(partition=1), *GOOD.unique[1:]), "holds a document"),
        (unique(published(A, 0, 12), *GOOD.unique[1:]), "share a sequence number"),
        (unique(published(A, 0, 10, "c"), *GOOD.unique[1:]), "header says otherwise"),
        (duplicate(published(B, 0, 11), GONE), "has 0 matches"),
        (duplicate(published(B, 0, 11, "z"), GONE), "which is not published"),
        (duplicate(published(B, 0, 11, "d"), GONE), "which is not published"),
        (duplicate(published(B, 0, 11, "c"), GONE), "which is not before it"),
        (duplicate(published(B, 0, 11, "b"), GONE), "which is not before it"),
    ],
)
def test_an_invariant_finds_what_breaks_it(doctor: Doctor, problem: str) -> None:
    assert any(problem in found for found in check(doctor(GOOD))), check(doctor(GOOD))


def test_other_verdicts_than_the_expected_are_found() -> None:
    published_ = verdicts(GOOD)
    assert differences(published_, dict(published_)) == []
    for other in (Verdict(11, ()), Verdict(9, (("a", 0.9),)), Verdict(11, (("a", 0.91),))):
        assert len(differences(published_, {**published_, (0, 1): other})) == 1
    assert len(differences(published_, {})) == 3
