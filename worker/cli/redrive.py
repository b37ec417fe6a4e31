"""``neardup redrive``: send rejected documents through the filter again, exactly once each.

The transaction that sends documents also records the progress (see
`worker.admin.redrive.progress`). So nothing is sent twice, and a later run can send what this
one leaves out.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Annotated

import typer

from worker.admin.cluster import Cluster
from worker.admin.create import create_redrive
from worker.admin.plan import DEFAULT_MAX_BYTES, redrive_plan
from worker.admin.redrive.progress import BY_NAME
from worker.admin.redrive.run import Counts
from worker.admin.redrive.run import redrive as redrive_all
from worker.bus import BusError, Fenced
from worker.bus.kafka.bus import KafkaBus
from worker.bus.kafka.config import KafkaOptions
from worker.cli.errors import EXIT_FAILED, CommandError
from worker.cli.options import App, Bootstrap, Config, for_kafka
from worker.loop.options import LoopOptions
from worker.settings.model import Settings
from worker.topology import Topology
from worker.visible import counted, tell

_DELIVERY_MS = 15_000
"""Longer than a worker's: nobody waits for these transactions."""
_GIVING_UP_MS = 6_000
"""How much longer brokers wait: for a run to notice a lost answer, and to abort by itself."""
_BATCH_BYTES = 1_000_000
_NAMED = 20
"""How many refused documents to name; the progress topic has all of them."""


def redrive(
    bootstrap: Bootstrap = None,
    config: Config = None,
    app: App = None,
    *,
    reason: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CODE",
            help="Only documents rejected for this reason, such as no-text; may be repeated."
            " Default: all but poison and null-text, which must be named.",
        ),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Most documents to send."),
    ] = None,
) -> None:
    """Send rejected documents through the filter again, exactly once each.

    Documents that were rejected as poison have killed workers. They only go with --reason poison.
    Deletes of a change feed (null-text) only go with --reason null-text: they may forget what came
    after them.
    """
    settings = for_kafka(config, bootstrap, app)
    options = settings.kafka_options()
    delivery_ms = max(options.transaction_timeout_ms, _DELIVERY_MS)
    transaction_ms = delivery_ms + _GIVING_UP_MS
    patient = replace(
        options, transaction_timeout_ms=transaction_ms, delivery_timeout_ms=delivery_ms
    )
    cluster = Cluster(options)
    counts = Counts()
    try:
        topology, largest = _topics(cluster, settings)
        redrive_all(
            bus(patient, largest),
            topology,
            counts,
            reasons=tuple(reason or ()),
            limit=limit,
            options=LoopOptions(transaction_seconds=delivery_ms / 1_000),
            tell=tell,
        )
    except BusError as failure:
        raise CommandError(_ended(failure, counts, transaction_ms), EXIT_FAILED) from failure
    _summarise(counts)
    if counts.refused:
        first, *details = _refusals(counts, topology)
        raise CommandError(first, EXIT_FAILED, details)


def bus(options: KafkaOptions, largest: int) -> KafkaBus:
    """Return a bus for documents of any size; ``largest`` is their topic's max.message.bytes.

    No batch is larger than that, unless it is a single document: a batch that the topic refuses
    is one document.
    """
    size = min(int(options.producer.get("batch.size", _BATCH_BYTES)), largest)
    return KafkaBus(
        replace(
            options,
            producer={**options.producer, "compression.type": "zstd", "batch.size": size},
        )
    )


def _topics(cluster: Cluster, settings: Settings) -> tuple[Topology, int]:
    """Return the topology and the documents' max.message.bytes; create the progress topic.

    Raises:
        CommandError: a topic is missing, or the progress topic isn't compacted.
    """
    named = settings.topology(1)
    _, states = cluster.topics([named.documents, named.rejected, named.redrive])
    documents, rejected = states[named.documents], states[named.rejected]
    if documents is None or rejected is None:
        missing = named.documents if documents is None else named.rejected
        raise CommandError(f"there is no topic {missing}; run `neardup topics create`")
    progress = states[named.redrive]
    if progress is None:
        create_redrive(cluster, named, rejected.replicas)
    else:
        for rule in redrive_plan(named).rules:
            given = progress.settings.get(rule.setting)
            if rule.setting == "cleanup.policy" and given is not None and not rule.holds(given):
                raise CommandError(
                    f"{named.redrive}: {rule.setting} is {given}, must be {rule.takes}: otherwise"
                    " the topic forgets what was sent, and redrive sends it again; see"
                    " `neardup topics verify`"
                )
    largest = int(documents.settings.get("max.message.bytes", DEFAULT_MAX_BYTES))
    return settings.topology(documents.partitions), largest


def _ended(failure: BusError, counts: Counts, transaction_ms: int) -> str:
    why = str(failure)
    if isinstance(failure, Fenced):
        why = (
            "another redrive of this application took over, or this one was frozen for more than"
            f" {transaction_ms / 1_000:.0f} s"
        )
    sent = counted(counts.sent.total(), "was sent", "were sent")
    if counts.unknown:
        return (
            f"{why}; {sent}, and possibly {counts.unknown:,} more: the next run finds out, and"
            " continues from there"
        )
    return f"{why}; {sent}; the next run sends the rest"


def _refusals(counts: Counts, topology: Topology) -> list[str]:
    begun = f"{len(counts.refused):,} refused by {topology.documents}"
    lines = [f"{begun}, and left on {topology.rejected}; the next run tries them again:"]
    lines += [
        f"  {refusal.source}: {refusal.size:,} bytes, rejected as {refusal.reason},"
        f" refused as {refusal.error}"
        for refusal in counts.refused[:_NAMED]
    ]
    if len(counts.refused) > _NAMED:
        more = len(counts.refused) - _NAMED
        lines.append(f"  and {more:,} more; {topology.redrive} has a record for each")
    return lines


def _summarise(counts: Counts) -> None:
    def listed(codes: Counter[str]) -> str:
        return ", ".join(f"{code} {number:,}" for code, number in codes.most_common())

    lines = [f"{counts.sent.total():,} sent again" + _in_brackets(listed(counts.sent))]
    if counts.left:
        lines.append(f"{counts.left.total():,} left" + _in_brackets(listed(counts.left)))
    lines += [
        counted(counts.left[code], f"{code} document only goes", f"{code} documents only go")
        + f" with --reason {code}"
        for code in sorted(BY_NAME & counts.left.keys())
    ]
    if counts.foreign:
        lines.append(f"{counts.foreign:,} not written by neardup, and left")
    if counts.empty:
        lines.append(counted(counts.empty, "no longer has a payload", "no longer have a payload"))
    if counts.again:
        lines.append(f"{counts.again:,} had already been sent again")
    tell("; ".join([*lines, *counts.deleted]))


def _in_brackets(text: str) -> str:
    return f" ({text})" if text else ""
