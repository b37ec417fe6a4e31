"""The rules for each topic: one list, for creating topics and for checking them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from worker.admin.problem import Rule, Severity
from worker.bus.kafka.config import COMPRESSION
from worker.settings.model import Settings
from worker.settings.units import duration_text
from worker.topology import Topology
from worker.visible import counted

DEFAULT_MAX_BYTES = 1_048_588
"""Kafka's default of max.message.bytes, which limits a compressed record batch."""

REJECTED_HEADERS_BYTES = 8 << 10
"""The size of what a rejected record adds to the document: its reason and its source."""

_GENEROUS_BYTES = 32 << 20
"""The limit of a new *rejected*: a document may have been compressed better when it came in."""

_BATCH_OVERHEAD_BYTES = 128
_BATCH_BYTES = 1_000_000
_SMALL_SEGMENT_BYTES = str(16 << 20)
"""Small, because compaction never cleans the active segment, and each run reads all of it."""

_NO_BOUND = str((1 << 63) - 1)


@dataclass(frozen=True, slots=True)
class TopicPlan:
    """A topic, its partition count, and the rules for its settings."""

    name: str
    partitions: int
    partitions_why: str
    rules: tuple[Rule, ...]
    internal: bool = False
    fixed_partitions: bool = True
    grows: bool = False
    """Whether it may have more partitions: they aren't read until a command says so."""
    required: bool = True
    """Whether workers need it to start."""

    @property
    def partitions_fix(self) -> str:
        """Return what to do about a different number of partitions, if it isn't internal."""
        if self.grows:
            return "it was recreated: see the runbook, 'A topic was recreated'"
        if not self.required:
            return "nothing: the other partitions stay empty"
        return "nothing: records then go to a partition by their key"

    def settings(self) -> dict[str, str]:
        """Return the settings of a new topic."""
        return {rule.setting: rule.value for rule in self.rules if rule.made}


def plan(settings: Settings, topology: Topology, documents_max_bytes: int) -> Iterator[TopicPlan]:
    """Yield the plan of every topic, the documents first."""
    batch = max(int(settings.kafka.producer.get("batch.size", _BATCH_BYTES)), _BATCH_BYTES)
    output = max(settings.limits.record_bytes, batch) + _BATCH_OVERHEAD_BYTES
    rejected = max(output, documents_max_bytes + REJECTED_HEADERS_BYTES)
    n = topology.layout.partitions
    producer = settings.kafka.producer
    codec = str(producer.get("compression.type", producer.get("compression.codec", COMPRESSION)))
    yield TopicPlan(
        topology.documents,
        n,
        f"{n}, as many as workers read",
        (
            _not_compacted("a compacted log drops documents before they are read"),
            _create_time("warning", "otherwise a document's time is its arrival on this topic"),
            Rule(
                "max.message.bytes",
                str(documents_max_bytes),
                "any size",
                lambda _: True,
                "",
            ),
            *DOCUMENTS.rules(),
            *_elected(),
        ),
        grows=True,
    )
    for name in (topology.unique, topology.duplicate):
        yield TopicPlan(
            name,
            n,
            f"{n}, so that documents keep their partition",
            (
                Rule(
                    "cleanup.policy",
                    "delete",
                    "delete",
                    lambda value: "compact" not in value,
                    "a compacted topic refuses documents without a key, which stops the worker",
                    "warning",
                ),
                *_output(output, codec),
            ),
            fixed_partitions=False,
        )
    yield TopicPlan(
        topology.rejected,
        n,
        f"{n}, or any other number",
        (
            _not_compacted("a compacted topic refuses documents without a key, and drops others"),
            *_output(rejected, codec, value=max(rejected, _GENEROUS_BYTES)),
        ),
        fixed_partitions=False,
    )
    kept = FINGERPRINTS.within(settings.index.log_window_ms)
    internal = (_not_compacted("frames have no keys"), *_frames(batch + _BATCH_OVERHEAD_BYTES))
    yield TopicPlan(
        topology.fingerprints,
        1,
        "1: its order is the order of all documents",
        (*internal, _log_append_time("error"), *kept.rules(), *_common(codec)),
        internal=True,
    )
    yield TopicPlan(
        topology.seats,
        topology.layout.shards,
        f"{topology.layout.shards}, as index.shards says",
        (_not_compacted("it stays empty"), *_elected()),
        internal=True,
    )
    for shard in range(topology.layout.shards):
        yield TopicPlan(
            topology.matches(shard),
            n,
            f"{n}, as many as workers read of {topology.documents}",
            (*internal, _log_append_time("warning"), *MATCHES.rules(), *_common(codec)),
            internal=True,
            grows=True,
        )
    yield _layout_plan(topology)
    yield redrive_plan(topology)


