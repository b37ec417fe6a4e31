"""The retention that each log needs, and why: for new topics, the checks and the documentation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from worker.admin.problem import Rule, Severity
from worker.settings.units import duration_text
from worker.visible import counted

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
    """The retention that a topic needs: in milliseconds, -1 for ever, None for no rule."""

    topic: str
    readers: str
    why: str
    short: str
    """What happens if it keeps less."""
    new_ms: int | None = None
    """The retention of a new topic; None for the broker's default."""
    above_ms: int | None = None
    """A retention of at most this is an error: a worker doesn't start."""
    advised_ms: int | None = None
    """A retention of less than this is a warning."""
    compacted: Severity | None = None
    """The severity if the topic is not compacted; None if it needn't be."""
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

    @property
    def new(self) -> str:
        """Return what a new topic keeps, in words."""
        if self.compacted:
            return "the last record of each key (compacted)"
        kept = "the broker's default" if self.new_ms is None else _length(self.new_ms)
        if self.beyond is not None:
            kept += f"; with `index.window`, the window and {_length(self.beyond.new_ms)}"
        return kept

    @property
    def checked(self) -> str:
        """Return what `neardup topics verify` requires, in words."""
        if self.compacted:
            return f"compacted ({self.compacted})"
        if self.beyond is not None:
            above, advised = self.beyond.above_ms, self.beyond.advised_ms
            return (
                f"for ever (error); with `index.window`, more than the window and {_length(above)}"
                f" (error), at least the window and {_length(advised)} (warning)"
            )
        wanted = []
        if self.above_ms is not None:
            wanted.append(f"more than {_length(self.above_ms)} (error)")
        if self.advised_ms is not None:
            wanted.append(f"at least {_length(self.advised_ms)} (warning)")
        return ", ".join(wanted) or "nothing"


DOCUMENTS = Retention(
    "APP.documents",
    "*fingerprint*, then *route*",
    "*route* reads each payload a second time, after the verdict",
    "a document that is gone by then is published as `payload-gone` on `APP.rejected`",
    advised_ms=_DAY_MS,
)
FINGERPRINTS = Retention(
    "APP.fingerprints",
    "*index*, once per shard, and again when a shard is rebuilt",
    "the index is rebuilt from it; with `index.snapshots.trim_log` neardup itself deletes what the"
    " kept snapshots of all shards contain",
    "a lost shard can't be rebuilt, and the workers stop; with `index.window`, it is rebuilt"
    " without what is missing",
    new_ms=_FOREVER,
    beyond=Beyond(new_ms=7 * _DAY_MS, above_ms=_HOUR_MS, advised_ms=_DAY_MS),
)
MATCHES = Retention(
    "APP.matches-…",
    "*route*, once",
    "answers wait here while the workers are down",
    "documents whose answers were deleted unread can't be published, and the workers stop",
    new_ms=7 * _DAY_MS,
    above_ms=_HOUR_MS,
    advised_ms=_DAY_MS,
)
LOGS = (
    DOCUMENTS,
    FINGERPRINTS,
    Retention(
        "APP.shards",
        "nobody: its assignment says who owns which shard",
        "it has no records",
        "nothing",
    ),
    MATCHES,
    Retention(
        "APP.unique, APP.duplicate",
        "you",
        "no worker reads them",
        "slower readers miss documents",
    ),
    Retention(
        "APP.rejected",
        "`neardup redrive`, and you",
        "no worker reads it",
        "documents that were not redriven by then are gone; the next run reports this",
    ),
    Retention(
        "APP.layout",
        "each worker, when it starts",
        "it records what the workers have agreed on",
        "no worker starts any more",
        compacted="error",
    ),
    Retention(
        "APP.redrive",
        "`neardup redrive`",
        "it records what was sent again",
        "`neardup redrive` refuses to run, because it could send documents twice",
        compacted="warning",
    ),
)
"""In the order in which documents pass them."""


def table() -> str:
    """Return the documentation's table, in Markdown."""
    lines = [
        "| log | read by | a new one keeps | `topics verify` requires | why | if it keeps less |",
        "|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {', '.join(f'`{name}`' for name in log.topic.split(', '))} | {log.readers} | {log.new}"
        f" | {log.checked} | {log.why} | {log.short} |"
        for log in LOGS
    ]
    return "\n".join(lines) + "\n"


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
