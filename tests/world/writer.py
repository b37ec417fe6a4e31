"""Who writes documents: plainly, in transactions, alone or at once, and in some that abort."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Literal

from tests.world.clock import HOUR, Clock
from worker.bus import Outgoing, Record
from worker.bus.memory.bus import MemoryBus
from worker.corrections.request import Forget, Request, encoded
from worker.topology import Topology
from worker.wire.headers import CORRECTION, FORGET

Manner = Literal["plain", "transaction", "aborted first", "aborted", "overlapping"]


class Writer:
    """Writes documents round the partitions that it is given.

    Attributes:
        written: all that committed readers may see, in the order of writing.
    """

    def __init__(self, bus: MemoryBus, topology: Topology, clock: Clock) -> None:
        """Have nothing written."""
        self._bus = bus
        self._topology = topology
        self._clock = clock
        self.written: list[Record] = []

    def write(
        self,
        texts: Sequence[tuple[str, str]],
        partitions: Sequence[int],
        manner: Manner = "plain",
        age_hours: int | None = 0,
        salt: bytes | None = None,
        *,
        dated: bool = False,
    ) -> None:
        """Write ids and texts.

        ``age_hours`` is how far in the past their timestamps lie. If they are ``dated``, it is how
        far their dates do, and None is none. With a salt, the ids are not in the values: each
        record has a key that begins with it.
        """
        stamp = self._clock.milliseconds() - (age_hours or 0) * HOUR
        more = {"at": stamp} if dated and age_hours is not None else {}
        stamp = self._clock.milliseconds() if dated else stamp
        records = [
            Outgoing(
                self._topology.documents,
                partitions[number % len(partitions)],
                None if salt is None else salt + ident.encode(),
                json.dumps(
                    ({"id": ident} if salt is None else {}) | {"text": text} | more
                ).encode(),
                (),
                stamp,
            )
            for number, (ident, text) in enumerate(texts)
        ]
        if manner == "plain":
            for record in records:
                self.written.append(self._place(record))
                self._bus.append(record)
            return
        if manner.startswith("aborted"):
            failed = self._bus.begin("writer")
            failed.append_many(records)
            failed.abort()
        if manner == "aborted":
            return
        if manner == "overlapping":
            self._write_at_once(records)
            return
        transaction = self._bus.begin("writer")
        for record in records:
            self.written.append(self._place(record))
            transaction.append_many([record])
        transaction.commit()

    def forget(self, ident: str, partition: int, *, with_value: bool) -> None:
        """Write a tombstone, or a delete with a value."""
        value = json.dumps({"id": ident, "text": None}).encode() if with_value else None
        documents, now = self._topology.documents, self._clock.milliseconds()
        record = Outgoing(documents, partition, ident.encode(), value, (), now)
        self.written.append(self._place(record))
        self._bus.append(record)

    def correct(self, request: Request, partition: int) -> None:
        """Write what a person corrects, with a tombstone if it has a document forgotten."""
        headers = [(CORRECTION, encoded(request))]
        if isinstance(request, Forget):
            headers.append((FORGET, request.id.encode()))
        documents, now = self._topology.documents, self._clock.milliseconds()
        record = Outgoing(documents, partition, request.id.encode(), None, tuple(headers), now)
        self.written.append(self._place(record))
        self._bus.append(record)

    def _write_at_once(self, records: Sequence[Outgoing]) -> None:
        """Write in turns with another producer, and with one that aborts in the end."""
        one, other, failed = (self._bus.begin(f"writer-{number}") for number in range(3))
        for number, record in enumerate(records):
            failed.append_many([record])
            self.written.append(self._place(record))
            (one, other)[number % 2].append_many([record])
        other.commit()
        one.commit()
        failed.abort()

    def _place(self, record: Outgoing) -> Record:
        """Give a record as it will be read, if it is the next to be written."""
        assert record.partition is not None
        assert record.timestamp is not None
        offset = self._bus.end_offset(record.topic, record.partition)
        return Record(
            record.topic,
            record.partition,
            offset,
            record.timestamp,
            record.key,
            record.value,
            record.headers,
        )
