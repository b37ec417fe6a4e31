"""Goes on after the documents lost their end: what took the place of others is rejected."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing

from worker.admin.checks import Inspection
from worker.admin.cluster import Cluster
from worker.bus import LogWriter, Outgoing, Record, TopicPartition
from worker.bus.kafka.bus import KafkaBus
from worker.bus.ranges import read_bursts
from worker.settings.errors import ConfigurationError
from worker.wire.headers import NOT_JUDGED, rejection

_RECORDS = 500
"""The most records in a transaction."""


def accept_cut(cluster: Cluster, found: Inspection) -> int:
    """Have the groups go on at their offsets; return how many documents were rejected.

    *Fingerprint* has read the offsets before its own, and *route* has published those before its
    own. The documents that have these offsets now, from the cut on, are published on *rejected*.
    *Route* itself rejects those from its own offset on. Offsets are accepted last: whoever is
    killed before that does all of it again.

    Raises:
        ConfigurationError: a log between the stages was cut off, or it isn't known where; or the
            documents' log has not grown past an offset again.
        BusError: a worker is running, or the cluster doesn't answer, or refuses.
    """
    topology, cut = found.topology, found.truncated
    for one in cut:
        if one.internal or one.log.end is None:
            raise ConfigurationError(f"{one.problem}; {one.problem.fix}")
        if one.offset > found.ranges[one.place][1]:
            raise ConfigurationError(
                f"{one.problem}; it ends at {found.ranges[one.place][1]} now: let its sources write"
                f" until it has grown past {one.offset}, and run this again"
            )
    offsets: dict[str, dict[TopicPartition, int]] = {}
    epochs: dict[str, dict[TopicPartition, int]] = {}
    for one in cut:
        offsets.setdefault(one.group, {})[one.place] = one.offset
        epochs.setdefault(one.group, {})[one.place] = one.log.claim.epoch
    for group, partitions in offsets.items():  # Refused while a group has members.
        cluster.commit(group, partitions, epochs=epochs[group])
    route = topology.group("route")
    spans = {
        one.place: (one.log.end, one.offset)
        for one in cut
        if one.group == route and one.log.end is not None
    }
    rejected = 0
    if spans:
        bus = KafkaBus(cluster.options)
        with (
            closing(bus.log_reader(route, [topology.documents])) as reader,
            closing(bus.log_writer(topology.layout_log, topology.rejected)) as writer,
        ):
            writer.renew()
            for records in read_bursts(reader, spans, limit=_RECORDS):
                rejected += _reject(writer, topology.rejected, records)
    for group, partitions in offsets.items():
        cluster.commit(group, partitions)
    return rejected


def _reject(writer: LogWriter, topic: str, records: Iterable[Record]) -> int:
    rejected = [
        Outgoing(
            topic,
            None,
            record.key,
            record.value,
            rejection(record, "init", NOT_JUDGED),
            record.timestamp if record.timestamp >= 0 else None,
        )
        for record in records
    ]
    writer.commit(rejected)
    return len(rejected)
