"""`redrive` on the in-process log: each rejected document once, however a transaction ends."""

from collections import Counter
from collections.abc import Callable

import pytest

from tests.support.brokers import Brokers
from worker.admin.redrive.run import Counts, redrive
from worker.bus import Aborted, Fenced, Header, OutcomeUnknown, Outgoing
from worker.bus.memory.transaction import Step
from worker.settings.loading import load
from worker.wire.headers import REASON, REDRIVEN, SOURCE_OFFSET, SOURCE_PARTITION, SOURCE_TOPIC

TOPOLOGY = load(overrides={"app": "a"}).topology(2)
STEPS: tuple[Step, ...] = ("begin", "produce", "commit", "committed")
VALUES = [b"%d" % number for number in range(450)]
"""More than two batches."""


class Crash(Exception):
    """Whoever was called never comes back."""


def made(max_bytes: int | None = None) -> Brokers:
    bus = Brokers()
    bus.create_topic(TOPOLOGY.documents, 2, max_bytes=max_bytes)
    bus.create_topic(TOPOLOGY.rejected, 2)
    bus.create_topic(TOPOLOGY.redrive, 1)
    return bus


def reject(
    bus: Brokers, values: list[bytes], reason: str = "no-text", more: tuple[Header, ...] = ()
) -> None:
    for number, value in enumerate(values):
        headers = (
            (REASON, f"{reason}: why".encode()),
            (SOURCE_TOPIC, TOPOLOGY.documents.encode()),
            (SOURCE_PARTITION, b"%d" % (number % 2)),
            (SOURCE_OFFSET, b"%d" % number),
        )
        bus.append(Outgoing(TOPOLOGY.rejected, number % 2, None, value, (*headers, *more)))


def sent(bus: Brokers) -> Counter[bytes | None]:
    return Counter(
        record.value
        for number in range(2)
        for record in bus.read(TOPOLOGY.documents, number, 0, 10_000)
    )


def once(values: list[bytes]) -> Counter[bytes | None]:
    return Counter(dict.fromkeys(values, 1))


def failing(step: Step, time: int, error: Exception | Callable[[], object]) -> Callable[..., None]:
    """Return a hook that fails when a step is taken for the n-th time, and only then."""
    seen = 0

    def hook(at: Step, group: str, name: str) -> None:
        del group, name
        nonlocal seen
        seen += at == step
        if at == step and seen == time:
            seen += 1
            if isinstance(error, Exception):
                raise error
            error()

    return hook


def run(bus: Brokers, *reasons: str, limit: int | None = None) -> Counts:
    counts = Counts()
    redrive(bus, TOPOLOGY, counts, reasons=reasons, limit=limit)
    return counts


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("time", [1, 2, 3])
def test_a_run_that_dies_anywhere_is_gone_on_with(step: Step, time: int) -> None:
    bus = made()
    reject(bus, VALUES)
    bus.faults = failing(step, time, Crash())
    with pytest.raises(Crash):
        run(bus)
    before = sent(bus).total()
    counts = run(bus)
    assert counts.sent.total() + before == len(VALUES)
    assert sent(bus) == once(VALUES)
    assert run(bus).sent.total() == 0


ENDS = [(step, error) for step in STEPS[:-1] for error in (Aborted("x"), OutcomeUnknown("x"))]


@pytest.mark.parametrize(("step", "error"), [*ENDS, ("committed", OutcomeUnknown("x"))])
@pytest.mark.parametrize("time", [1, 2])
def test_whatever_a_transaction_ends_in_the_run_goes_on(
    step: Step, error: Exception, time: int
) -> None:
    bus = made()
    reject(bus, VALUES)
    bus.faults = failing(step, time, error)
    counts = run(bus)
    assert counts.sent == {"no-text": len(VALUES)}
    assert counts.unknown == 0
    assert sent(bus) == once(VALUES)


@pytest.mark.parametrize("step", STEPS[:-1])
def test_who_began_before_another_sends_no_more(step: Step) -> None:
    bus = made()
    reject(bus, VALUES)
    bus.faults = failing(step, 2, lambda: run(bus))
    with pytest.raises(Fenced):
        run(bus)
    assert sent(bus) == once(VALUES)


def test_who_lost_the_name_for_a_while_does_not_send_again() -> None:
    """Both the older and the newer run ended in doubt, and the older one has the name again."""
    bus = made()
    reject(bus, VALUES)

    def other() -> None:
        run(bus)
        raise OutcomeUnknown("x")

    bus.faults = failing("begin", 2, other)
    counts = Counts()
    with pytest.raises(Fenced, match="another run has written"):
        redrive(bus, TOPOLOGY, counts)
    assert counts.unknown > 0
    assert sent(bus) == once(VALUES)


def test_what_the_documents_refuse_is_noted_and_left() -> None:
    bus = made(max_bytes=100)
    values = [b"%d" % number for number in range(20)]
    reject(bus, [*values[:7], b"x" * 200, *values[7:], b"y" * 300])
    counts = run(bus)
    assert [one.error for one in counts.refused] == ["MSG_SIZE_TOO_LARGE"] * 2
    assert sent(bus) == once(values)
    assert len(run(bus).refused) == 2
    assert sent(bus) == once(values)


