"""The changes of the plan that a reindex makes, one after the other."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from worker.bus import Outgoing
from worker.generations import Generation, Plan
from worker.topology import Topology
from worker.wire import HandOver

__all__ = ["aborted", "begun", "done", "handed_over"]

Changed = tuple[Plan, Sequence[Outgoing]] | None


def begun(plan: Plan, following: Generation) -> Changed:
    """Have workers build a generation; nothing if one is being built."""
    return None if plan.following is not None else (plan.building(following), ())


def handed_over(plan: Plan, base: Topology) -> Changed:
    """Have the generation that is built take over where the log ends; nothing if it has."""
    if plan.following is None or plan.handed_over:
        return None
    marker = HandOver(base.layout.id, plan.following.number).encode()
    topic, number = base.order
    return msgspec.structs.replace(plan, handed_over=True), (Outgoing(topic, number, None, marker),)


def done(plan: Plan) -> Changed:
    """Have workers leave the earlier generation; nothing unless the next one has taken over."""
    return (plan.done(), ()) if plan.following is not None and plan.handed_over else None


def aborted(plan: Plan) -> Changed:
    """Give up the generation that is being built; nothing if it has taken over."""
    return None if plan.following is None or plan.handed_over else (plan.aborted(), ())
