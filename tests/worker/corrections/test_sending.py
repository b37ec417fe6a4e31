"""Tombstones on the in-process log: sent whatever happens, and judged when every shard is past."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import count
from pathlib import Path

import pytest

from tests.support.embedded import Run
from worker.bus import Aborted, BusError, OutcomeUnknown, Outgoing, Refused, TopicPartition
from worker.bus.memory.bus import MemoryBus
from worker.bus.memory.transaction import Step
from worker.corrections.request import Forget
from worker.corrections.sending import Behind, Judging, record_of, send
from worker.formats.keys import Keys
from worker.settings.loading import load

TOPOLOGY = load(overrides={"app": "a"}).topology(2)
STEPS: tuple[Step, ...] = ("begin", "produce", "commit")
IDS = [b"one", b"two", b"three", b"four"]


@pytest.fixture
def bus() -> MemoryBus:
    bus = MemoryBus()
    bus.create_topic(TOPOLOGY.documents, 2)
    return bus


def erasures(ids: Iterable[bytes]) -> list[Outgoing]:
    return [record_of(Forget(ident.decode()), TOPOLOGY, Keys()) for ident in ids]


def tombstones(bus: MemoryBus) -> dict[TopicPartition, list[tuple[bytes | None, int]]]:
    """Return the key and the offset of each record that has no value."""
    return {
        TopicPartition(TOPOLOGY.documents, number): [
            (record.key, record.offset)
            for record in bus.read(TOPOLOGY.documents, number, 0, 100)
            if record.value is None
        ]
        for number in range(2)
    }


def failing(step: Step, error: Exception | Callable[[], object]) -> Callable[..., None]:
    """Return a hook that fails when a step is taken for the first time."""
    seen = count()

    def hook(at: Step, group: str, name: str) -> None:
        del group, name
        if at == step and next(seen) == 0:
            if isinstance(error, Exception):
                raise error
            error()

    return hook


def test_a_tombstone_is_where_a_document_with_that_key_is(bus: MemoryBus) -> None:
    for ident in IDS:
        bus.append(Outgoing(TOPOLOGY.documents, None, ident, b"value"))
    documents = {
        record.key: number
        for number in range(2)
        for record in bus.read(TOPOLOGY.documents, number, 0, 100)
    }
    assert set(documents.values()) == {0, 1}
    sent = send(bus, TOPOLOGY, erasures(IDS))
    found = tombstones(bus)
    assert {key: place.partition for place, keys in found.items() for key, _ in keys} == documents
    assert sent == {place: keys[-1][1] for place, keys in found.items()}


@pytest.mark.parametrize(
    ("step", "error"),
    [
        *((step, Aborted("x")) for step in STEPS),
        *((step, OutcomeUnknown("x")) for step in (*STEPS, "committed")),
    ],
)
def test_a_transaction_that_fails_is_repeated(bus: MemoryBus, step: Step, error: Exception) -> None:
    bus.faults = failing(step, error)
    sent = send(bus, TOPOLOGY, erasures(IDS))
    found = tombstones(bus)
    assert {key for keys in found.values() for key, _ in keys} == set(IDS)
    assert sent == {place: keys[-1][1] for place, keys in found.items()}


@pytest.mark.parametrize("step", STEPS)
def test_runs_at_the_same_time_do_not_stop_each_other(bus: MemoryBus, step: Step) -> None:
    bus.faults = failing(step, lambda: send(bus, TOPOLOGY, erasures([b"other"])))
    send(bus, TOPOLOGY, erasures(IDS))
    found = [key for keys in tombstones(bus).values() for key, _ in keys]
    assert sorted(found, key=str) == sorted([*IDS, b"other"], key=str)


def test_it_gives_up_with_the_reason(bus: MemoryBus) -> None:
    def fails(at: Step, group: str, name: str) -> None:
        del group, name
        if at == "commit":
            raise Aborted("the coordinator is away")

    bus.faults = fails
    ticks = count(step=25)
    with pytest.raises(BusError, match="nothing could be sent within 60 s: the coordinator"):
        send(bus, TOPOLOGY, erasures(IDS), clock=lambda: next(ticks))
    assert not any(tombstones(bus).values())


def test_what_the_topic_refuses_is_an_error() -> None:
    bus = MemoryBus()
    bus.create_topic(TOPOLOGY.documents, 2, max_bytes=2)
    with pytest.raises(Refused):
        send(bus, TOPOLOGY, erasures(IDS))


def test_it_is_judged_when_the_slowest_shard_has_answered(tmp_path: Path) -> None:
    run = Run(tmp_path, partitions=1, shards=2)
    run.feed([("a", "a text that is long enough to be told from others")])
    run.embedded.run_until_idle()
    sent = send(run.bus, run.topology, [record_of(Forget("a"), run.topology, Keys())])
    place = TopicPartition(run.topology.documents, 0)
    waiting = Behind(place, 1, 1)
    with Judging(run.bus, run.topology) as judging:
        assert judging.behind(sent) == waiting
        fingerprint, index, route = run.embedded.loops
        fingerprint.step(0.0)
        route.step(0.0)
        assert judging.behind(sent) == waiting
        index.step(0.0)
        assert judging.behind(sent) == waiting
        run.embedded.run_until_idle()
        assert judging.behind(sent) is None


def test_without_an_application_there_is_nothing_to_wait_for(bus: MemoryBus) -> None:
    sent = send(bus, TOPOLOGY, erasures(IDS))
    with (
        Judging(bus, TOPOLOGY) as judging,
        pytest.raises(BusError, match="see `neardup topics verify`"),
    ):
        judging.behind(sent)
