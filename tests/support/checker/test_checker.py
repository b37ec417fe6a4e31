"""Each invariant finds the history that breaks it; a good one passes."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.support.checker import check, differences
from tests.support.checker import forgetting as forgotten
from tests.support.checker.examples import document, published, rejected
from tests.support.checker.history import (
    FrameRange,
    History,
    Sighting,
    Verdict,
    sightings,
    verdict_of,
    verdicts,
)
from worker.bus import Record

Doctor = Callable[[History], History]


A, B, C, D = (document(offset, ident) for offset, ident in enumerate("abcd"))
GONE = Record("documents", 0, 4, 5, b"a", None)

GOOD = History(
    [A, B, C, D, GONE],
    [published(A, 0, 10), published(C, 1, 1 << 16), GONE._replace(offset=2)],
    [published(B, 0, 11, "a"), GONE._replace(offset=1)],
    [rejected(D)._replace(offset=0)],
    frames=[FrameRange(0, 0, 0, 2), FrameRange(1, 0, 2, 5)],
)


def unique(*records: Record) -> Doctor:
    return lambda history: replace(history, unique=list(records))


def duplicate(*records: Record) -> Doctor:
    return lambda history: replace(history, duplicate=list(records))


def without(record: Record, name: str) -> Record:
    """Give a record without a header."""
    return record._replace(headers=tuple(one for one in record.headers if one[0] != name))


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
        (unique(published(A, 0, 10), published(C, 1, 1 << 16)), "tombstone"),
        (unique(*GOOD.unique, GONE), "2 times, not 1"),
        (unique(published(A._replace(key=b"x"), 0, 10), *GOOD.unique[1:]), "key, headers"),
        (unique(published(A._replace(headers=()), 0, 10), *GOOD.unique[1:]), "key, headers"),
        (unique(published(A._replace(timestamp=6), 0, 10), *GOOD.unique[1:]), "timestamp"),
        (unique(published(A._replace(value=b"{}"), 0, 10), *GOOD.unique[1:]), "the value is not"),
        (unique(GOOD.unique[1], GOOD.unique[0], GONE), "comes after"),
        (unique(published(A, 0, 10)._replace(partition=1), *GOOD.unique[1:]), "holds a document"),
        (unique(published(A, 0, 1 << 16), *GOOD.unique[1:]), "share a sequence number"),
        (unique(published(A, 0, 10, "c"), *GOOD.unique[1:]), "header says otherwise"),
        (duplicate(published(B, 0, 11), GONE), "has 0 matches"),
        (duplicate(published(B, 0, 11, "z"), GONE), "which is not published"),
        (duplicate(published(B, 0, 11, "d"), GONE), "which is not published"),
        (duplicate(published(B, 0, 11, "c"), GONE), "which is not before it"),
        (duplicate(published(B, 0, 11, "b"), GONE), "which is not before it"),
        (duplicate(without(published(B, 0, 11, "a"), "neardup-first"), GONE), "has None as its"),
        (duplicate(published(B, 0, 11, "a", first=("a", 9)), GONE), "not ('a', 10)"),
        (duplicate(published(B, 0, 11, "a", first=("b", 10)), GONE), "not ('a', 10)"),
        (duplicate(without(published(B, 0, 11, "a"), "neardup-matches"), GONE), "the value is not"),
    ],
)
def test_an_invariant_finds_what_breaks_it(doctor: Doctor, problem: str) -> None:
    assert any(problem in found for found in check(doctor(GOOD))), check(doctor(GOOD))


def audited(history: History) -> History:
    """Give the history with a reader's notes who saw all of it."""
    seen = {kind: sightings(getattr(history, kind)) for kind in ("unique", "duplicate", "rejected")}
    return replace(history, seen=seen)


def note(*sighted: Sighting) -> Doctor:
    return lambda history: replace(history, seen={**(history.seen or {}), "unique": list(sighted)})


FIRST, SECOND, THIRD = sightings(GOOD.unique)


def test_a_reader_who_saw_all_there_is_has_no_problem() -> None:
    assert check(audited(GOOD)) == []


@pytest.mark.parametrize(
    ("doctor", "problem"),
    [
        (note(FIRST, SECOND, THIRD, Sighting(0, 3, b"x")), "offset 3 was seen, and is gone"),
        (note(FIRST, Sighting(1, 0, b"x"), SECOND, THIRD), "unique[1] offset 0 was seen, and is"),
        (note(FIRST, SECOND._replace(digest=b"x"), THIRD), "offset 1 was seen, and reads otherw"),
        (note(FIRST, FIRST, SECOND, THIRD), "offset 0 was seen after offset 0"),
        (note(SECOND, FIRST, THIRD), "offset 0 was seen after offset 1"),
        (note(FIRST, SECOND), "offset 2 was never seen"),
    ],
)
def test_what_was_seen_and_is_not_so_is_found(doctor: Doctor, problem: str) -> None:
    found = check(doctor(audited(GOOD)))
    assert any(problem in one for one in found), found


