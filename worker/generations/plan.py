"""The plan of generations: which one is in use, which one is being built, and how that changes."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from worker.bus import Outgoing
from worker.generations.generation import Generation, Signing
from worker.settings.model import Settings
from worker.topology import Topology
from worker.wire.codec import HandOver
from worker.wire.frame import SetAside


class Plan(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What all workers run.

    Attributes:
        base: generation 0, with which the application began.
        current: the generation in use.
        following: the one that is being built, or takes over.
        handed_over: whether the log has the hand-over to it.
        used: the highest number that a generation has had.
        left: earlier generations, and aborted ones, whose topics and groups may still be there.
        cleaned: those whose topics and groups are deleted. Workers may still have their settings,
            so each set of rules is kept once, up to a number that nobody reaches.
        closing: whether workers seal the log of the one in use, because the following one has
            another; see `worker.generations.turns`.
        starts: where the documents begin that are fingerprinted for the following one's log, by
            partition; none before they are.
        begun_with: with how many partitions of the documents the application began, and
        partitions: how many are read now. Both are 0 until some are added.
        aside: the ranges of the documents that no worker reads.
    """

    base: Generation
    current: Generation
    following: Generation | None = None
    handed_over: bool = False
    used: int = 0
    left: tuple[Generation, ...] = ()
    cleaned: tuple[Generation, ...] = ()
    closing: bool = False
    starts: tuple[int, ...] = ()
    begun_with: int = 0
    partitions: int = 0
    aside: tuple[SetAside, ...] = ()

    @classmethod
    def of(cls, settings: Settings) -> Plan:
        """Return the plan of an application that was never reindexed."""
        base = Generation.of(settings)
        return cls(base, base)

    def building(self, following: Generation) -> Plan:
        """Return the plan in which this generation is built; its number is the next one.

        That is the number of its log, too, if ``following`` has one that isn't in use.
        """
        number = self.used + 1
        log = following.log if following.log <= self.used else number
        made = msgspec.structs.replace(following, number=number, log=log)
        return msgspec.structs.replace(self, following=made, handed_over=False, used=number)

    def signed(self, signing: Signing) -> Plan:
        """Return the plan that says what made log 0, which settings may soon not say any more."""
        if self.base.signing is not None:
            return self
        return msgspec.structs.replace(
            self, base=msgspec.structs.replace(self.base, signing=signing)
        )

    def signing(self, generation: Generation) -> Signing | None:
        """Return what made the fingerprints of a generation; None if only settings say it."""
        return generation.signing if generation.log else self.base.signing

    def done(self) -> Plan:
        """Return the plan in which the following generation is the one in use."""
        assert self.following is not None  # noqa: S101 -- the caller has looked
        return msgspec.structs.replace(
            self,
            current=self.following,
            following=None,
            handed_over=False,
            left=(*self.left, self.current),
            closing=False,
            starts=(),
        )

    def aborted(self) -> Plan:
        """Return the plan in which the following generation is given up."""
        assert self.following is not None  # noqa: S101 -- the caller has looked
        return msgspec.structs.replace(self, following=None, left=(*self.left, self.following))

    def settings(self, settings: Settings) -> Settings:
        """Return settings with the rules of the generation in use in place of their own."""
        return self.current.settings(self.base.settings(settings))

    def topology(self, settings: Settings, partitions: int) -> Topology:
        """Return the topology of the generation in use; for ``partitions`` see `base_topology`."""
        return self.current.topology(self.base_topology(settings, partitions))

    def base_topology(self, settings: Settings, partitions: int) -> Topology:
        """Return the topology of generation 0.

        ``partitions`` is how many the documents have. It counts as long as none were added since
        the application began; then the plan says how many are read.
        """
        begun = self.base.settings(settings).topology(self.begun_with or partitions)
        return self.widened(begun)

    def widened(self, topology: Topology) -> Topology:
        """Return a topology with as many partitions of the documents as are read now."""
        return topology.widened(self.partitions) if self.partitions else topology

    @property
    def rewriting(self) -> bool:
        """Return whether fingerprints are made for the following generation."""
        return self.following is not None and self.following.log != self.current.log

    @property
    def latest(self) -> Generation:
        """Return the generation that answers for what comes now."""
        if self.following is not None and self.handed_over:
            return self.following
        return self.current

    def generations(self) -> tuple[Generation, ...]:
        """Return those that workers run, the one in use first."""
        return (self.current,) if self.following is None else (self.current, self.following)

    def ever(self) -> tuple[Generation, ...]:
        """Return all generations that there have been, with those that are built or in use."""
        return (self.base, *self.cleaned, *self.left, *self.generations())

    def gone(self) -> list[int]:
        """Return the numbers of those that no worker runs any more, nor ever will again."""
        run = {one.number for one in self.generations()}
        return [number for number in range(self.used + 1) if number not in run]


_CLEANED = 1_000
"""The most that are kept in `Plan.cleaned`: with some 300 bytes each, a plan fits in a record."""

Changed = tuple[Plan, Sequence[Outgoing]] | None
"""A plan, and what is written to the log with it; None if nothing is to change."""


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


def cleaned(plan: Plan, deleted: Sequence[Generation]) -> Changed:
    """Record that nothing is left of generations; nothing if that is known of all of them."""
    found = [one for one in plan.left if one in deleted]
    if not found:
        return None
    kept = {_rules(one): one for one in (*plan.cleaned, *found)}
    left = tuple(one for one in plan.left if one not in found)
    return msgspec.structs.replace(plan, left=left, cleaned=tuple(kept.values())[-_CLEANED:]), ()


def _rules(one: Generation) -> Generation:
    """Return the rules of a generation alone: the same for all that have the same settings."""
    return msgspec.structs.replace(one, number=0, log=min(one.log, 1), numbered_from=0)


def widened(plan: Plan, read: int, partitions: int) -> Changed:
    """Have workers read so many partitions of the documents; nothing unless they read ``read``."""
    if (plan.partitions or read) != read or plan.following is not None:
        return None
    begun_with = plan.begun_with or read
    return msgspec.structs.replace(plan, begun_with=begun_with, partitions=partitions), ()
