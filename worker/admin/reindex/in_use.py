"""The generation of the index that an application has in use, for commands and workers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import msgspec

from lsh import SWITCHES
from worker.admin.agreement import (
    Difference,
    agreed,
    differences,
    partitions_in,
    recorded,
    with_similarity,
)
from worker.admin.cluster import Cluster
from worker.generations.generation import Generation, Signing
from worker.generations.log import PLAN_KEY, load
from worker.generations.plan import Plan
from worker.settings.errors import ConfigurationError
from worker.settings.model import Settings

_RULES = {
    "index.shards": "shards",
    "similarity.threshold": "threshold",
    "similarity.containment": "containment",
    "index.absorb": "absorb",
    "index.bucket_capacity": "bucket_capacity",
    "index.window": "window",
}
"""The settings that a reindex may change, and their names in a generation."""
_SIZES = ("slots", "bands", "rows")
"""Settings that follow from others, unless they are set."""
_OF_TEXTS = (
    "documents.format",
    "documents.id_field",
    "documents.text_fields",
    "limits.text_characters",
)
_ELSEWHERE = ("documents.", "index.", "limits.", "partitions", "topics.")
"""Settings that change no text and no similarity, but for those in `_OF_TEXTS`."""


class JudgedBy(NamedTuple):
    """The settings by which workers judge.

    settings: those that were given, with what the application has recorded in place of their own.
    rules: whose rules these are; None if they are those that were given.
    others: in what else the workers' settings differ. No record has a seed, or a list of lines.
    """

    settings: Settings
    rules: str | None
    others: list[Difference]


def planned(cluster: Cluster, settings: Settings) -> Plan | None:
    """Return the plan of generations; None if the application was never reindexed.

    Raises:
        BusError: the cluster doesn't answer, or the plan can't be read.
    """
    topic = settings.topology(1).layout_log
    _, counts = cluster.counts()
    if topic not in counts:
        return None
    value = cluster.last_records(topic).get(PLAN_KEY)
    return None if value is None else load(value)


def in_use(cluster: Cluster, settings: Settings) -> Plan:
    """Return the plan of generations, also of an application that was never reindexed.

    Raises:
        BusError: the cluster doesn't answer, or the plan can't be read.
    """
    return planned(cluster, settings) or Plan.of(settings)


def other_rules(plan: Plan, settings: Settings) -> Iterator[Difference]:
    """Yield in what settings differ from the generation in use, unless they are another one's.

    A worker's settings may be those from before any reindex, or those for after it.
    """
    here = _said_by(settings)
    if not any(_agree(_facts(plan, one), here) for one in plan.ever()):
        yield from other_than_in_use(plan, settings)


def other_than_in_use(plan: Plan, settings: Settings) -> Iterator[Difference]:
    """Yield in what settings differ from the generation in use."""
    here = _said_by(settings)
    used = _facts(plan, plan.current)
    for name in used:
        if name in here and used[name] != here[name]:
            yield Difference(name, _said(used[name]), _said(here[name]))


def _facts(plan: Plan, generation: Generation) -> dict[str, object]:
    """Return by which settings a generation can be known."""
    facts = {name: getattr(generation, field) for name, field in _RULES.items()}
    facts |= {f"similarity.{name}": getattr(generation, name) for name in _SIZES}
    signing = plan.signing(generation)
    return facts if signing is None else facts | _made(signing)


def _said_by(settings: Settings) -> dict[str, object]:
    """Return the same of settings, without sizes that they leave open."""
    here = Generation.of(settings)
    facts = {name: getattr(here, field) for name, field in _RULES.items()}
    given = {name: getattr(settings.similarity, name) for name in _SIZES}
    facts |= {f"similarity.{name}": own for name, own in given.items() if own is not None}
    return facts | _made(Signing.of(settings.parameters()))


def _made(signing: Signing) -> dict[str, object]:
    """Return what makes fingerprints, by setting."""
    own = {"shingle": signing.shingle, "shingle_size": signing.shingle_size}
    own |= {name: name in signing.switches for name in SWITCHES}
    return {f"similarity.{name}": value for name, value in own.items()}


def _agree(one: Mapping[str, object], other: Mapping[str, object]) -> bool:
    return all(one[name] == other[name] for name in one.keys() & other.keys())


def _said(value: object) -> str:
    return "none" if value is None else str(value)


def judged_by(cluster: Cluster, settings: Settings) -> JudgedBy:
    """Return the settings by which workers judge now.

    Settings that were given for another application, or for none, don't decide it: the application
    has recorded with what it began, and what each reindex changed.

    Raises:
        ConfigurationError: the topic with these records is missing, or may not be seen.
        BusError: the cluster doesn't answer, or a record can't be read.
    """
    named = settings.topology(1)
    _, known = cluster.counts()
    if named.layout_log not in known:
        raise ConfigurationError(
            f"there is no topic {named.layout_log}, or no right to see it; run"
            " `neardup topics create`"
        )
    used, rules, others = settings, None, list[Difference]()
    facts = recorded(cluster, named)
    if facts is not None:
        used = with_similarity(settings, facts)
        here = agreed(used, used.topology(partitions_in(facts, named.documents) or 1))
        others = [one for one in differences(facts, here) if _concerns(one.name)]
        if used.parameters() != settings.parameters():
            rules = f"those that {named.app} has recorded; the settings given here differ"
    plan = planned(cluster, settings)
    if plan is not None:
        # After the hand-over, the next generation judges what comes now.
        used = msgspec.structs.replace(plan, current=plan.latest).settings(used)
        rules = f"generation {plan.latest.number} of the index, in use now"
    return JudgedBy(used, rules, others)


def _concerns(name: str) -> bool:
    """Return whether another value of a setting may change how similar two texts are."""
    return name in _OF_TEXTS or not name.startswith(_ELSEWHERE)