def test_reasons_and_limits_leave_the_rest_for_later() -> None:
    bus = made()
    reject(bus, VALUES[:100])
    reject(bus, VALUES[100:200], "too-large")
    first = run(bus, "too-large", limit=30)
    assert first.sent == {"too-large": 30}
    assert run(bus, "too-large").sent == {"too-large": 70}
    assert run(bus).sent == {"no-text": 100}
    assert sent(bus) == once(VALUES[:200])


def test_what_retention_took_is_told() -> None:
    bus = made()
    reject(bus, VALUES[:10])
    bus.trim(TOPOLOGY.rejected, 0, 2)
    counts = run(bus)
    assert counts.deleted == []  # Nobody had begun: what is there is all there was.
    reject(bus, VALUES[10:30])
    bus.trim(TOPOLOGY.rejected, 1, 9)
    assert run(bus).deleted == [f"{TOPOLOGY.rejected}[1] lost offsets 5 to 8 unsent"]


def test_what_retention_takes_from_under_a_run_is_told() -> None:
    bus = made()
    reject(bus, VALUES)
    bus.faults = failing("begin", 1, lambda: bus.trim(TOPOLOGY.rejected, 1, 220))
    [told] = run(bus).deleted
    assert told.startswith(f"{TOPOLOGY.rejected}[1] lost offsets ")
    assert told.endswith(" to 219 unsent")
    assert set(sent(bus).values()) == {1}
    assert sent(bus).keys() >= set(VALUES[::2])


@pytest.mark.parametrize("more", [4, 60])
def test_what_took_the_place_of_what_was_sent_is_sent(more: int) -> None:
    """The rejected topic has lost its end, and grown again: less far, or further than before."""
    bus = made()
    reject(bus, VALUES[:40])
    assert run(bus).sent.total() == 40
    bus.cut(TOPOLOGY.rejected, 1, 10)
    reject(bus, VALUES[100 : 100 + more])
    counts = run(bus)
    place = f"{TOPOLOGY.rejected}[1]"
    assert counts.deleted == [
        f"{place} has lost its end from offset 10 on; what is there now is sent"
    ]
    reject(bus, VALUES[200:240])
    assert run(bus).deleted == []
    assert sent(bus) == once(VALUES[:40] + VALUES[100 : 100 + more] + VALUES[200:240])


BAD_NUMBERS = [b"9" * 5_000, b"no number", b"\xff", b"-1", b"", None]


@pytest.mark.parametrize("bad", BAD_NUMBERS)
@pytest.mark.parametrize("name", [SOURCE_PARTITION, SOURCE_OFFSET])
def test_a_record_with_bad_headers_is_not_ours(name: str, bad: bytes | None) -> None:
    bus = made()
    reject(bus, [b"theirs"], more=((name, bad),))
    reject(bus, [b"ours"])
    counts = run(bus)
    assert (counts.sent, counts.foreign) == ({"no-text": 1}, 1)
    assert sent(bus) == once([b"ours"])
    assert run(bus).foreign == 0  # It was counted, and stays where it is.


@pytest.mark.parametrize("reason", ["", "x" * 65, "a\x1bb"])
def test_a_record_without_a_reason_is_not_ours(reason: str) -> None:
    bus = made()
    reject(bus, [b"theirs"], reason)
    assert run(bus, reason).foreign == 1
    bus.append(Outgoing(TOPOLOGY.rejected, 0, None, b"bare"))
    assert run(bus).foreign == 2
    assert not sent(bus)


@pytest.mark.parametrize("bad", BAD_NUMBERS)
def test_a_bad_count_holds_nothing_back(bad: bytes | None) -> None:
    bus = made()
    reject(bus, [b"a"], more=((REDRIVEN, bad),))
    assert run(bus).sent == {"no-text": 1}
    [record] = bus.read(TOPOLOGY.documents, 0, 0, 1)
    assert record.headers == ((REDRIVEN, b"1"),)


def test_documents_that_killed_workers_are_only_sent_by_name() -> None:
    bus = made()
    reject(bus, VALUES[:4])
    reject(bus, VALUES[4:8], "poison")
    reject(bus, VALUES[8:12])
    counts = run(bus)
    assert (counts.sent, counts.left) == ({"no-text": 8}, {"poison": 4})
    assert run(bus, limit=1).sent == {}
    assert run(bus, "no-text").sent == {}
    assert run(bus, "poison", limit=3).sent == {"poison": 3}
    assert run(bus, "poison").sent == {"poison": 1}
    reject(bus, VALUES[12:14], "poison")
    assert run(bus).left == {"poison": 2}
    assert run(bus, "poison", "no-text").sent == {"poison": 2}
    assert run(bus, "poison").sent == {}
    assert sent(bus) == once(VALUES[:14])
