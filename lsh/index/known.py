"""What is known of the documents that buckets name, in arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lsh.index.buckets import RecordMissing
from lsh.index.places import Places
from lsh.index.records import Records
from lsh.index.renewed import RenewedTimes
from lsh.ordered import without_repeats

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from lsh.index.batch import DocumentBatch
    from lsh.index.buckets import BucketReader
    from lsh.index.clock import Clock

__all__ = ["NEVER", "Known"]

NEVER = np.iinfo(np.int64).max
"""The row from which a document is forgotten if it never is."""


class Known:
    """Documents by places: first those of a batch, by row, then others, as they are learned.

    any_gone: whether some were forgotten, or will be in the batch. renewed: the renewals of
    entries, also those of the batch.
    """

    def __init__(
        self,
        reader: BucketReader,
        slots: int,
        clock: Clock,
        batch: DocumentBatch | None = None,
    ) -> None:
        """Begin with the documents of a batch, which get the numbers that come next.

        clock: after the batch, by which stored times are read.
        """
        self._reader = reader
        self._clock = clock
        self._stored_kept = reader.all_kept
        self.first = reader.inserted
        self.own = 0 if batch is None else len(batch.ids)
        self._count = self.own
        self._records = Records.blank(self.own, slots)
        self._number_of = np.arange(self.first, self.first + self.own)
        self._gone_from = np.full(self.own, NEVER)
        self._learned = Places()
        self.any_gone = False
        self._gone_numbers: dict[int, int] = {}
        self.renewed = RenewedTimes(reader.renewals, self.first, clock)
        if batch is not None:
            self._records = self._records._replace(
                sequences=batch.sequences,
                times=batch.times,
                shingles=batch.shingles,
                sketches=batch.sketches,
                ids=np.fromiter(batch.ids, np.object_, self.own),
            )

    @property
    def all_kept(self) -> bool:
        """Return whether it is known that none was forgotten, also of those not learned yet."""
        return self._stored_kept and not self.any_gone

    @property
    def sketches(self) -> NDArray[np.uint8]:
        """Return the sketches of all: uint8[m, slots], a view until something is learned."""
        return self._records.sketches[: self._count]

    @property
    def new(self) -> NDArray[np.uint8]:
        """Return which buckets were new to each: uint8[m, b]; see `Records`. Of a batch, none."""
        return self._records.new[: self._count]

    @property
    def sequences(self) -> NDArray[np.uint64]:
        """Return the sequence numbers of all: uint64[m]."""
        return self._records.sequences[: self._count]

    @property
    def shingles(self) -> NDArray[np.uint32]:
        """Return how many shingles each has: uint32[m]."""
        return self._records.shingles[: self._count]

    @property
    def ids(self) -> NDArray[np.object_]:
        """Return the ids of all: object[m]."""
        return self._records.ids[: self._count]

    def forget(self, numbers: Iterable[int], row: int) -> None:
        """Have documents be forgotten from a row of the batch on."""
        for number in numbers:
            self.any_gone = True
            self._gone_numbers.setdefault(number, row)
            if number >= self.first:
                place = number - self.first
                self._gone_from[place] = min(self._gone_from[place], row)

    def places(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the places of documents: int64[e]; read the records of those that are new here.

        numbers: int64[e], in any order.

        Raises RecordMissing if one has no record.
        """
        if len(numbers) and (last := int(numbers.max())) >= self.first + self.own:
            raise RecordMissing(last)
        stored = numbers < self.first
        places = numbers - self.first
        places[stored] = self._stored_places(numbers[stored])
        return places

    def _stored_places(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the places of documents of the index: int64[e]."""
        places = self._learned.of(numbers)
        new = np.flatnonzero(places < 0)
        if len(new):
            unknown = numbers.take(new)
            self._learn(without_repeats(unknown))
            places[new] = self._learned.of(unknown)
        return places

    def _learn(self, numbers: NDArray[np.int64]) -> None:
        """Read the records of documents of the index: int64[k], ascending, new here."""
        records = self._reader.recorded(numbers, self._records.sketches.shape[1])
        if not records.exist.all():
            raise RecordMissing(int(numbers[records.exist.argmin()]))
        records = records._replace(times=self._clock.settled(records.times))
        first = self._count
        self._add(records, numbers)
        self._learned.add(numbers, np.arange(first, self._count))

    def _add(self, records: Records, numbers: NDArray[np.int64]) -> None:
        """Add records behind the others. Arrays grow by halves, so each is copied seldom."""
        first, self._count = self._count, self._count + len(numbers)
        if self._count > len(self._number_of):
            room = max(self._count, first + first // 2)
            grown = Records.blank(room, self._records.sketches.shape[1])
            own = Records._make(part[:first] for part in self._records)
            self._records = grown.put(slice(0, first), own)
            self._number_of = np.resize(self._number_of, room)
            self._gone_from = np.resize(self._gone_from, room)
        here = slice(first, self._count)
        self._records = self._records.put(here, records)
        gone = np.where(records.kept, NEVER, -1)
        if self._gone_numbers:
            rows = [self._gone_numbers.get(number, NEVER) for number in numbers.tolist()]
            gone = np.minimum(gone, np.array(rows, np.int64))
        self.any_gone |= not bool(records.kept.all())
        self._gone_from[here], self._number_of[here] = gone, numbers

    def numbers(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the numbers of documents in the index: int64[e]."""
        return self._number_of[places]

    def packed(self, numbers: Sequence[int]) -> list[bytes]:
        """Return the records of documents of the index by ascending, different numbers."""
        found = []
        for number, record in zip(numbers, self._reader.records(numbers), strict=True):
            if record is None:
                raise RecordMissing(number)
            found.append(record)
        return found

    def learned(self) -> Mapping[int, int]:
        """Return the numbers of the documents known, by sequence number: of several, the last."""
        numbers = self._number_of[: self._count]
        order = np.argsort(numbers, kind="stable")
        return dict(zip(self.sequences[order].tolist(), numbers[order].tolist(), strict=True))

    def are_gone(self, numbers: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which documents are forgotten at the end of the batch: bool[k]."""
        gone: NDArray[np.bool_] = self._gone_from[self.places(numbers)] != NEVER
        return gone

    def gone_rows(self) -> NDArray[np.bool_]:
        """Return which documents of the batch are forgotten at its end: bool[n]."""
        gone: NDArray[np.bool_] = self._gone_from[: self.own] != NEVER
        return gone

    def live(
        self,
        places: NDArray[np.int64],
        columns: NDArray[np.uint8],
        rows: NDArray[np.int64] | int,
        oldest: NDArray[np.int64] | None,
    ) -> NDArray[np.bool_] | None:
        """Return which entries a document finds that are neither forgotten nor too old.

        places: int64[e], of the entries. columns: uint8[e], of their buckets. rows: int64[e], of
        the documents that come. oldest: int64[e], the least time of an entry for each, in ms.

        Returns bool[e]; None: all.
        """
        if oldest is None and not self.any_gone:
            return None
        live: NDArray[np.bool_] = self._gone_from[places] > rows
        if oldest is not None:
            old = np.flatnonzero(live & (self._records.times[places] < oldest))
            live[old] = self.renewed_times(places[old], columns[old]) >= oldest[old]
        return live

    def renewed_times(
        self, places: NDArray[np.int64], columns: NDArray[np.uint8]
    ) -> NDArray[np.int64]:
        """Return the times of entries, in ms: their own, or those to which they were renewed."""
        return self.renewed.latest(self.numbers(places), columns, self._records.times[places])

    def renew(
        self, places: NDArray[np.int64], columns: NDArray[np.uint8], times: NDArray[np.int64]
    ) -> None:
        """Renew entries, which differ, to later times: int64[e], uint8[e], int64[e], ms."""
        self.renewed.put(self.numbers(places), columns, times)
