"""The invariants, as pure functions of a run's history: each gives the problems it finds.

Modelled on the invariants of Jepsen's Kafka test and of Kafka's own system tests: no
loss, no doubling, order kept, one decision per document, every match decided earlier,
itself published, not forgotten and really similar, nothing aborted visible, no gap in
what was signed, and an index that equals one rebuilt from its log.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tests.support.checker.allowances import allowances
from tests.support.checker.coverage import coverage
from tests.support.checker.forgetting import forgetting
from tests.support.checker.history import (
    FrameRange,
    History,
    Sighting,
    Source,
    Verdict,
    frame_ranges,
    is_tombstone,
    reason,
    sightings,
    source,
    verdict_of,
    verdicts,
)
from tests.support.checker.index import (
    Dump,
    continued,
    dump,
    index_differences,
    rebuilt,
    unexpired,
)
from tests.support.checker.publication import (
    decisions,
    exactly_once,
    order,
    payloads,
    references,
)
from tests.support.checker.similarity import similarity
from tests.support.checker.visibility import visibility

__all__ = [
    "Dump",
    "FrameRange",
    "History",
    "Sighting",
    "Source",
    "Verdict",
    "allowances",
    "check",
    "continued",
    "coverage",
    "decisions",
    "differences",
    "dump",
    "exactly_once",
    "forgetting",
    "frame_ranges",
    "index_differences",
    "is_tombstone",
    "order",
    "payloads",
    "reason",
    "rebuilt",
    "references",
    "sightings",
    "similarity",
    "source",
    "unexpired",
    "verdict_of",
    "verdicts",
    "visibility",
]

SHOWN: Final = 5

INVARIANTS: Final = (
    exactly_once,
    payloads,
    order,
    decisions,
    references,
    similarity,
    visibility,
    coverage,
    forgetting,
    allowances,
)


def check(history: History, *, partial: bool = False) -> list[str]:
    """Check all invariants; return what is wrong, a few examples of each kind.

    ``partial``: the run ended before all was published, or lost what it can't do without. Then
    a match may name a document that is not published.
    """
    problems: list[str] = []
    for invariant in INVARIANTS:
        if partial and invariant is references:
            continue
        found = list(invariant(history))
        problems += found[:SHOWN]
        if len(found) > SHOWN:
            problems.append(f"… and {len(found) - SHOWN} more of {invariant.__name__}")
    return problems


def differences(
    published: Mapping[Source, Verdict], expected: Mapping[Source, Verdict]
) -> list[str]:
    """Say where two sets of decisions differ."""
    return [
        f"{at}: published {published.get(at)}, expected {expected.get(at)}"
        for at in sorted(published.keys() | expected.keys())
        if published.get(at) != expected.get(at)
    ][:SHOWN]
