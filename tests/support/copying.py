"""The simplest stage, for tests of who runs it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence

from worker.bus import Outgoing, PartitionUnreadable, RecordBatch, TopicPartition
from worker.stages.base import NOTHING, Burst, Shards


class Copier:
    """Copies values to the topic ``out``. It is ready at once, and holds nothing.

    Attributes:
        name: that of its group in metrics.
    """

    name = "copier"
    shards: Shards | None = None

    def adopt(
        self,
        offsets: Mapping[TopicPartition, int],
        watermarks: Callable[[TopicPartition], tuple[int, int]],
    ) -> dict[TopicPartition, int]:
        del watermarks
        return dict(offsets)

    def process(
        self,
        batches: Sequence[RecordBatch],
        room: int = sys.maxsize,
        quiet: Mapping[TopicPartition, int] = NOTHING,
    ) -> Burst:
        del room, quiet
        copies = [Outgoing("out", 0, None, value) for batch in batches for value in batch.values]
        return Burst(copies, {batch.place: batch.end for batch in batches})

    def committed(self) -> None:
        return

    def unreadable(self, error: PartitionUnreadable) -> int | None:
        raise error

    def close(self) -> None:
        return
