"""The changes of the plan that a reindex makes, one after the other."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from worker.bus import Outgoing
from worker.generations import Generation, Plan
from worker.signing import Signing
from worker.topology import Topology
from worker.wire import HandOver

__all__ = ["aborted", "begun", "closed", "directed", "done", "handed_over", "widened"]

Changed = tuple[Plan, Sequence[Outgoing]] | None


def begun(plan: Plan, following: Generation, signing: Signing | None = None) -> Changed:
    """Have workers build a generation; nothing if one is being built.

    ``signing`` is what made the fingerprints of log 0, which the plan then says; see `Plan.signed`.
    """
    if plan.following is not None:
        return None
    known = plan if signing is None else plan.signed(signing)
    return known.building(following), ()


def closed(plan: Plan) -> Changed:
    """Have workers seal the log; nothing if they do, or the next generation has the same log."""
    if not plan.rewriting or plan.closing:
        return None
    return msgspec.structs.replace(plan, closing=True), ()


def handed_over(plan: Plan, base: Topology, number: int | None = None) -> Changed:
    """Have the generation that is built take over where the log ends; nothing if it has.

    With ``number``, nothing happens if another one is built. If it has another log, all partitions
    of this one must be sealed.
    """
    if plan.following is None or plan.handed_over:
        return None
    if number not in (None, plan.following.number) or (plan.rewriting and not plan.closing):
        return None
    current = plan.current.topology(base)
    marker = HandOver(current.layout.id, plan.following.number).encode()
    topic, number = current.order
    return msgspec.structs.replace(plan, handed_over=True), (Outgoing(topic, number, None, marker),)


def directed(plan: Plan, starts: Sequence[int]) -> Changed:
    """Have workers begin the new log's own frames; nothing if they have.

    The new log must have the hand-over. ``starts`` are the offsets that the old one has reached.
    """
    if not plan.rewriting or not plan.handed_over or plan.starts:
        return None
    return msgspec.structs.replace(plan, starts=tuple(starts)), ()


def done(plan: Plan) -> Changed:
    """Have workers leave the earlier generation; nothing unless the next one has taken over."""
    return (plan.done(), ()) if plan.following is not None and plan.handed_over else None


def aborted(plan: Plan) -> Changed:
    """Give up the generation that is being built; nothing if it takes over, or is about to."""
    if plan.following is None or plan.handed_over or plan.closing:
        return None
    return plan.aborted(), ()


def widened(plan: Plan, read: int, partitions: int) -> Changed:
    """Have workers read so many partitions of the documents; nothing unless they read ``read``."""
    if (plan.partitions or read) != read or plan.following is not None:
        return None
    begun_with = plan.begun_with or read
    return msgspec.structs.replace(plan, begun_with=begun_with, partitions=partitions), ()
