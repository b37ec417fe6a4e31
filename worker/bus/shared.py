"""One log that several owners read in full, each from its own position.

A group divides the partitions of an empty topic among its members. These partitions are seats:
the owner of a seat reads another log, and commits its offsets in that log under the seat. One
reader serves all seats of a worker that are at about the same position. A seat that is far behind
has its own reader until it has caught up, so that the others don't wait for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from worker.bus import (
    AnyOutgoing,
    Claim,
    LogReader,
    LogTruncated,
    Member,
    OffsetOutOfRange,
    PartitionUnreadable,
    Polled,
    Record,
    RecordBatch,
    TopicPartition,
)
from worker.bus.records import NO_EPOCHS

_NEAR = 64
"""A seat that is at most this many records ahead of a reader shares it, and skips them."""


@dataclass(slots=True, eq=False)
class _Stream:
    """A reader of the log, and its position."""

    reader: LogReader
    at: int
    """The next offset to read; transaction markers may stand there."""
    failing: bool = False
    """Whether the last read failed; no other seat may then share the reader."""
    epoch: int = -1
    """The leader epoch of the last record that was read; -1 if there was none."""


class SharedReader:
    """Implements `LogReader` for seats.

    It delivers the log's records under the seat's name: topic and partition are the seat's,
    everything else is the log's.
    """

    def __init__(self, log: TopicPartition, connect: Callable[[], LogReader]) -> None:
        """Take the log, and a function that connects a reader to it. This does not connect."""
        self._log = log
        self._connect = connect
        self._streams: list[_Stream] = []
        self._failed: _Stream | None = None
        self._next: dict[TopicPartition, int] = {}
        self._stream_of: dict[TopicPartition, _Stream] = {}
        self._claims: dict[TopicPartition, Claim] = {}

    def start(self, partition: TopicPartition, offset: int, claim: Claim | None = None) -> None:
        """See the port; the claim is about the log."""
        # If the seat had its own reader, that is probably started again: cheaper than a stop.
        self._stream_of.pop(partition, None)
        self._next[partition] = offset
        self._claims.pop(partition, None)
        if claim is not None:
            self._claims[partition] = claim

    def stop(self, partition: TopicPartition) -> None:
        """See the port."""
        self._next.pop(partition, None)
        self._claims.pop(partition, None)
        self._stream_of.pop(partition, None)
        for stream in self._idle():
            stream.reader.stop(self._log)

    def read(self, limit: int, max_bytes: int, timeout: float) -> list[Record]:
        """See the port; a record counts once for each seat that receives it."""
        self._place_seats()
        streams = self._running()
        if not streams:
            # There is nothing to read, but a caller that loops relies on the wait.
            self._any().read(1, 1, timeout)
            return []
        seats = len(self._stream_of)
        share = max(1, limit // seats), max(1, max_bytes // seats)
        records: list[Record] = []
        # The failed stream first, then the most advanced: none may hold up the others.
        for stream in sorted(streams, key=lambda stream: stream is not self._failed):
            try:
                records += self._take(stream, *share, 0.0 if len(streams) > 1 else timeout)
            except (OffsetOutOfRange, PartitionUnreadable):
                if not records:
                    raise
                self._failed = stream  # Return what was read; the next call raises the error.
                return records
        self._failed = None
        if len(streams) > 1 and not records:
            records += self._take(streams[0], *share, timeout)
        self._merge([stream for stream in streams if self._seats(stream)])
        return records

    def _running(self) -> list[_Stream]:
        """Return the streams that serve a seat, the most advanced first."""
        running = [stream for stream in self._streams if self._seats(stream)]
        return sorted(running, key=lambda stream: -stream.at)

    def _idle(self) -> list[_Stream]:
        """Return the streams that serve no seat."""
        return [stream for stream in self._streams if not self._seats(stream)]

    def _place_seats(self) -> None:
        """Assign each seat without a stream one that is near and not ahead of it, or its own."""
        unplaced = sorted(
            (offset, seat) for seat, offset in self._next.items() if seat not in self._stream_of
        )
        for offset, seat in unplaced:
            near = [
                stream
                for stream in self._running()
                if stream.at <= offset <= stream.at + _NEAR and not stream.failing
            ]
            claim = self._claims.get(seat)
            if near and claim is not None and near[0].at == claim.offset:
                self._check(claim, claim.offset - 1, near[0].epoch)
            self._stream_of[seat] = near[0] if near else self._start_stream(offset, claim)
        if unplaced:
            self._close_idle()

    def _check(self, claim: Claim, offset: int, epoch: int) -> None:
        """Raise if a record that the log has at an offset contradicts a claim."""
        if offset < claim.offset and epoch > claim.epoch:
            raise LogTruncated(self._log, claim, None)

    def _start_stream(self, offset: int, claim: Claim | None) -> _Stream:
        """Start an unused reader, or a new one, at an offset."""
        idle = next(iter(self._idle()), None)
        if idle is None:
            idle = _Stream(self._connect(), offset)
            self._streams.append(idle)
        idle.at, idle.failing, idle.epoch = offset, False, -1
        idle.reader.start(self._log, offset, claim)
        return idle

    def _close_idle(self) -> None:
        """Close the unused readers."""
        for stream in self._idle():
            stream.reader.close()
            self._streams.remove(stream)

    def _take(self, stream: _Stream, limit: int, max_bytes: int, timeout: float) -> list[Record]:
        """Read from one stream, and return for each of its seats the records that are new to it."""
        try:
            found = stream.reader.read(limit, max_bytes, timeout)
        except (OffsetOutOfRange, PartitionUnreadable) as error:
            stream.failing = True
            blamed = self._seat_in_need(stream, error.position)
            if blamed is None:
                return []
            error.partition = blamed  # The message still names the log.
            raise
        stream.failing = False
        if not found:
            return []
        stream.at, stream.epoch = found[-1].offset + 1, found[-1].leader_epoch
        records = []
        for seat in self._seats(stream):
            self._confirm(seat, found)
            start = self._next[seat]
            mine = found if found[0].offset >= start else [r for r in found if r.offset >= start]
            if mine:
                topic, partition = seat
                records += [Record(topic, partition, *record[2:]) for record in mine]
                self._next[seat] = mine[-1].offset + 1
        return records

    def _confirm(self, seat: TopicPartition, found: Sequence[Record]) -> None:
        """Compare records with a seat's claim, until the log has confirmed it."""
        claim = self._claims.get(seat)
        if claim is None:
            return
        for record in found:
            self._check(claim, record.offset, record.leader_epoch)
        if found[-1].offset >= claim.offset:
            del self._claims[seat]

    def _seat_in_need(self, stream: _Stream, position: int) -> TopicPartition | None:
        """Return a seat that needs the unreadable position; None if all seats have passed it.

        Seats that have passed it leave the stream, and are placed again.
        """
        for seat in self._seats(stream):
            if self._next[seat] > position:
                del self._stream_of[seat]
        needing = self._seats(stream)
        if not needing:
            stream.reader.stop(self._log)
            return None
        return needing[0]

    def _seats(self, stream: _Stream) -> list[TopicPartition]:
        return [seat for seat, its in self._stream_of.items() if its is stream]

    def _merge(self, streams: Sequence[_Stream]) -> None:
        """Move the seats that have caught up to the most advanced reader.

        Seats have received everything before their reader's position. So a seat whose reader is
        at least as far as the first misses nothing that the first has passed.
        """
        for stream in streams[1:]:
            if self._position(stream) >= self._position(streams[0]):
                for seat in self._seats(stream):
                    self._stream_of[seat] = streams[0]
        if len(streams) > 1:
            self._close_idle()

    def _position(self, stream: _Stream) -> int:
        """Return a stream's position, past the markers that follow its last record."""
        return max(stream.at, stream.reader.position(self._log) or 0)

    def position(self, partition: TopicPartition) -> int | None:
        """See the port."""
        following = self._next.get(partition)
        stream = self._stream_of.get(partition)
        if following is None or stream is None:
            return following
        # The seat has received everything that the stream has passed, unless it is ahead of it.
        return max(following, self._position(stream))

    def epoch(self, partition: TopicPartition) -> int | None:  # noqa: ARG002 -- it is the log's
        """See the port; returns that of the most advanced reader."""
        found = [stream.reader.epoch(self._log) for stream in self._streams]
        return max((epoch for epoch in found if epoch is not None), default=None)

    def end(self, partition: TopicPartition) -> int | None:  # noqa: ARG002 -- it is the log's
        """See the port; works for seats that are not started, too."""
        if not self._streams:
            self._streams.append(_Stream(self._connect(), 0))
        ends = [stream.reader.end(self._log) for stream in self._streams]
        return max((end for end in ends if end is not None), default=None)

    def committed(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int | None]:
        """See the port."""
        return self._any().committed(partitions)

    def watermarks(self, partition: TopicPartition) -> tuple[int, int]:  # noqa: ARG002 -- the log's
        """See the port."""
        return self._any().watermarks(self._log)

    def _any(self) -> LogReader:
        if not self._streams:
            self._streams.append(_Stream(self._connect(), 0))
        return self._streams[0].reader

    def close(self) -> None:
        """See the port."""
        for stream in self._streams:
            stream.reader.close()
        self._streams.clear()
        self._stream_of.clear()
        self._next.clear()


