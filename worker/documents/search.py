"""Reads ranges of topics, and finds documents by their ids there, from the newest to the oldest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator
from time import monotonic

from worker.bus import LogReader, Record, TopicPartition
from worker.bus.ranges import Ranges, read_ranges

_FIRST_WINDOW = 2_000
_GROWTH = 4
"""A log can't be read backwards. Windows are, each larger than the one after it."""
_RECORDS = 1_000


def newest(  # noqa: PLR0913 -- what to read, what to find, and two callbacks
    reader: LogReader,
    spans: Ranges,
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
        for record in read_ranges(reader, window, clock=clock):
            if record.value is None:
                continue
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


def windows(spans: Ranges) -> Iterator[dict[TopicPartition, tuple[int, int]]]:
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
