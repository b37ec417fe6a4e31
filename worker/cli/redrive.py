"""``neardup redrive``: rejected documents go through again, exactly once each.

How far that has come is written with what it sends (see `worker.admin.progress_log`), so
nothing is sent twice, and what is left out now is left for later.
"""

from __future__ import annotations

import logging
import sys
from collections import Counter
from collections.abc import Collection

from confluent_kafka import Consumer, KafkaException

from worker.admin import Cluster
from worker.admin.compacted import PARTITION
from worker.admin.create import create_redrive
from worker.admin.groups import reader
from worker.admin.plan import DEFAULT_MAX_BYTES, redrive_plan
from worker.admin.progress import Progress
from worker.admin.progress_log import ProgressLog, committed_progress
from worker.bus import BusError, OutcomeUnknown, TopicPartition
from worker.bus.kafka.errors import cause
from worker.cli.errors import EXIT_FAILED, CommandError
from worker.redrive import Counts, Run, Writer
from worker.settings import Settings
from worker.topology import Topology

__all__ = ["redrive"]

_ASKING_SECONDS = 15.0
_NAMED = 20
"""How many refused documents are named; the topic of the progress has all of them."""


def redrive(settings: Settings, *, reasons: Collection[str], limit: int | None) -> None:
    """Send the rejected to the documents again, and say how many.

    Raises:
        CommandError: a topic is missing or not as it must be, another redrive took over,
            Kafka failed, or documents were refused.
    """
    logging.getLogger("librdkafka").addHandler(logging.NullHandler())
    cluster = Cluster(settings.kafka_options())
    counts = Counts()
    try:
        topology, largest = _topics(cluster, settings)
        _pass(cluster, settings, topology, largest, counts, reasons=reasons, limit=limit)
    except (BusError, KafkaException, OutcomeUnknown) as failure:
        raise CommandError(_ended(failure, counts), EXIT_FAILED) from failure
    _summarise(counts)
    if counts.refused:
        raise CommandError(_refusals(counts, topology), EXIT_FAILED)


def _topics(cluster: Cluster, settings: Settings) -> tuple[Topology, int]:
    """Name all that is needed, make the topic of the progress; give the largest document, too."""
    named = Topology.of(settings, 1)
    _, states = cluster.topics([named.documents, named.rejected, named.redrive])
    documents, rejected = states[named.documents], states[named.rejected]
    if documents is None or rejected is None:
        missing = named.documents if documents is None else named.rejected
        raise CommandError(f"there is no topic {missing}; see `neardup topics create`")
    progress = states[named.redrive]
    if progress is None:
        create_redrive(cluster, named, rejected.replicas)
    else:
        for rule in redrive_plan(named).rules:
            given = progress.settings.get(rule.setting)
            if rule.setting == "cleanup.policy" and given is not None and not rule.holds(given):
                raise CommandError(
                    f"{named.redrive}: {rule.setting} is {given}, must be {rule.takes}, or it"
                    " forgets what was sent, and sends it again; see `neardup topics verify`"
                )
    largest = int(documents.settings.get("max.message.bytes", DEFAULT_MAX_BYTES))
    return Topology.of(settings, documents.partitions), largest


def _pass(  # noqa: PLR0913 -- what a run is made of
    cluster: Cluster,
    settings: Settings,
    topology: Topology,
    largest: int,
    counts: Counts,
    *,
    reasons: Collection[str],
    limit: int | None,
) -> None:
    options, name = settings.kafka_options(), topology.redrive
    writer = Writer(options, name, name, largest)
    try:
        with reader(options, name, **{"enable.partition.eof": True}) as consumer:
            # From here on no other run writes: what the log says now holds until this one adds.
            writer.begin()
            _, found = cluster.counts()
            partitions = found[topology.rejected][0]
            ranges = cluster.ranges({topology.rejected: partitions, name: 1})
            low, high = ranges.pop(TopicPartition(name, PARTITION))
            spans = {place.partition: span for place, span in ranges.items()}
            log = ProgressLog(name, topology.rejected, cluster.identity(topology.rejected))
            log.read(consumer, low, high)
            known = log.progress
            if log.empty:
                known = _taken_over(consumer, topology, spans)
            elif log.recreated:
                _say(
                    f"{topology.rejected} was made anew since the last run (its id is another):"
                    " starting over with its earliest record"
                )
            run = Run(topology, consumer, writer, log, reasons, limit, counts)
            run.begin(known, spans, new=log.empty)
            while run.step():
                pass
            run.finish()
    finally:
        writer.close()


def _taken_over(
    consumer: Consumer, topology: Topology, partitions: Collection[int]
) -> dict[int, Progress]:
    """Take what an earlier version committed to a group, as far as it has not expired."""
    known = committed_progress(consumer, topology.rejected, partitions, _ASKING_SECONDS)
    if known:
        _say(
            f"{topology.redrive}: taken over from the offsets of group {topology.redrive}, where"
            " earlier versions kept how far they had come"
        )
    return known


def _ended(failure: Exception, counts: Counts) -> str:
    why = str(failure)
    if isinstance(failure, KafkaException):
        error = cause(failure)
        why = f"{error.str()} ({error.name()})"
    sent = f"{counts.sent.total():,} were sent"
    if isinstance(failure, OutcomeUnknown):
        return (
            f"{why}; {sent}, and {counts.unknown:,} more perhaps: another run knows, and goes on"
            " from there"
        )
    return f"{why}; {sent}, the rest is left for another run"


def _refusals(counts: Counts, topology: Topology) -> str:
    begun = f"{len(counts.refused):,} refused by {topology.documents}"
    lines = [f"{begun}, and left on {topology.rejected}; another run tries them again:"]
    lines += [
        f"  {one.source}: {one.size:,} bytes, rejected as {one.reason}, refused as {one.error}"
        for one in counts.refused[:_NAMED]
    ]
    if len(counts.refused) > _NAMED:
        more = len(counts.refused) - _NAMED
        lines.append(f"  and {more:,} more; {topology.redrive} has a line about each")
    return "\n".join(lines)


def _summarise(counts: Counts) -> None:
    def listed(codes: Counter[str]) -> str:
        return ", ".join(f"{code} {number:,}" for code, number in codes.most_common())

    lines = [f"{counts.sent.total():,} sent again" + _in_brackets(listed(counts.sent))]
    if counts.left:
        lines.append(f"{counts.left.total():,} left" + _in_brackets(listed(counts.left)))
    if counts.empty:
        lines.append(f"{counts.empty:,} have no payload any more")
    if counts.again:
        lines.append(f"{counts.again:,} had been sent again before")
    _say("; ".join([*lines, *counts.deleted]))


def _in_brackets(text: str) -> str:
    return f" ({text})" if text else ""


def _say(line: str) -> None:
    print(line, file=sys.stderr)  # noqa: T201 -- what the command is there to say