class SharedMember:
    """Implements `Member` for seats: the group assigns them, and a reader delivers the records."""

    def __init__(self, member: Member, reader: SharedReader) -> None:
        """Take a member of the empty topic's group, and a reader of the log."""
        self.settle = member.settle
        self.renew = member.renew
        self.effect = member.effect
        self.claims = member.claims  # They are about the log.
        self._member = member
        self._reader = reader
        self._sought: dict[TopicPartition, int] = {}
        self._running: set[TopicPartition] = set()
        self._paused: dict[TopicPartition, Claim] = {}
        self._committed: dict[TopicPartition, int] = {}

    def poll(self, limit: int, max_bytes: int, timeout: float) -> Polled:
        """See the port."""
        # Without a seat there is nothing to read, so all the time goes to the group's poll.
        reading = self._running and self.seated
        polled = self._member.poll(1, 1, 0.0 if reading else timeout)
        if polled.assignment is not None:
            for seat in self._sought:
                self._reader.stop(seat)
            self._sought.clear()
            self._running.clear()
            self._paused.clear()
            self._committed.clear()
            return polled
        if not self._running or not self.seated:
            return polled
        records = self._reader.read(limit, max_bytes, timeout)
        batches = RecordBatch.of(records)
        self._sought |= {batch.place: batch.end for batch in batches}
        return Polled(batches)

    @property
    def seated(self) -> bool:
        """See the port."""
        return self._member.seated

    @property
    def waiting(self) -> bool:
        """See the port."""
        return self._member.waiting

    def commit(
        self,
        records: Iterable[AnyOutgoing],
        offsets: Mapping[TopicPartition, int],
        *,
        epochs: Mapping[TopicPartition, int] = NO_EPOCHS,
    ) -> None:
        """See the port; the log's epoch is known here."""
        seat = next(iter(offsets), None)
        epoch = None if seat is None or epochs else self._reader.epoch(seat)
        if epoch is not None:
            epochs = dict.fromkeys(offsets, epoch)
        self._member.commit(records, offsets, epochs=epochs)

    @property
    def throttled(self) -> bool:
        """See the port."""
        return self._member.throttled

    def committed(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int | None]:
        """See the port."""
        found = self._member.committed(partitions)
        self._committed |= {seat: offset for seat, offset in found.items() if offset is not None}
        return found

    def positions(self) -> dict[TopicPartition, int]:
        """See the port."""
        found = {seat: self._reader.position(seat) for seat in self._running}
        return {**self._sought, **{seat: at for seat, at in found.items() if at is not None}}

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """See the port."""
        self._sought[partition] = offset
        self._paused.pop(partition, None)
        if partition in self._running:
            self._start(partition)

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        """See the port."""
        positions = self.positions()
        for seat in self._running.intersection(partitions):
            self._sought[seat] = positions[seat]
            epoch = self._reader.epoch(seat)
            if epoch is not None:
                self._paused[seat] = Claim(positions[seat], epoch)
            self._reader.stop(seat)
            self._running.remove(seat)

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        """See the port."""
        for seat in self._sought.keys() & set(partitions):
            if seat not in self._running:
                self._start(seat)
                self._running.add(seat)

    def _start(self, seat: TopicPartition) -> None:
        """Have a seat read; what it or its group has read says what is before it in the log."""
        offset = self._sought[seat]
        claim = self._paused.get(seat) or self.claims().get(seat)
        known = claim is not None and offset <= claim.offset
        self._reader.start(seat, offset, claim if known else None)

    def watermarks(self, partition: TopicPartition) -> tuple[int, int]:
        """See the port; returns those of the log."""
        return self._reader.watermarks(partition)

    def lag(self) -> dict[TopicPartition, int]:
        """See the port."""
        waiting = {**self._committed, **self.positions()}
        end = self._reader.end(next(iter(waiting))) if waiting else None
        return {} if end is None else {seat: max(0, end - at) for seat, at in waiting.items()}

    def subscribe(self, topics: Sequence[str]) -> None:
        """See the port.

        Raises:
            ValueError: always; seats are those of one topic.
        """
        raise ValueError(f"seats can't become those of {', '.join(topics)}")

    def close(self, *, leave: bool = False) -> None:
        """See the port."""
        try:
            self._member.close(leave=leave)
        finally:
            self._reader.close()
