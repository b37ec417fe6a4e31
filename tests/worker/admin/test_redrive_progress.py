import pytest
from hypothesis import given
from hypothesis import strategies as st

from worker.admin.redrive.progress import (
    Progress,
    ProgressError,
    Refusal,
    key_of,
    place_of,
    topic_of,
)

CODES = ("a", "b", "c")


@given(
    records=st.lists(st.sampled_from(CODES), max_size=30),
    runs=st.lists(
        st.tuples(st.sets(st.sampled_from(CODES)), st.integers(0, 30), st.integers(0, 30)),
        max_size=8,
    ),
)
def test_each_record_is_sent_once_whatever_is_asked_for_when(
    records: list[str], runs: list[tuple[set[str], int, int]]
) -> None:
    sent = [0] * len(records)
    kept = Progress(0).dump("t")
    for reasons, end, stop in [*runs, (set[str](), 30, 30)]:
        at = Progress.load(kept)
        for place in range(at.start(reasons), min(end, stop, len(records))):
            if at.is_due(place, records[place]) and (not reasons or records[place] in reasons):
                sent[place] += 1
            at.passed(place + 1, reasons)
        kept = at.dump("t")
    assert sent == [1] * len(records)


def test_what_kills_workers_stays_due_for_who_names_it() -> None:
    at = Progress(5)
    for offset, reason in enumerate(["poison", "a", "poison", "a"], 5):
        at.leave(offset, reason)
        at.passed(offset + 1, ())
    at = Progress.load(at.dump("t"))
    assert at == Progress(9, {"poison": 5})
    assert at.start(()) == at.start(("a",)) == 9
    assert at.start(("poison",)) == 5
    assert at.is_due(7, "poison")
    assert not at.is_due(6, "a")
    at.passed(8, ("poison",))
    assert not at.is_due(7, "poison")


def test_a_refused_record_is_due_again_for_who_asks_for_it() -> None:
    refusal = Refusal("too-large", "MSG_SIZE_TOO_LARGE", 12, "d[0]@3")
    assert Refusal.load(refusal.dump()) == refusal
    at = Progress(10, {"no-text": 20}, {4: refusal})
    assert at.start(()) == at.start(("too-large",)) == 4
    assert at.start(("no-text",)) == 20
    assert at.is_due(4, "too-large")
    assert not at.is_due(5, "too-large")
    copy = at.copy()
    copy.passed(30, ())
    del copy.refused[4]
    assert at == Progress(10, {"no-text": 20}, {4: refusal})


def test_a_key_names_a_partition_or_a_record_of_it() -> None:
    assert place_of(key_of("a/b+", 3)) == ("a/b+", 3, None)
    assert place_of(key_of("a/b+", 3, 0)) == ("a/b+", 3, 0)
    assert topic_of(Progress(1).dump("a.rejected")) == "a.rejected"


@pytest.mark.parametrize("key", [None, b"", b"id", b"id:x", b"id:1:2:3", b"\xff:1"])
def test_another_key_is_refused(key: bytes | None) -> None:
    with pytest.raises(ProgressError, match="its key is"):
        place_of(key)


@pytest.mark.parametrize(
    "value", [b"", b"[]", b"7", b'{"version":2}', b'{"base":1}', b'{"version":1,"base":1}']
)
def test_another_value_is_refused(value: bytes) -> None:
    with pytest.raises(ProgressError, match="it"):
        Progress.load(value)
    with pytest.raises(ProgressError, match="it"):
        Refusal.load(value)
