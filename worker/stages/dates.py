"""Says in the log what documents' dates do to the index: see `lsh.index.clock`."""

from __future__ import annotations

import logging
from datetime import UTC, datetime

from lsh.index import Dated, Leap

__all__ = ["DateReports"]

_log = logging.getLogger(__name__)

_WITHOUT_NOW = 100
"""Of so many documents, some should have a time."""
_MORE = 10
"""Old documents are told of again when there are so many times as many."""


class DateReports:
    """Tells of documents older than the window, and warns of leaps of the index's time."""

    def __init__(self) -> None:
        """Begin without any."""
        self._older = 0
        self._told_at = 1
        self._timeless = 0

    def judged(self, dates: Dated) -> None:
        """Take the times of documents that were judged and committed."""
        self._await(dates)
        self._older += dates.older
        if self._older >= self._told_at:
            _log.info(
                "documents dated more than index.window before now, which is %s: %d so far. They"
                " count as of now (docs/operations.md, 'How long the index remembers')",
                _shown(dates.clock.now),
                self._older,
            )
            while self._told_at <= self._older:
                self._told_at *= _MORE
        if dates.leap is not None:
            _warn(dates.leap)

    def _await(self, dates: Dated) -> None:
        """Warn once if there is no now for long, although there is a window."""
        told = self._timeless >= _WITHOUT_NOW
        if dates.clock.now is not None or dates.oldest is None or told:
            return
        self._timeless += len(dates.times)
        if self._timeless >= _WITHOUT_NOW:
            _log.warning(
                "of the first %d documents, %d have a time: nothing expires before 32 have"
                " (index.window, documents.time_field)",
                self._timeless,
                len(dates.clock.recent),
            )


def _warn(leap: Leap) -> None:
    _log.warning(
        "now went from %s to %s at one document, by more than index.window: the index has forgotten"
        " what is older. That is right after a pause of the feed. If the dates are wrong, nothing"
        " expires until documents are dated %s (docs/operations.md, 'Wrong dates')",
        _shown(leap.before),
        _shown(leap.after),
        _shown(leap.after),
    )


def _shown(time: int | None) -> str:
    """Return a time in ms as ISO 8601; one that no calendar has as a number."""
    if time is None:
        return "none"
    try:
        moment = datetime.fromtimestamp(time / 1_000, UTC)
    except (OverflowError, ValueError, OSError):
        return f"{time} ms"
    return moment.isoformat(timespec="seconds").replace("+00:00", "Z")
