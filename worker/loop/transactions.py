"""The only place that defines the consequence of each outcome of a transaction.

=================  ==================================================================
committed          the stage makes the burst's state changes final
in part            write what is missing; then as committed
`Refused`          retry with a smaller version of the largest refused record; if there
                   is none, raise
`Aborted`          drop what was computed; continue from the committed offsets
`OutcomeUnknown`   a new producer under the same name ends the old one's transaction;
                   the log then shows how it ended; continue from there
`Fenced`           another process runs under this name: raise
`BusError`         raise
=================  ==================================================================

Whatever is raised ends the writer. `Pace` limits the size of a burst, so that its transaction ends
well within its timeout.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NamedTuple, Protocol

from worker.bus import (
    Aborted,
    AnyOutgoing,
    BusError,
    Effect,
    OutcomeUnknown,
    Outgoing,
    Refused,
    TopicPartition,
    each,
)
from worker.loop.options import LoopOptions
from worker.probe import Probe, probing
from worker.wire.headers import (
    SOURCE,
    SOURCE_OFFSET,
    SOURCE_PARTITION,
    SOURCE_TOPIC,
    reduced_rejection,
)

_log = logging.getLogger(__name__)

_COMPLETIONS = 5
"""Attempts to write the rest of a transaction before it is given up."""

_KEYLESS = "INVALID_RECORD"
"""The code of a record without a key for a compacted topic; it has other causes, too."""

Outcome = Literal["committed", "completed", "aborted", "unknown"]
"""``completed``: it took effect in part; the rest was written in another transaction."""


class Commit(Protocol):
    """Writes records and commits offsets, as `Member.commit` does."""

    def __call__(
        self, records: Sequence[AnyOutgoing], offsets: Mapping[TopicPartition, int], /
    ) -> None:
        """Write the records and commit the offsets, or neither."""


class Ended(NamedTuple):
    """The end of a transaction."""

    outcome: Outcome
    began: float
    """When, by the clock."""
    seconds: float
    """The time until it ended, or its outcome was declared unknown."""

    @property
    def committed(self) -> bool:
        """Return whether all of it took effect."""
        return self.outcome in {"committed", "completed"}


class Transactions:
    """Carries out transactions, one after the other."""

    def __init__(  # noqa: PLR0913 -- everything that outcomes depend on
        self,
        stage: str,
        renew: Callable[[], None],
        effect: Callable[[], Effect],
        *,
        options: LoopOptions,
        probe: Probe,
        clock: Callable[[], float],
    ) -> None:
        """Take the stage's name, a function that makes a new producer, and `Member.effect`."""
        self._stage = stage
        self._renew = renew
        self._effect = effect
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
        self,
        records: Sequence[AnyOutgoing],
        offsets: Mapping[TopicPartition, int],
        commit: Commit,
    ) -> Ended:
        """Commit, and do what the table above requires.

        Raises:
            Refused: a topic refuses a record that has no smaller version.
            BusError: as `Member.commit` and `Member.renew` do.
        """
        began = self._clock()
        sent = list(records)
        outcome = self._attempt(sent, offsets, commit)
        seconds = self._clock() - began
        if outcome == "unknown":
            self._begin_anew()
        if outcome != "committed" and self._completed(sent, offsets, commit):
            outcome = "completed"
        ended = Ended(outcome, began, seconds)
        if ended.committed:
            self._failing_since = None
        return ended

    def _attempt(
        self,
        records: list[AnyOutgoing],
        offsets: Mapping[TopicPartition, int],
        commit: Commit,
    ) -> Outcome:
        """Commit once. Refused records are replaced in ``records``."""
        try:
            self._commit(records, offsets, commit)
        except Aborted as error:
            _log.warning("%s: transaction rolled back: %s", self._stage, error)
            return "aborted"
        except OutcomeUnknown as error:
            _log.warning("%s: outcome of the transaction unknown: %s", self._stage, error)
            return "unknown"
        return "committed"

    def _begin_anew(self) -> None:
        """Make the outcome final. Not within `_attempt`, whose error would hold the producer."""
        with probing(self._probe, "renew"):
            self._renew()

    def _completed(
        self,
        records: list[AnyOutgoing],
        offsets: Mapping[TopicPartition, int],
        commit: Commit,
    ) -> bool:
        """Write what is missing of a transaction that took effect in part; return whether done.

        Nobody else can have written the rest: as long as the offsets are not committed, they are
        committed with it, which the group refuses once the partitions have another owner. Once
        they are, no owner reads these records again.
        """
        effect = self._found() if records else None
        if effect is None or not effect.partial:
            return False
        for _ in range(_COMPLETIONS):
            records, offsets = _missing(records, offsets, effect)
            if not records and not offsets:
                return True
            _log.error(
                "%s: the brokers committed only a part of a transaction: %d of its records are"
                " missing, and its offsets are %s. Writing the rest",
                self._stage,
                len(records),
                "missing" if offsets else "there",
            )
            self._begin_anew()
            if self._attempt(records, offsets, commit) == "committed":
                return True
            self._begin_anew()
            effect = self._found()
            if effect is None:
                break
        _log.error(
            "%s: gave up: of a transaction that the brokers committed in part, %d records are still"
            " missing, and its offsets are %s. See the runbook, 'Half a transaction'",
            self._stage,
            len(records),
            "missing" if offsets else "there",
        )
        return False

    def _found(self) -> Effect | None:
        """Return what the last transaction has left in the log; None if it can't be found out."""
        try:
            return self._effect()
        except BusError as error:
            _log.warning("%s: can't see how the transaction ended: %s", self._stage, error)
            return None

    def _commit(
        self,
        records: list[AnyOutgoing],
        offsets: Mapping[TopicPartition, int],
        commit: Commit,
    ) -> None:
        """Commit; retry with smaller versions of refused records."""
        while True:
            try:
                commit(records, offsets)
            except Refused as error:
                refused, name, why = error.records, error.error, str(error)
            else:
                return
            # Not in the except block: an exception raised there would keep the caught one.
            records[:] = each(records)
            if not self._reduce(records, refused, why):
                raise Refused(described(why, refused, name), refused, name)

    def _reduce(self, records: list[AnyOutgoing], refused: Sequence[Outgoing], why: str) -> bool:
        """Replace the largest refused record that has a smaller version; return whether one has."""
        for record in sorted(refused, key=lambda one: one.size, reverse=True):
            smaller = reduced_rejection(record)
            if smaller is not None:
                sizes = record.size, smaller.size
                told = "%s: %s refuses a record of %d bytes; it is published with %d bytes: %s"
                about = {"topic": record.topic}
                _log.warning(told, self._stage, record.topic, *sizes, why, extra=about)
                records[records.index(record)] = smaller
                return True
        return False

    def give_up_after(self, ended: Ended, records: Sequence[AnyOutgoing]) -> None:
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
                sent = list(each(records))
                size = sum(record.size for record in sent)
                msg += (
                    f". The last transaction wrote {len(sent)} records ({size} bytes in total),"
                    f" and did not end within {longest:.0f} s. If the link or a quota is too slow"
                    " for that, raise kafka.transaction_timeout_ms"
                )
            raise BusError(msg)


