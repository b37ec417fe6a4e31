"""A run of *redrive*: from the last run's end to the end of *rejected* at the run's start."""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import ExitStack, closing

from worker.admin.progress import Progress
from worker.admin.progress_log import ProgressLog
from worker.admin.redrive.run import Counts, Run
from worker.admin.redrive.sending import Sending
from worker.bus import Bus, TopicPartition
from worker.loop import LoopOptions
from worker.topology import Topology

__all__ = ["redrive"]


def redrive(  # noqa: PLR0913 -- the parts of a run
    bus: Bus,
    topology: Topology,
    counts: Counts,
    *,
    reasons: Collection[str] = (),
    limit: int | None = None,
    options: LoopOptions | None = None,
    inherited: Callable[[Collection[int]], dict[int, Progress]] = lambda _: {},
    tell: Callable[[str], None] = lambda _: None,
) -> None:
    """Send the rejected records to the documents again, and count them.

    ``inherited`` returns the progress of partitions from before there was a topic for it; ``tell``
    receives messages for the operator.

    Raises:
        Fenced: another run took over.
        BusError: the log failed. Up to `Counts.unknown` more documents may have been sent.
    """
    name, rejected = topology.redrive, topology.rejected
    with ExitStack() as stack:
        writer = stack.enter_context(closing(bus.log_writer(name, name)))
        lines = stack.enter_context(closing(bus.log_reader(name, [name])))
        reader = stack.enter_context(closing(bus.log_reader(name, [rejected])))
        log = ProgressLog(lines, name, rejected, bus.identity(rejected))
        sending = Sending(writer, log, options=options)
        # From here on no other run can write: only this run changes what the log says.
        sending.begin()
        places = range(bus.partitions([rejected])[rejected] or 0)
        spans = {n: reader.watermarks(TopicPartition(rejected, n)) for n in places}
        known = log.known()
        if log.empty:
            known = inherited(spans)
        elif log.recreated:
            tell(
                f"{rejected} was recreated since the last run (its id has changed):"
                " starting over with its earliest record"
            )
        run = Run(topology, reader, sending, log, reasons, limit, counts)
        run.begin(known, spans, new=log.empty)
        while run.step():
            pass
        run.finish()
