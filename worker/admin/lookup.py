"""Reads ranges of topics, and finds documents by their ids there, from the newest to the oldest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from time import monotonic

from worker.bus import BusError, LogReader, OffsetOutOfRange, Record, TopicPartition

Spans = Mapping[TopicPartition, tuple[int, int]]
"""Half-open ranges of offsets, by partition."""

_FIRST_WINDOW = 2_000
_GROWTH = 4
"""A log can't be read backwards. Windows are, each larger than the one after it."""
_SILENCE_SECONDS = 15.0
_WAIT_SECONDS = 0.5
_RECORDS = 1_000
_BYTES = 4 << 20


def newest(  # noqa: PLR0913 -- what to read, what to find, and two callbacks
    reader: LogReader,
    spans: Spans,
    ids: Collection[str],
    *,
    identify: Callable[[Record], str],
    order: Callable[[Record], int],
    on_read: Callable[[int, int], None] = lambda _offsets, _records: None,
    clock: Callable[[], float] = monotonic,
) -> dict[str, list[Record]]:
    """Return the newest records of these ids; an id that is given twice has two.

    ``order`` returns a record's place among those of its id, ascending with time. Reading stops
    as soon as all are found, so a window that has them is the last one. ``on_read`` is called
    with how many offsets and records were read.

    Raises:
        BusError: a partition can't be read, or delivers nothing for 15 s.
    """
    wanted = Counter(ids)
    found: dict[str, list[Record]] = {}
    offsets = count = 0
    for window in windows(spans):
        here: dict[str, list[Record]] = {}
        for record in records_of(reader, window, clock):
            ident = identify(record)
            if wanted[ident]:
                kept = [*here.get(ident, ()), record]
                here[ident] = sorted(kept, key=order, reverse=True)[: wanted[ident]]
            count += 1
            if not count % _RECORDS:
                on_read(offsets, count)
        for ident, records in here.items():
            found[ident] = [*found.get(ident, ()), *records][: wanted[ident]]
        offsets += sum(high - low for low, high in window.values())
        on_read(offsets, count)
        if all(len(found.get(ident, ())) == number for ident, number in wanted.items()):
            break
    return found


def windows(spans: Spans) -> Iterator[dict[TopicPartition, tuple[int, int]]]:
    """Cut the spans into windows, those at their ends first."""
    left = {partition: span for partition, span in spans.items() if span[0] < span[1]}
    size = _FIRST_WINDOW
    while left:
        yield {partition: (max(low, high - size), high) for partition, (low, high) in left.items()}
        left = {
            partition: (low, high - size)
            for partition, (low, high) in left.items()
            if high - size > low
        }
        size *= _GROWTH


def records_of(
    reader: LogReader, window: Spans, clock: Callable[[], float] = monotonic
) -> Iterator[Record]:
    """Yield the records in these ranges that have a value, in the order of each partition.

    Raises:
        BusError: a partition can't be read, or delivers nothing for 15 s.
    """
    for partition, (low, _) in window.items():
        reader.start(partition, low)
    left = dict(window)
    heard = clock()
    while left:
        try:
            found = reader.read(_RECORDS, _BYTES, _WAIT_SECONDS)
        except OffsetOutOfRange as error:
            if error.position >= error.low:
                raise BusError(str(error)) from error
            reader.start(error.partition, error.low)  # Retention has just deleted what was before.
            found = []
        if found:
            heard = clock()
        elif clock() - heard > _SILENCE_SECONDS:
            silent = ", ".join(f"{partition.topic}[{partition.partition}]" for partition in left)
            raise BusError(f"no record of {silent} has arrived for {_SILENCE_SECONDS:.0f} s")
        for record in found:
            span = left.get(TopicPartition(record.topic, record.partition))
            if span is not None and record.offset < span[1] and record.value is not None:
                yield record
        for partition in [p for p, (_, high) in left.items() if (reader.position(p) or 0) >= high]:
            reader.stop(partition)
            del left[partition]
