"""``neardup skip``: have a batch of documents rejected that no worker can unpack."""

from __future__ import annotations

from contextlib import closing
from functools import partial
from typing import Annotated

import typer

from worker.admin.bad_batch import Attempts, Outcome, end_of
from worker.admin.cluster import Cluster
from worker.admin.layout_log import refuse_others
from worker.admin.reindex.in_use import in_use
from worker.bus import TopicPartition
from worker.bus.kafka.bus import KafkaBus
from worker.cli.errors import EXIT_FAILED, CommandError
from worker.cli.options import App, Bootstrap, Config, Json, for_kafka
from worker.cli.screen import print_json
from worker.generations.log import change_plan
from worker.generations.plan import Plan
from worker.settings.model import Settings
from worker.topology import Topology
from worker.visible import counted, tell
from worker.wire.frame import SetAside

_LEAST_MEMORY = 64 << 20


def skip(
    partition: Annotated[
        int,
        typer.Argument(metavar="PARTITION", min=0, help="Partition of the documents topic."),
    ],
    offset: Annotated[
        int,
        typer.Argument(
            metavar="OFFSET", min=0, help="Offset of the batch, as the worker's last line has it."
        ),
    ],
    bootstrap: Bootstrap = None,
    config: Config = None,
    app: App = None,
    *,
    to: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="OFFSET",
            help="The offset after the range to reject. Default: that after the batch, which is"
            " searched for.",
        ),
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="Do it. Without this option, only say what would be done.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Have the workers reject a batch of documents that can't be unpacked, and go on after it.

    A few kilobytes can unpack to more memory than a worker has. It then ends with a line that
    names the batch. All offsets of the batch go to the rejected topic, without their values.
    """
    settings = for_kafka(config, bootstrap, app)
    cluster = Cluster(settings.kafka_options())
    refuse_others(cluster, settings)  # A first plan says what the settings are.
    plan = in_use(cluster, settings)
    topology = plan.topology(settings, 1)
    log = TopicPartition(topology.documents, partition)
    low, high = _range(cluster, log, offset)
    _refuse_passed(cluster, topology, log, offset)
    why = "said by --to"
    if to is None:
        to, why = _batch_end(settings, log, offset, high)
    elif not offset < to <= high:
        raise CommandError(
            f"--to: got {to}, must be between {offset + 1} and the log's end, {high}"
        )
    aside = SetAside(partition, offset, to)
    if yes:
        base, bus = plan.base_topology(settings, 1), KafkaBus(settings.kafka_options())
        change_plan(bus, base, plan, partial(Plan.set_aside, aside=aside, low=low))
    if as_json:
        facts = {"topic": log.topic, "partition": partition, "start": offset, "end": to}
        print_json({**facts, "why": why, "set_aside": yes})
        return
    done = (
        "set aside: the workers reject these offsets unread when they come to them. What is"
        " forgotten by tombstones among them is not forgotten"
        if yes
        else "nothing was changed. With --yes, the workers reject these offsets unread"
    )
    tell(f"{log.topic}[{partition}] offsets {offset} to {to - 1} ({to - offset:,}): {why}; {done}")


def _range(cluster: Cluster, log: TopicPartition, offset: int) -> tuple[int, int]:
    _, counts = cluster.counts()
    if log.topic not in counts:
        raise CommandError(f"there is no topic {log.topic}; run `neardup topics create`")
    count = counts[log.topic][0]
    if log.partition >= count:
        raise CommandError(f"{log.topic} has {counted(count, 'partition')}, 0 to {count - 1}")
    low, high = cluster.ranges({log.topic: count})[log]
    if not low <= offset < high:
        raise CommandError(
            f"{log.topic}[{log.partition}] has offsets {low} to {high - 1}, but not {offset}"
        )
    return low, high


def _refuse_passed(cluster: Cluster, topology: Topology, log: TopicPartition, offset: int) -> None:
    """Refuse an offset that is behind all stages."""
    groups = [topology.group(stage) for stage in ("fingerprint", "route")]
    committed = cluster.committed({group: [log] for group in groups})
    reached = min(committed[group].get(log, 0) for group in groups)
    if offset < reached:
        raise CommandError(
            f"{log.topic}[{log.partition}] offset {offset} is behind the workers, which have"
            f" published up to {reached}: there is nothing to set aside",
            EXIT_FAILED,
        )


def _batch_end(settings: Settings, log: TopicPartition, offset: int, high: int) -> tuple[int, str]:
    """Return where the batch ends, and why it can't be read."""
    memory = max(_LEAST_MEMORY, settings.memory().total // 2)
    attempts = Attempts(settings, log, high, memory)
    where = f"{log.topic}[{log.partition}] offset {offset}"
    with closing(attempts):
        attempt = attempts(offset)
        if attempt.outcome is Outcome.READ:
            raise CommandError(
                f"{where} can be read within {memory >> 20:,} MiB, half of worker.memory: nothing"
                " was set aside. --to sets aside what can be read, too",
                EXIT_FAILED,
            )
        if attempt.outcome is Outcome.NOTHING:
            raise CommandError(f"{where} and what follows hold no document", EXIT_FAILED)
        tell(f"{where}: {attempt.why}. Looking for the end of the batch, which may take minutes")
        return end_of(attempts, offset, high), attempt.why
