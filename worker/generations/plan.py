"""The plan of generations: which one is in use, which one is being built, and how that changes.

A plan is in one of four states, and changes by these transitions alone:

==============  =============================  ==============
transition      from                           to
==============  =============================  ==============
`start_build`   idle                           building
`seal`          building, with another log     sealing
`hand_over`     building with the same log,    taking over
                else sealing
`begin_log`     taking over, with another log  taking over
`finish`        taking over                    idle
`abort`         building                       idle
`widen`         idle                           idle
`clean`         any                            the same
`set_aside`     any                            the same
==============  =============================  ==============

The following generation has another log than the one in use if it gets fingerprints of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

import msgspec

from worker.bus import Outgoing
from worker.generations.generation import Generation, Signing
from worker.settings.model import Settings
from worker.topology import Topology
from worker.wire.codec import HandOver
from worker.wire.frame import SetAside

State: TypeAlias = Literal["idle", "building", "sealing", "taking over"]

_CLEANED = 1_000
"""The most that are kept in `Plan.cleaned`: with some 300 bytes each, a plan fits in a record."""


class WrongState(Exception):
    """A plan is in a state from which a transition doesn't go, or the transition was made."""


class Plan(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The generations that all workers run, and the steps that were taken.

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

    @property
    def state(self) -> State:
        """Return the state: ``idle`` if no generation follows the one in use."""
        if self.following is None:
            return "idle"
        if self.handed_over:
            return "taking over"
        return "sealing" if self.closing else "building"

    def start_build(self, following: Generation, signing: Signing | None = None) -> Plan:
        """Return the plan in which workers build a generation, which gets the next number.

        That is the number of its log, too, if ``following`` has one that isn't in use. ``signing``
        is what made the fingerprints of log 0, which the plan then says; see `signed`.

        Raises:
            WrongState: a generation is being built, or takes over.
        """
        self._must(self.state == "idle")
        number = self.used + 1
        log = following.log if following.log <= self.used else number
        made = msgspec.structs.replace(following, number=number, log=log)
        known = self if signing is None else self.signed(signing)
        return msgspec.structs.replace(known, following=made, used=number)

    def seal(self) -> Plan:
        """Return the plan in which workers seal the log in use, since the next one has another.

        Raises:
            WrongState: nothing is being built with a log of its own, or workers seal already.
        """
        self._must(self.state == "building" and self.rewriting)
        return msgspec.structs.replace(self, closing=True)

    def hand_over(self, number: int | None = None) -> Plan:
        """Return the plan in which the generation that is built takes over where the log ends.

        It is written with `marker`. If the generation has another log, all partitions of the one
        in use must be sealed.

        Raises:
            WrongState: nothing is being built, the log in use must be sealed first, or the
                generation that is built isn't ``number``.
        """
        self._must(self.state == ("sealing" if self.rewriting else "building"))
        self._must(self.following is not None and number in (None, self.following.number))
        return msgspec.structs.replace(self, handed_over=True)

    def marker(self, base: Topology) -> Outgoing:
        """Return the record at which the following generation takes over, for the log in use."""
        assert self.following is not None  # noqa: S101 -- it takes over
        current = self.current.topology(base)
        topic, number = current.order
        value = HandOver(current.layout.id, self.following.number).encode()
        return Outgoing(topic, number, None, value)

    def begin_log(self, starts: Sequence[int]) -> Plan:
        """Return the plan in which workers begin the new log's own frames.

        The new log must have the hand-over. ``starts`` are the offsets of the documents that the
        earlier one has reached, by partition.

        Raises:
            WrongState: no generation with a log of its own takes over, or they have begun.
        """
        self._must(self.state == "taking over" and self.rewriting and not self.starts)
        return msgspec.structs.replace(self, starts=tuple(starts))

    def finish(self) -> Plan:
        """Return the plan in which the following generation is the one in use.

        Raises:
            WrongState: none has taken over.
        """
        self._must(self.state == "taking over")
        assert self.following is not None  # noqa: S101 -- it has taken over
        return msgspec.structs.replace(
            self,
            current=self.following,
            following=None,
            handed_over=False,
            left=(*self.left, self.current),
            closing=False,
            starts=(),
        )

    def abort(self) -> Plan:
        """Return the plan in which the following generation is given up.

        Raises:
            WrongState: none is being built, or it takes over, or is about to.
        """
        self._must(self.state == "building")
        assert self.following is not None  # noqa: S101 -- it is being built
        return msgspec.structs.replace(self, following=None, left=(*self.left, self.following))

    def widen(self, read: int, partitions: int) -> Plan:
        """Return the plan in which workers read so many partitions of the documents.

        Raises:
            WrongState: they don't read ``read`` now, or a generation is being built.
        """
        self._must(self.state == "idle" and (self.partitions or read) == read)
        begun_with = self.begun_with or read
        return msgspec.structs.replace(self, begun_with=begun_with, partitions=partitions)

    def clean(self, deleted: Sequence[Generation]) -> Plan:
        """Return the plan that says that nothing is left of these generations.

        Raises:
            WrongState: the plan says it of all of them.
        """
        gone = [one for one in self.left if one in deleted]
        self._must(bool(gone))
        kept = {_rules(one): one for one in (*self.cleaned, *gone)}
        left = tuple(one for one in self.left if one not in gone)
        return msgspec.structs.replace(self, left=left, cleaned=tuple(kept.values())[-_CLEANED:])

    def set_aside(self, aside: SetAside, low: int) -> Plan:
        """Return the plan in which no worker reads a range of the documents.

        Ranges of the same partition that end at ``low`` or before are forgotten: the log has
        deleted them.
        """
        kept = {one for one in self.aside if one.partition != aside.partition or one.end > low}
        ranges = sorted({*kept, aside}, key=lambda one: (one.partition, one.start, one.end))
        return msgspec.structs.replace(self, aside=tuple(ranges))

    def _must(self, hold: bool) -> None:  # noqa: FBT001 -- a condition
        if not hold:
            raise WrongState(self.state)

    def signed(self, signing: Signing) -> Plan:
        """Return the plan that says what made log 0, which settings may soon not say any more."""
        if self.base.signing is not None:
            return self
        base = msgspec.structs.replace(self.base, signing=signing)
        return msgspec.structs.replace(self, base=base)

    def signing(self, generation: Generation) -> Signing | None:
        """Return what made the fingerprints of a generation; None if only settings say it."""
        return generation.signing if generation.log else self.base.signing

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


def _rules(one: Generation) -> Generation:
    """Return the rules of a generation alone: the same for all that have the same settings."""
    return msgspec.structs.replace(one, number=0, log=min(one.log, 1), numbered_from=0)
