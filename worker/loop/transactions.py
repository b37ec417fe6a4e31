"""The only place that defines the consequence of each outcome of a transaction.

=================  ==================================================================
committed          the stage makes the burst's state changes final
`Refused`          retry with a smaller version of the largest refused record; if there
                   is none, raise
`Aborted`          drop what was computed; continue from the committed offsets
`OutcomeUnknown`   a new producer under the same name ends the old one's transaction;
                   the log then shows how it ended; continue from there
`Fenced`           another process runs under this name: raise
`BusError`         raise
=================  ==================================================================

Whatever is raised ends the writer.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

from worker.bus import Aborted, BusError, OutcomeUnknown, Outgoing, Refused
from worker.loop.options import LoopOptions
from worker.probe import Probe, probing

__all__ = ["Ended", "Outcome", "Transactions"]

_log = logging.getLogger(__name__)

Outcome = Literal["committed", "aborted", "unknown"]


class Ended(NamedTuple):
    """How a transaction ended."""

    outcome: Outcome
    began: float
    """When, by the clock."""
    seconds: float
    """How long until it ended, or its outcome was declared unknown."""


class Transactions:
    """Carries out transactions, one after the other."""

    def __init__(  # noqa: PLR0913 -- everything that outcomes depend on
        self,
        stage: str,
        renew: Callable[[], None],
        *,
        reduced: Callable[[Outgoing], Outgoing | None],
        options: LoopOptions,
        probe: Probe,
        clock: Callable[[], float],
    ) -> None:
        """Take the stage's name, and a function that makes a new producer.

        ``reduced`` returns a smaller version of a refused record, or None if there is none.
        """
        self._stage = stage
        self._renew = renew
        self._reduced = reduced
        self._options = options
        self._probe = probe
        self._clock = clock
        self._failing_since: float | None = None
        self._failed_at = clock()

    @property
    def failing(self) -> bool:
        """Return whether the last transaction was not committed."""
        return self._failing_since is not None

    def see_through(
        self, records: Sequence[Outgoing], commit: Callable[[Sequence[Outgoing]], None]
    ) -> Ended:
        """Commit, and do what the table above requires.

        Raises:
            Refused: a topic refuses a record that has no smaller version.
            BusError: as `Member.commit` and `Member.renew` do.
        """
        began = self._clock()
        outcome: Outcome = "committed"
        try:
            self._commit(list(records), commit)
        except Aborted as error:
            outcome = "aborted"
            _log.warning("%s: transaction rolled back: %s", self._stage, error)
        except OutcomeUnknown as error:
            outcome = "unknown"
            _log.warning("%s: outcome of the transaction unknown: %s", self._stage, error)
        seconds = self._clock() - began
        if outcome == "committed":
            self._failing_since = None
        elif outcome == "unknown":  # Only here, where the error no longer holds the producer.
            with probing(self._probe, "renew"):
                self._renew()
        return Ended(outcome, began, seconds)

    def _commit(
        self, records: list[Outgoing], commit: Callable[[Sequence[Outgoing]], None]
    ) -> None:
        """Commit; retry with smaller versions of refused records."""
        while True:
            try:
                commit(records)
            except Refused as error:
                refused, name, why = error.records, error.error, str(error)
            else:
                return
            # Not in the except block: an exception raised there would keep the caught one.
            if not self._reduce(records, refused, why):
                raise Refused(why, refused, name)

    def _reduce(self, records: list[Outgoing], refused: Sequence[Outgoing], why: str) -> bool:
        """Replace the largest refused record that has a smaller version; return whether one has."""
        for record in sorted(refused, key=lambda one: one.size, reverse=True):
            smaller = self._reduced(record)
            if smaller is not None:
                sizes = record.size, smaller.size
                told = "%s: %s refuses a record of %d bytes; it is published with %d bytes: %s"
                about = {"topic": record.topic}
                _log.warning(told, self._stage, record.topic, *sizes, why, extra=about)
                records[records.index(record)] = smaller
                return True
        return False

    def give_up_after(self, ended: Ended, records: Sequence[Outgoing]) -> None:
        """Raise if nothing could be committed for too long.

        A failure long before this transaction doesn't count.

        Raises:
            BusError: nothing was committed for `LoopOptions.retry_seconds`.
        """
        limit = self._options.retry_seconds
        alone = ended.began - self._failed_at > limit
        self._failed_at = self._clock()
        if self._failing_since is None or alone:
            self._failing_since = ended.began
        elif self._clock() - self._failing_since > limit:
            msg = (
                f"stage {self._stage} could not commit anything for {limit:.0f} s: see the warnings"
                " above, and check the brokers"
            )
            longest = self._options.transaction_seconds
            if ended.seconds >= longest:
                size = sum(record.size for record in records)
                msg += (
                    f". The last transaction wrote {len(records)} records ({size} bytes in total),"
                    f" and did not end within {longest:.0f} s. If the link or a quota is too slow"
                    " for that, raise kafka.transaction_timeout_ms"
                )
            raise BusError(msg)
