"""Reports documents that wait for answers that were deleted."""

from __future__ import annotations

import logging
from collections.abc import Mapping

_log = logging.getLogger(__name__)

_SECONDS = 60.0


class Waits:
    """Logs, once a minute, documents whose answers may have been deleted.

    Nothing else shows it: there is nothing left to read, so there is no lag.
    """

    def __init__(self, documents: str) -> None:
        """Take the topic of the documents."""
        self._documents = documents
        self._since: dict[int, tuple[int, float]] = {}

    def look(self, first: Mapping[int, int | None], now: float) -> None:
        """Log documents that have waited for a minute.

        ``first``: by partition, the offset of the first document that may wait in vain.
        ``now``: the time in seconds.
        """
        before, self._since = self._since, {}
        for partition, offset in first.items():
            if offset is None:
                continue
            known, since = before.get(partition, (offset, now))
            if known != offset:
                since = now
            elif now - since >= _SECONDS:
                since = now
                _log.error(
                    "%s[%d] offset %d: this document and those after it wait for answers that were"
                    " most likely deleted before they were read. See the runbook, 'Answers that"
                    " were deleted'",
                    self._documents,
                    partition,
                    offset,
                    extra={"topic": self._documents, "partition": partition, "offset": offset},
                )
            self._since[partition] = offset, since