def frames(*ranges: tuple[int, int, int, int]) -> Doctor:
    return lambda history: replace(history, frames=[FrameRange(*given) for given in ranges])


@pytest.mark.parametrize(
    ("doctor", "problem"),
    [
        (frames((0, 0, 0, 2), (1, 0, 3, 5)), "gap before frame 1: partition 0, 2 to 3"),
        (frames((0, 0, 0, 2), (1, 0, 1, 5)), "overlap before frame 1: partition 0, 2 to 1"),
        (frames((0, 0, 0, 2), (1, 0, 0, 5)), "overlap before frame 1"),
        (frames((0, 0, 0, 2), (1, 0, 2, 5), (2, 0, 2, 5)), "overlap before frame 2"),
        (frames((0, 0, 0, 2), (1, 0, 2, 5), (2, 0, 5, 5)), "frame 2 covers nothing"),
        (frames((0, 0, 0, 2), (1, 0, 2, 4)), "documents 0 to 4, and its frames cover [0, 4)"),
        (frames((0, 0, 1, 2), (1, 0, 2, 5)), "documents 0 to 4, and its frames cover [1, 5)"),
        (frames((0, 1, 0, 2), (1, 1, 2, 5)), "its frames cover [-1, -1)"),
        (frames((0, 0, 0, 3), (1, 0, 3, 5)), "(0, 2): its sequence number is of another frame"),
        (frames((0, 0, 0, 2), (7, 0, 2, 5)), "(0, 2): its sequence number is of another frame"),
        (frames((1, 0, 0, 2), (0, 0, 2, 5)), "its sequence number is of another frame"),
    ],
)
def test_frames_that_do_not_tile_the_documents_are_found(doctor: Doctor, problem: str) -> None:
    found = check(doctor(GOOD))
    assert any(problem in one for one in found), found


E, F = document(5, "e"), document(6, "f")


def forgetting(matched: str, *numbers: int) -> History:
    """Return a history in which F matches a document; its frames come in this order.

    The first has A to D and the tombstone of A, the second E, the third F, the fourth a document of
    another partition that is A once more.
    """
    again = A._replace(partition=1)
    spans = ((0, 0, 5), (0, 5, 6), (0, 6, 7), (1, 0, 1))
    ranges = [FrameRange(at, *span) for at, span in zip(numbers, spans, strict=True)]
    return replace(
        GOOD,
        inputs=[*GOOD.inputs, E, F, again],
        unique=[published(A, 0, numbers[0] << 16), published(E, 1, numbers[1] << 16)],
        duplicate=[published(F, 0, numbers[2] << 16, matched), _published_on_1(again, numbers[3])],
        frames=sorted(ranges),
    )


def _published_on_1(given: Record, number: int) -> Record:
    record = published(given, 0, number << 16)
    headers = [(n, b"documents-1-0" if n == "neardup-source" else v) for n, v in record.headers]
    return record._replace(headers=tuple(headers))


@pytest.mark.parametrize(
    ("history", "found"),
    [
        (forgetting("a", 0, 1, 2, 3), ["(0, 6) matches a, which was forgotten at (0, 4)"]),
        (forgetting("e", 0, 1, 2, 3), []),
        (forgetting("a", 0, 1, 3, 2), []),  # It came again, after its tombstone.
        (forgetting("a", 1, 2, 3, 0), ["(0, 6) matches a, which was forgotten at (1, 4)"]),
        (replace(forgetting("a", 0, 1, 2, 3), frames=None), []),
        (replace(forgetting("a", 0, 1, 2, 3), inputs=[A, B, C, D, E, F]), []),
    ],
)
def test_a_match_that_was_forgotten_is_found(history: History, found: list[str]) -> None:
    assert list(forgotten(history)) == found


def test_a_verdict_has_the_containments_of_its_matches_if_there_are_any() -> None:
    assert [verdict_of(record).containments for record in GOOD.duplicate[:1]] == [()]
    listed = b'[{"id":"a","similarity":0.9},{"id":"c","similarity":0.6,"containment":0.95}]'
    contained = replace_header(published(B, 0, 11, "a"), "neardup-matches", listed)
    assert verdict_of(contained).containments == (None, 0.95)


def replace_header(record: Record, name: str, value: bytes) -> Record:
    """Give a record with another value of a header."""
    return record._replace(headers=(*without(record, name).headers, (name, value)))


def test_other_verdicts_than_the_expected_are_found() -> None:
    published_ = verdicts(GOOD)
    assert differences(published_, dict(published_)) == []
    found = (("a", 0.9),)
    for other in (
        Verdict(11, ()),
        Verdict(9, found, ("a", 10)),
        Verdict(11, (("a", 0.91),), ("a", 10)),
        Verdict(11, found, ("a", 9)),
        Verdict(11, found, ("a", 10), (0.95,)),
    ):
        assert len(differences(published_, {**published_, (0, 1): other})) == 1
    assert len(differences(published_, {})) == 3