def _missing(
    records: Sequence[AnyOutgoing],
    offsets: Mapping[TopicPartition, int],
    effect: Effect,
) -> tuple[list[AnyOutgoing], Mapping[TopicPartition, int]]:
    """Return the records and offsets of a transaction that are not committed."""
    sent = list(each(records))
    kept = effect.records or [False] * len(sent)
    left: list[AnyOutgoing] = [one for one, there in zip(sent, kept, strict=True) if not there]
    return left, {} if effect.offsets else offsets


def described(why: str, refused: Sequence[Outgoing], error: str) -> str:
    """Return why a topic refuses records, with the first or largest of them, and what to do.

    ``error`` is the log's own name for the error. A topic refuses whole batches, so records that
    it would take may be among them.
    """
    keyless = [record for record in refused if record.key is None] if error == _KEYLESS else []
    if keyless:
        one = keyless[0]
        more = f" ({len(keyless) - 1} more in this batch)" if len(keyless) > 1 else ""
        return (
            f"{why}. {one.topic} takes no record without a key, as a compacted topic does:"
            f" {_source(one)} has none{more}. Set cleanup.policy=delete on {one.topic}, or give all"
            " documents keys, and start the worker again"
        )
    if not refused:
        return why
    largest = max(refused, key=lambda record: record.size)
    return (
        f"{why}. {largest.topic} refuses, for one, {_source(largest)}: {largest.size} bytes with"
        f" headers; see max.message.bytes and the bounds of timestamps of {largest.topic}"
    )