def _layout_plan(topology: Topology) -> TopicPlan:
    """Return the plan of the topic that records the workers' agreement."""
    return TopicPlan(
        topology.layout_log,
        1,
        "1, the only one that is used",
        (
            Rule(
                "cleanup.policy",
                "compact",
                "compact",
                lambda value: value == "compact",
                "retention would delete what the workers have agreed on, and then none starts",
            ),
            *_elected(),
        ),
        fixed_partitions=False,
    )


def redrive_plan(topology: Topology) -> TopicPlan:
    """Return the plan of the topic with the progress of *redrive*; no worker reads it."""
    return TopicPlan(
        topology.redrive,
        1,
        "1, the only one that is used",
        (
            Rule(
                "cleanup.policy",
                "compact",
                "compact",
                lambda value: value == "compact",
                "redrive refuses to run: it could forget what it has sent, and send it again",
                "warning",
            ),
            Rule("segment.bytes", _SMALL_SEGMENT_BYTES, "any size", lambda _: True, ""),
            *_elected(),
        ),
        fixed_partitions=False,
        required=False,
    )


def _output(max_bytes: int, codec: str, *, value: int | None = None) -> Iterator[Rule]:
    why = "the topic could refuse a record that neardup writes, which stops the worker"
    yield _sized(max_bytes, why, value=value)
    yield _create_time("warning", "records should keep the documents' time")
    for bound in ("message.timestamp.before.max.ms", "message.timestamp.after.max.ms"):
        yield Rule(
            bound,
            _NO_BOUND,
            "no bound that the documents don't have",
            lambda _: True,
            "this topic may refuse a document's time that the documents' topic has accepted",
        )
    yield from _common(codec)


def _frames(max_bytes: int) -> Iterator[Rule]:
    needed = max(max_bytes, DEFAULT_MAX_BYTES)
    yield _sized(max_bytes, "the topic would refuse frames, which stops the workers", value=needed)


def _sized(max_bytes: int, why: str, *, value: int | None = None) -> Rule:
    return Rule(
        "max.message.bytes",
        str(value or max_bytes),
        f"at least {max_bytes}",
        lambda given: int(given) >= max_bytes,
        why,
    )


def _common(codec: str) -> Iterator[Rule]:
    """Yield the rules for topics to which workers write, compressed with ``codec``."""
    yield from _elected()
    yield Rule(
        "compression.type",
        "producer",
        f"producer, or {codec}",
        lambda value: value in {"producer", codec},
        f"workers write {codec}, which the broker would unpack and compress again",
        "warning",
    )


def _elected() -> Iterator[Rule]:
    yield Rule(
        "unclean.leader.election.enable",
        "false",
        "false",
        lambda value: value == "false",
        "a broker that lags behind may become the leader, and committed records are lost",
        "warning",
    )


def _not_compacted(why: str) -> Rule:
    return Rule("cleanup.policy", "delete", "delete", lambda value: "compact" not in value, why)


def _create_time(severity: Severity, why: str) -> Rule:
    wanted = "CreateTime"
    return Rule("message.timestamp.type", wanted, wanted, lambda v: v == wanted, why, severity)


