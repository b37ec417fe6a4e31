"""Stops the worker before wrong settings move a whole topic to *rejected*."""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass

from worker.formats.base import DocumentFormat
from worker.formats.first_documents import SeenFields, shortened
from worker.formats.unreadable import CAUSES, Unreadable
from worker.stages.base import StageError
from worker.visible import visible

_SAMPLES = 100
"""The latest documents whose fields a message names."""
_DETAIL_CHARACTERS = 300
_LEAST = 1 / 4
"""Of the records that are enough to tell, the least part that must be documents."""


@dataclass(frozen=True, slots=True)
class RejectLimit:
    """At most ``share`` of the last ``window`` documents may not fit the settings; 1 is no limit.

    Only reasons that tell of a wrong configuration count (`worker.formats.unreadable`). A limit on
    what websites write would let them stop the worker. Times that can't be read count if none of
    these documents has one that can. Tombstones, and records whose text is null, are not among the
    documents: of a feed with many deletes, the others count as of any feed.
    """

    share: float = 0.5
    window: int = 1_000


@dataclass(frozen=True, slots=True)
class _Seen:
    """The documents of a burst, how many of them had a time, and how many misfits, by code."""

    documents: int
    times: int
    misfits: Counter[str]


class RejectGuard:
    """Counts the latest documents, and those among them that don't fit the settings."""

    def __init__(self, limit: RejectLimit, reader: DocumentFormat) -> None:
        """Take the limit, and what reads the documents."""
        self._limit = limit
        self._reader = reader
        self._bursts: deque[_Seen] = deque()
        self._seen = 0
        self._times = 0
        self._times_before = reader.times_read
        self._records = 0
        self._misfits: Counter[str] = Counter()
        self.burst: Counter[str] = Counter()
        """The misfits since `check` was called, by code; never changed, but replaced."""
        self._details: dict[str, str] = {}
        self._names: deque[tuple[str, ...]] = deque(maxlen=_SAMPLES)

    def rejected(self, error: Unreadable, value: bytes) -> None:
        """Count a document that can't be read."""
        if self._limit.share >= 1 or CAUSES.get(error.code) == "content":
            return
        self.burst = self.burst + Counter([error.code])
        self._details[error.code] = error.detail
        self._names.append(self._names_in(value))

    def check(self, documents: int, others: int = 0) -> None:
        """Count a burst's documents, after `rejected` was called for those that can't be read.

        ``others`` are its records that are no documents.

        Raises:
            StageError: too many don't fit the settings.
        """
        self._records += documents + others
        if not documents:
            return
        misfits, self.burst = self.burst, Counter()
        times = self._reader.times_read - self._times_before
        self._times_before += times
        self._bursts.append(_Seen(documents, times, misfits))
        self._seen += documents
        self._times += times
        self._misfits += misfits
        while self._bursts and self._seen - self._bursts[0].documents >= self._limit.window:
            old = self._bursts.popleft()
            self._seen -= old.documents
            self._times -= old.times
            self._misfits -= old.misfits
        counted = Counter(
            {
                code: count
                for code, count in self._misfits.items()
                if CAUSES[code] != "time" or not self._times
            }
        )
        # A tenth of the window is enough, so that a bad first burst is caught.
        enough = min(100, self._limit.window // 10)
        told = self._records >= enough and self._seen >= enough * _LEAST
        if told and counted.total() > self._limit.share * self._seen:
            raise StageError(self._message(counted))

    def _message(self, misfits: Counter[str]) -> str:
        common = "; ".join(
            f"{code} ({count}): {_cut(self._details[code])}"
            for code, count in misfits.most_common(3)
        )
        seen = SeenFields()
        for names in self._names:
            seen.add(names)
        have = f". They have: {seen}" if any(self._names) else ""
        return (
            f"{misfits.total()} of the last {self._seen} documents can't be read: {common}"
            f"{have}. Nothing of this burst was published. Compare the fields that the"
            " settings name (documents.*) with a document, or raise limits.reject_share"
        )

    def _names_in(self, value: bytes) -> tuple[str, ...]:
        """Return the names of a payload's fields."""
        try:
            return shortened(self._reader.fields(value) or ())
        except Unreadable:
            return ()


def _cut(detail: str) -> str:
    """Return the beginning of a text, so that it can be shown; whoever wrote it chose it."""
    short = len(detail) <= _DETAIL_CHARACTERS
    return visible(detail if short else f"{detail[:_DETAIL_CHARACTERS]}…")
