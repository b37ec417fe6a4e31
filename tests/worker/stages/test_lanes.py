"""What waits in a lane, what it costs, and who is held back."""

from __future__ import annotations

import sys
from itertools import pairwise
from random import Random

import pytest

from tests.support.breadth import thinned
from tests.support.stages import DOCS, document, process, route, whole_log
from tests.worker.stages.lane_answers import FRAME, answer
from worker.bus import Record, RecordBatch, TopicPartition
from worker.metrics import table
from worker.metrics.metrics import Metrics
from worker.stages.budget import batch_cost, record_cost, row_costs
from worker.stages.route import Route

SHARDS = 3
MATCHES = [TopicPartition(f"app.matches-{shard}", 0) for shard in range(SHARDS)]
INPUTS = [DOCS, *MATCHES]
BUDGET = 200_000


def test_what_waits_is_reported() -> None:
    metrics = Metrics()
    now = 0.0
    stage = route(SHARDS, BUDGET, clock=lambda: now, metrics=metrics)
    stage.adopt(dict.fromkeys(INPUTS, 0), whole_log)
    now = 1.0
    process(stage, [])
    assert metrics.value(table.MEMORY_BYTES, "lanes") == 0
    now = 2.0
    process(stage, [document(0), document(1)])
    (batch,) = RecordBatch.of([document(0), document(1)])
    waits = batch_cost(batch)
    assert metrics.value(table.MEMORY_BYTES, "lanes") == waits


def adopted() -> Route:
    stage = route(SHARDS, BUDGET)
    stage.adopt(dict.fromkeys(INPUTS, 0), whole_log)
    return stage


class Inputs:
    """Endless inputs, each delivered as long as it is not held back."""

    def __init__(self, matches: int = 8, *, tombstones: bool = False) -> None:
        self.stage = adopted()
        self.held: frozenset[TopicPartition] = frozenset()
        self._next = dict.fromkeys(INPUTS, 0)
        self._matches = matches
        self._tombstones = tombstones
        self.published = 0
        self.most = 0

    def deliver(self, place: TopicPartition) -> bool:
        """Deliver a little, if it is wanted."""
        if place in self.held:
            return False
        number = self._next[place]
        self._next[place] += 1
        if place == DOCS:
            records = [document(offset) for offset in range(number * FRAME, (number + 1) * FRAME)]
            if self._tombstones:
                records = [record._replace(value=None, key=b"k") for record in records]
        else:
            records = [answer(MATCHES.index(place), number, self._matches)]
        burst = process(self.stage, records)
        self.held = burst.held
        self.published = burst.offsets.get(DOCS, self.published)
        self.most = max(self.most, self.stage.waiting_bytes)
        return True


@pytest.mark.parametrize("absent", INPUTS)
@pytest.mark.parametrize("tombstones", [False, True])
def test_an_absent_input_costs_no_more_than_the_budget(
    absent: TopicPartition, *, tombstones: bool
) -> None:
    inputs = Inputs(tombstones=tombstones)
    others = [place for place in INPUTS if place != absent]
    delivered = 0
    while sum(map(inputs.deliver, others)):
        delivered += 1
        assert delivered < 10_000
    assert delivered > 10
    assert inputs.published == 0
    assert inputs.most < BUDGET * 1.1
    # It comes back, and is never held; the others follow.
    for _ in range(delivered):
        assert inputs.deliver(absent)
    assert inputs.published > 0


@pytest.mark.parametrize("seed", thinned(range(10), 4))
def test_in_any_order_of_arrival_something_is_always_wanted(seed: int) -> None:
    random = Random(seed)
    inputs = Inputs(random.choice([0, 8, 64]))
    weights = [random.random() ** 3 + 0.01 for _ in INPUTS]
    for _ in range(600):
        place = random.choices(INPUTS, weights)[0]
        if not inputs.deliver(place):
            assert any(inputs.deliver(other) for other in INPUTS)
    assert inputs.published > 0
    assert inputs.most < BUDGET * 1.5


def test_what_is_held_back_stays_so_for_a_while() -> None:
    inputs = Inputs()
    while inputs.deliver(DOCS):
        pass
    costs = []
    while DOCS in inputs.held:
        costs.append(inputs.stage.waiting_bytes)
        for place in MATCHES:
            inputs.deliver(place)
    assert len(costs) > 5
    assert costs[-1] < costs[0] / 2


def test_nothing_is_left_on_the_account() -> None:
    inputs = Inputs()
    for _ in range(20):
        for place in INPUTS:
            inputs.deliver(place)
    assert inputs.published == 200
    assert inputs.stage.waiting_bytes == 0


@pytest.mark.parametrize(
    "record",
    [
        document(1),
        document(1)._replace(value=None, key=b"k" * 20),
        document(1)._replace(headers=(("a", b"b" * 100), ("c", None))),
    ],
)
def test_a_record_is_charged_what_python_takes(record: Record) -> None:
    objects: list[object] = [record, record.offset, record.timestamp, record.topic]
    objects += [part for part in (record.key, record.value) if part is not None]
    if record.headers:
        objects += [record.headers, *record.headers]
        objects += [part for header in record.headers for part in header if part is not None]
    collected = 16 * sum(isinstance(one, tuple) for one in objects)
    taken = sum(map(sys.getsizeof, objects)) + collected
    assert taken < record_cost(record) < 2 * taken


@pytest.mark.parametrize("count", [1, 2, 10, 1_000])
@pytest.mark.parametrize(
    "record",
    [
        document(1),
        document(1)._replace(value=None, key=b"k" * 20),
        document(1)._replace(headers=(("a", b"b" * 100), ("c", None))),
    ],
)
def test_a_batch_is_charged_what_python_takes(record: Record, count: int) -> None:
    (batch,) = RecordBatch.of([record] * count)
    objects: list[object] = [batch, batch.place, batch.keys, batch.values, (batch, 0)]
    arrays = (batch.offsets, batch.timestamps)
    objects += arrays
    own: list[object] = [part for part in (record.key, record.value) if part is not None]
    if batch.headers is not None:
        objects.append(batch.headers)
        own += [record.headers, *record.headers]
        own += [part for header in record.headers for part in header if part is not None]
    collected = 16 * (3 + count * sum(isinstance(one, tuple) for one in own))
    taken = sum(map(sys.getsizeof, [*objects, *own * count])) + collected
    assert taken * 0.9 < batch_cost(batch) < 2 * taken
    alike = row_costs(batch)
    assert len({*alike}) == 1
    assert batch_cost(batch) - sum(alike) == batch_cost(batch.rows(0, 1)) - alike[0] > 0


def test_answers_are_read_step_by_step() -> None:
    stage = adopted()
    for shard in range(SHARDS):
        for number in range(4):
            process(stage, [answer(shard, number, 2)])
    bursts = [process(stage, [document(offset)]) for offset in range(4 * FRAME)]
    ends = [burst.offsets[DOCS] for burst in bursts if burst.offsets]
    assert [b - a for a, b in pairwise(ends)] == [1] * (4 * FRAME - 1)