def _log_append_time(severity: Severity) -> Rule:
    wanted = "LogAppendTime"
    why = "the index measures time by this log" if severity == "error" else "it is the log's time"
    return Rule("message.timestamp.type", wanted, wanted, lambda v: v == wanted, why, severity)


_HOUR_MS = 3_600_000
_DAY_MS = 24 * _HOUR_MS
_FOREVER = -1


@dataclass(frozen=True, slots=True)
class Beyond:
    """By how many milliseconds a log's retention exceeds the window; see `Retention`."""

    new_ms: int
    above_ms: int
    advised_ms: int


@dataclass(frozen=True, slots=True)
class Retention:
    """The retention that a topic needs, and why: in milliseconds, -1 for ever, None for no rule."""

    why: str
    short: str
    """What happens if it keeps less."""
    new_ms: int | None = None
    """The retention of a new topic; None for the broker's default."""
    above_ms: int | None = None
    """A retention of at most this is an error: a worker doesn't start."""
    advised_ms: int | None = None
    """A retention of less than this is a warning."""
    beyond: Beyond | None = None
    """What it needs instead if the index forgets; None if that changes nothing."""

    def within(self, window_ms: int | None) -> Retention:
        """Return the retention for an index that needs this much of the log; None: all of it."""
        if window_ms is None or self.beyond is None:
            return self
        return replace(
            self,
            new_ms=window_ms + self.beyond.new_ms,
            above_ms=window_ms + self.beyond.above_ms,
            advised_ms=window_ms + self.beyond.advised_ms,
            beyond=None,
        )

    def rules(self) -> Iterator[Rule]:
        """Yield the rules for the topic's settings."""
        above, advised = self.above_ms, self.advised_ms
        value = str(7 * _DAY_MS if self.new_ms is None else self.new_ms)
        made = self.new_ms is not None
        if self.new_ms == _FOREVER:
            yield _forever("retention.ms", self.why)
        if above is not None:
            takes = f"more than {above} ({_length(above)})"
            yield Rule(
                "retention.ms", value, takes, lambda given: _longer(given, above), self.short
            )
        if advised is not None:
            yield Rule(
                "retention.ms",
                value,
                f"at least {advised} ({_length(advised)})",
                lambda given: (
                    _longer(given, advised - 1)
                    # A value that breaks the rule above is reported only once.
                    or (above is not None and not _longer(given, above))
                ),
                self.short,
                "warning",
                made,
            )
        if made:
            yield _forever("retention.bytes", self.why)


DOCUMENTS = Retention(
    "*route* reads each payload a second time, after the verdict",
    "a document that is gone by then is published as `payload-gone` on `APP.rejected`",
    advised_ms=_DAY_MS,
)
FINGERPRINTS = Retention(
    "the index is rebuilt from it; with `index.snapshots.trim_log` neardup itself deletes what the"
    " kept snapshots of all shards contain",
    "a lost shard can't be rebuilt, and the workers stop; with `index.window`, it is rebuilt"
    " without what is missing",
    new_ms=_FOREVER,
    beyond=Beyond(new_ms=7 * _DAY_MS, above_ms=_HOUR_MS, advised_ms=_DAY_MS),
)
MATCHES = Retention(
    "answers wait here while the workers are down",
    "documents whose answers were deleted unread can't be published, and the workers stop",
    new_ms=7 * _DAY_MS,
    above_ms=_HOUR_MS,
    advised_ms=_DAY_MS,
)


def _forever(setting: str, why: str) -> Rule:
    return Rule(setting, "-1", "-1 (no limit)", lambda given: int(given) < 0, why)


def _longer(given: str, than_ms: int) -> bool:
    return int(given) < 0 or int(given) > than_ms


def _length(milliseconds: int) -> str:
    if milliseconds == _FOREVER:
        return "for ever"
    size, unit = (_DAY_MS, "day") if milliseconds >= _DAY_MS else (_HOUR_MS, "hour")
    number, more = divmod(milliseconds, size)
    if more or not number:
        return duration_text(milliseconds)
    return counted(number, unit)
