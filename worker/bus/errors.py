"""The errors of the port. The caller decides what follows from each."""

from __future__ import annotations

from collections.abc import Sequence

from worker.bus.records import Claim, Outgoing, TopicPartition


class BusError(Exception):
    """Fatal: the member can't continue. The message says what to do."""


class Away(BusError):
    """What it takes beside the log can't be reached now. Nothing was changed: try again."""


class Denied(BusError):
    """The log doesn't allow this; waiting would not mend it. The message names the right."""


class PartitionUnreadable(BusError):
    """A partition can't be read from its position. Other partitions can.

    ``whole`` is whether the log has the batch there as it was written: reading it from another
    replica, or from a backup, would not help.
    """

    def __init__(
        self, partition: TopicPartition, position: int, why: str, *, whole: bool = False
    ) -> None:
        """Take the partition, the offset of the next record to read, and the reason."""
        self.partition = partition
        self.position = position
        self.why = why
        self.whole = whole
        super().__init__(
            f"{partition.topic}[{partition.partition}] can't be read from offset {position}: {why}"
        )


class Unanswered(BusError):
    """A read-only request got no answer in time. It changed nothing."""


class Fenced(BusError):
    """Another process uses this instance's name, or the group has evicted this one for good."""


class TopicRecreated(BusError):
    """A topic was deleted and recreated: it is not the one that the group has read."""

    def __init__(self, topic: str, was: str, now: str) -> None:
        """Take the topic, its old id and its new one."""
        self.topic = topic
        self.was = was
        self.now = now
        super().__init__(
            f"{topic} was deleted and recreated: the group has read the topic with id {was}, and"
            f" {topic} now has id {now}. Unread records of the old topic were neither judged nor"
            " rejected, and nothing of the new topic was read. See the runbook, 'A topic was"
            " recreated'"
        )


class LogTruncated(BusError):
    """A log has lost its end, which was read: what has those offsets now, or later, is not that."""

    def __init__(self, partition: TopicPartition, claim: Claim, end: int | None) -> None:
        """Take the partition, what was known of it, and where it was cut off, if that is known."""
        self.partition = partition
        self.claim = claim
        self.end = end
        where = "" if end is None else f" from offset {end} on"
        super().__init__(
            f"{partition.topic}[{partition.partition}]: the log has lost its end{where}. It had"
            f" been read up to offset {claim.offset}, in leader epoch {claim.epoch}: records that"
            " were read are gone, and nobody would read the others that get their offsets. See"
            " the runbook, 'A log that lost its end'"
        )


class Refused(BusError):
    """Topics refused these records, and the transaction was rolled back.

    A topic refuses a whole batch, so ``records`` may include others of the transaction. The loop
    tries again with a smaller version of the largest record; if there is none, this is fatal.
    """

    def __init__(self, text: str, records: Sequence[Outgoing], error: str = "") -> None:
        """Take the message, the refused records, and the log's own name for the error."""
        self.records = records
        self.error = error
        super().__init__(text)


class Aborted(Exception):
    """The transaction was rolled back: none of it will ever be visible.

    The loop drops what it computed and continues from the committed offsets.
    """


class OutcomeUnknown(Exception):
    """It is unknown whether the transaction was committed.

    The loop calls `Member.renew`, then continues from the committed offsets.
    """


class OffsetOutOfRange(Exception):
    """A position is before the start or after the end of the log.

    ``high`` may be the last stable offset.
    """

    def __init__(self, partition: TopicPartition, position: int, low: int, high: int) -> None:
        """Take the partition, the requested position, and the log's half-open range."""
        self.partition = partition
        self.position = position
        self.low = low
        self.high = high
        super().__init__(
            f"{partition.topic}[{partition.partition}]: offset {position} is outside the log"
            f" [{low}, {high})"
        )
