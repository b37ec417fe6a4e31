"""The generation of the index that an application has in use, for commands and workers."""

from __future__ import annotations

from collections.abc import Iterator

from worker.admin.agreement import Difference
from worker.admin.cluster import Cluster
from worker.admin.reindex.plan_log import PLAN_KEY, load
from worker.generations import Generation, Plan
from worker.settings import Settings

__all__ = ["as_begun", "in_use", "other_rules", "planned"]

_RULES = {
    "index.shards": "shards",
    "similarity.threshold": "threshold",
    "similarity.containment": "containment",
    "index.absorb": "absorb",
    "index.bucket_capacity": "bucket_capacity",
    "index.window": "window",
}
"""What a reindex may change: the settings, and what they are in a generation."""


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


def in_use(cluster: Cluster, settings: Settings) -> Settings:
    """Return the settings with those of the generation in use in place of their own.

    Settings that name neither this generation nor an earlier or later one stay as they are: they
    are another's, and a check will say so.

    Raises:
        BusError: the cluster doesn't answer, or the plan can't be read.
    """
    plan = planned(cluster, settings)
    if plan is None or list(other_rules(plan, settings)):
        return settings
    return plan.settings(settings)


def as_begun(cluster: Cluster, settings: Settings) -> Settings:
    """Return the settings with those of generation 0 in place of their own; see `in_use`.

    Raises:
        BusError: the cluster doesn't answer, or the plan can't be read.
    """
    plan = planned(cluster, settings)
    if plan is None or list(other_rules(plan, settings)):
        return settings
    return plan.base.settings(settings)


def other_rules(plan: Plan, settings: Settings) -> Iterator[Difference]:
    """Yield in what settings differ from the generation in use, unless they are another one's.

    A worker's settings may be those from before a reindex, or those for after it.
    """
    here = Generation.of(settings)
    known = {plan.base, *plan.generations(), *plan.left}
    if any(_rules(here) == _rules(one) for one in known):
        return
    for name, (used, own) in {
        name: (getattr(plan.current, field), getattr(here, field)) for name, field in _RULES.items()
    }.items():
        if used != own:
            yield Difference(name, _said(used), _said(own))


def _said(value: object) -> str:
    return "none" if value is None else str(value)


def _rules(generation: Generation) -> tuple[object, ...]:
    return tuple(getattr(generation, field) for field in _RULES.values())
