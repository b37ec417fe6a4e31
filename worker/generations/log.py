"""The plan of generations, in the topic ``APP.layout``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from random import uniform
from time import monotonic, sleep
from types import MappingProxyType

import msgspec

from worker.bus import (
    Aborted,
    Bus,
    BusError,
    Fenced,
    LogReader,
    OffsetOutOfRange,
    OutcomeUnknown,
    Outgoing,
    Record,
    TopicPartition,
)
from worker.bus.ranges import PARTITION, read_ranges
from worker.generations.plan import Plan, WrongState
from worker.topology import Topology
from worker.untrusted import NOT_READ

PLAN_KEY = b"generations"

_TRIES = 8
_PAUSE_SECONDS = 3.0
_VISIBLE_SECONDS = 30.0
_LOOK_SECONDS = 0.2
_RECORDS = 1_000
_BYTES = 4 << 20

Transition = Callable[[Plan], Plan]
"""Returns the new plan; raises a `WrongState` if nothing is to change."""


def dump(plan: Plan) -> bytes:
    """Return what is recorded."""
    return msgspec.json.encode(plan)


def load(value: bytes) -> Plan:
    """Read what was recorded.

    Raises:
        BusError: it is no plan that this version can read.
    """
    try:
        return msgspec.json.decode(value, type=Plan)
    except NOT_READ as error:
        raise BusError(
            f"the plan of generations can't be read: {error}; upgrade this neardup"
        ) from error


def _last(found: Iterable[Record]) -> bytes | None:
    values = [record.value for record in found if record.key == PLAN_KEY]
    return values[-1] if values else None


class FollowedPlan:
    """The plan as a worker sees it: it reads on in the topic. Belongs to one thread."""

    def __init__(self, bus: Bus, topic: str) -> None:
        """Take the topic; this does not connect."""
        self._bus = bus
        self._place = TopicPartition(topic, PARTITION)
        self._reader: LogReader | None = None
        self.plan: Plan | None = None

    def look(self, timeout: float = 0.0) -> Plan | None:
        """Return the latest plan; None if there is none.

        The first look reads all that is there. Each later one waits up to ``timeout`` seconds.

        Raises:
            BusError: the topic can't be read.
        """
        try:
            if self._reader is None:
                value = self._open()
            else:
                value = _last(self._reader.read(_RECORDS, _BYTES, timeout))
        except OffsetOutOfRange:  # Compaction has deleted it; the next look begins anew.
            self.close()
            return self.plan
        except BusError:
            self.close()
            raise
        if value is not None:
            self.plan = load(value)
        return self.plan

    def _open(self) -> bytes | None:
        """Read the topic to its end, from which later looks read on."""
        topic = self._place.topic
        self._reader = reader = self._bus.log_reader(topic, [topic])
        low, high = reader.watermarks(self._place)
        value = _last(read_ranges(reader, {self._place: (low, high)}))
        reader.start(self._place, high)
        return value

    def close(self) -> None:
        """Close the connection; the next look opens another."""
        reader, self._reader = self._reader, None
        if reader is not None:
            reader.close()


def change_plan(
    bus: Bus,
    base: Topology,
    first: Plan,
    transition: Transition,
    offsets: Mapping[str, Mapping[TopicPartition, int]] = MappingProxyType({}),
) -> Plan | None:
    """Change the plan; return the new one, or None if nothing was to change.

    ``base`` is the topology of generation 0, and ``first`` the plan if none is recorded.
    ``transition`` is called with the plan as no one else can change it meanwhile, and again if
    that fails. The new plan is written in one transaction, and can be read when this returns. So
    are the hand-over, if a generation takes over by it, and ``offsets``; see `LogWriter.commit`.

    Raises:
        BusError: the cluster doesn't answer, or refuses.
    """
    topic = base.layout_log
    writer = bus.log_writer(topic, topic)
    try:
        for _ in range(_TRIES):
            # Any other writer is fenced from here on, so what is read now stays true.
            writer.renew()
            recorded = _recorded(bus, topic)
            before = recorded or first
            try:
                plan = transition(before)
            except WrongState:
                return None
            marker = [plan.marker(base)] if plan.handed_over and not before.handed_over else []
            try:
                writer.commit([*marker, Outgoing(topic, PARTITION, PLAN_KEY, dump(plan))], offsets)
            except (OutcomeUnknown, Aborted, Fenced):
                sleep(uniform(0, _PAUSE_SECONDS))  # noqa: S311 -- not for cryptography
                continue  # The next attempt reads what was written.
            _await_other(bus, topic, recorded)
            return plan
    finally:
        writer.close()
    raise BusError(f"{topic}: the plan could not be recorded in {_TRIES} attempts")


def _await_other(bus: Bus, topic: str, before: Plan | None) -> None:
    """Wait until another plan can be read.

    Brokers write the markers of a transaction after they have answered that it is committed.
    """
    deadline = monotonic() + _VISIBLE_SECONDS
    while _recorded(bus, topic) == before and monotonic() < deadline:
        sleep(_LOOK_SECONDS)


def _recorded(bus: Bus, topic: str) -> Plan | None:
    reader = bus.log_reader(topic, [topic])
    try:
        place = TopicPartition(topic, PARTITION)
        value = _last(read_ranges(reader, {place: reader.watermarks(place)}))
        return None if value is None else load(value)
    finally:
        reader.close()
