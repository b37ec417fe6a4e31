"""Sends documents, together with the progress, in transactions under one name.

Only the run that began last under the name can write: an earlier run that is stalled or still
active is fenced. So once a run has begun, the topic of the progress says exactly what was sent,
and only that run changes it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from time import monotonic

from worker.admin.redrive.progress_log import Line, ProgressLog
from worker.bus import AnyOutgoing, BusError, Fenced, LogWriter, Outgoing, Refused, TopicPartition
from worker.bus.ranges import PARTITION
from worker.loop.options import LoopOptions
from worker.loop.transactions import Transactions
from worker.probe import UNWATCHED


class Sending:
    """Carries out each transaction; the topic shows how one in doubt has ended.

    Attributes:
        doubtful: whether the last transaction's outcome is still unknown.
    """

    def __init__(
        self,
        writer: LogWriter,
        log: ProgressLog,
        *,
        options: LoopOptions | None = None,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        """Take a writer, and the topic of the progress."""
        self.doubtful = False
        self._writer = writer
        self._log = log
        self._transactions = Transactions(
            "redrive",
            self._renew,
            writer.effect,
            options=options or LoopOptions(),
            probe=UNWATCHED,
            clock=clock,
        )

    def begin(self) -> None:
        """Fence earlier runs, end their open transactions, and read their progress.

        Raises:
            BusError: not done in time, or refused.
        """
        self._writer.renew()
        self._log.read()

    def send(self, documents: Sequence[Outgoing], lines: Sequence[Line]) -> Refused | None:
        """Write documents and lines of the progress together, exactly once.

        Returns the refusal, if anything was refused; then nothing was written.

        Raises:
            Fenced: a later run took over.
            BusError: Kafka failed.
        """
        topic = self._log.topic
        records = [*documents, *(Outgoing(topic, PARTITION, key, value) for key, value in lines)]
        while True:
            refused: Refused | None = None
            try:
                ended = self._transactions.see_through(records, {}, self._commit)
            except Refused as error:
                refused = Refused(str(error), error.records, error.error)
            if refused is None and ended.committed:
                self._log.note(lines)
                self.doubtful = False
                return None
            if refused is not None and any(one.topic == topic for one in refused.records):
                raise BusError(str(refused))
            if refused is not None or ended.outcome == "aborted":
                self._renew()
            if self._written(lines):
                return None
            if refused is not None:
                return refused
            self._transactions.give_up_after(ended, records)

    def _commit(
        self,
        records: Sequence[AnyOutgoing],
        _offsets: Mapping[TopicPartition, int],
    ) -> None:
        try:
            self._writer.commit(records)
        except Fenced:
            self.doubtful = True
            raise

    def _renew(self) -> None:
        self.doubtful = True
        self._writer.renew()

    def _written(self, lines: Sequence[Line]) -> bool:
        """Return whether the last transaction was committed, according to the topic.

        Raises:
            Fenced: another run has written in between, so this can't be determined.
        """
        before, after = dict(self._log.lines), self._log.after(lines)
        self._log.read()
        if self._log.lines not in (before, after):
            raise Fenced(f"another run has written to {self._log.topic}")
        self.doubtful = False
        return self._log.lines == after
