"""Says in the log what documents' dates do to the index: see `core/src/index/clock.rs`."""

from __future__ import annotations

import logging
from datetime import UTC, datetime

from lsh._core import Decision

_log = logging.getLogger(__name__)

_WITHOUT_NOW = 100
"""Of so many documents, some should have a time."""
_MORE = 10
"""Old documents are told of again when there are so many times as many."""


class DateReports:
    """Tells of documents older than the window, and warns of leaps of the index's time."""

    def __init__(self, *, window: bool) -> None:
        """Begin without any; ``window`` is whether the index forgets what is old."""
        self._window = window
        self._older = 0
        self._told_at = 1
        self._timeless = 0

    def judged(self, decision: Decision, documents: int) -> None:
        """Take what was decided about so many documents, and committed."""
        self._await(decision, documents)
        self._older += decision.older
        if self._older >= self._told_at:
            _log.info(
                "documents dated more than index.window before now, which is %s: %d so far. They"
                " count as of now (docs/how-to/operate.md, 'How long the index remembers')",
                _shown(decision.now),
                self._older,
            )
            while self._told_at <= self._older:
                self._told_at *= _MORE
        if decision.leap is not None:
            _warn(*decision.leap)

    def _await(self, decision: Decision, documents: int) -> None:
        """Warn once if there is no now for long, although there is a window."""
        told = self._timeless >= _WITHOUT_NOW
        if decision.now is not None or not self._window or told:
            return
        self._timeless += documents
        if self._timeless >= _WITHOUT_NOW:
            _log.warning(
                "of the first %d documents, %d have a time: nothing expires before 32 have"
                " (index.window, documents.time_field)",
                self._timeless,
                decision.dated,
            )


def _warn(before: int, after: int) -> None:
    _log.warning(
        "now went from %s to %s at one document, by more than index.window: the index has forgotten"
        " what is older. That is right after a pause of the feed. If the dates are wrong, nothing"
        " expires until documents are dated %s (docs/how-to/operate.md, 'Wrong dates')",
        _shown(before),
        _shown(after),
        _shown(after),
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