def _source(record: Outgoing) -> str:
    """Return which document a record is about, as far as its headers tell."""
    found = {name: (value or b"").decode(errors="replace") for name, value in record.headers}
    if SOURCE in found:
        topic, partition, offset = found[SOURCE].rsplit("-", 2)
    elif SOURCE_OFFSET in found:
        topic, partition = found.get(SOURCE_TOPIC, "?"), found.get(SOURCE_PARTITION, "?")
        offset = found[SOURCE_OFFSET]
    else:
        return f"a record for {record.topic}"
    return f"the document {topic}[{partition}] offset {offset}"


_START = 1 / 16
_START_RECORDS = 250
"""The first burst has this share of what the settings allow, or this many records if that is
more. If the link is slow, this costs little."""
_LEAST_BYTES = 64 << 10
_LEAST_RECORDS = 100
"""The least that every burst may have. A transaction of so little is slow for another reason."""
_QUICK = 1 / 4
"""A share of the timeout."""
_SLOW = 1 / 2
"""A share of the timeout."""
_GROWTH = 3 / 2
"""The growth after a quick one. If the time is all due to the size, the next is not slow."""
_SLIGHT = 9 / 8
"""The growth after one that was neither quick nor slow. Where brokers are busy, it may take as long
whatever its size, and larger ones are the only way to catch up. The next one ends in time."""
_CAREFUL = 51 / 50
"""The growth under a quota. It repeatedly lets many seconds' worth of bytes pass at once, and only
then delays requests for the excess. Until then, every transaction is quick."""


class Pace:
    """Adapts the size of bursts to how long transactions take.

    A slow link, a quota or a busy broker makes transactions slow. A transaction that takes more
    than half of its timeout halves the next burst. If it also fails, or takes the whole timeout,
    the next burst is a quarter. Others let bursts grow again, but only if they were about as large
    as allowed: small ones say nothing about large ones.

    While brokers are away, bursts shrink one after the other without being the cause, down to the
    least. So they grow as soon as transactions end in time again, and fast once these are quick.
    Only where a quota applied, of which brokers tell, they approach that size slowly.
    """

    def __init__(self, records: int, size: int, timeout: float) -> None:
        """Take a burst's maximum records and bytes, and the transaction timeout in seconds."""
        self._most_records = records
        self._most_bytes = size
        self._timeout = timeout
        self._least_records = min(_LEAST_RECORDS, records)
        self._least = min(1.0, _LEAST_BYTES / size)
        self._share = min(1.0, max(_START, _START_RECORDS / records))
        self._wary: float | None = None
        """The least share at which a quota has applied; None if none has since bursts were full."""

    @property
    def records(self) -> int:
        """Return the maximum number of records to read for a burst."""
        return max(self._least_records, round(self._most_records * self._share))

    @property
    def size(self) -> int:
        """Return the maximum number of bytes that a burst may read or write."""
        return round(self._most_bytes * self._share)

    def filled(self, records: int, size: int) -> bool:
        """Return whether a burst was at least half as large as allowed."""
        return 2 * records >= self.records or 2 * size >= self.size

    def ended(
        self, seconds: float, *, committed: bool, filled: bool, throttled: bool = False
    ) -> None:
        """Adapt to a transaction's duration and outcome, and to whether a quota applied."""
        spent = seconds / self._timeout
        if spent >= 1 or (spent > _SLOW and not committed):
            factor = 1 / 4
        elif spent > _SLOW:
            factor = 1 / 2
        elif not committed or not filled:
            factor = 1.0
        elif throttled or (self._wary is not None and self._share >= self._wary):
            factor = _CAREFUL
        else:
            factor = _GROWTH if spent <= _QUICK else _SLIGHT
        self._share = min(1.0, max(self._least, self._share * factor))
        if throttled:
            self._wary = min(self._share, self._wary or 1.0)
        elif self._share >= 1:
            self._wary = None
