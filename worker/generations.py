"""The generations of an application's index: which one is in use, and which one is being built."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import msgspec

from worker.settings import Settings
from worker.signing import Signing
from worker.topology import Topology
from worker.wire import Layout, SetAside

__all__ = ["Generation", "Part", "Plan", "parts"]


class Generation(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The shards and the rules of one generation, and the fingerprints that it is built from.

    Attributes:
        number: 0 is the one with which the application began.
        shards: P.
        threshold: the similarity from which documents match.
        absorb: the similarity from which an entry stands for a document.
        bucket_capacity: the most entries of a bucket.
        window: how long a document is remembered, as in the settings.
        slots: of a signature.
        bands: of a signature.
        rows: of a band.
        containment: the share of a document from which it matches one that has it, or None.
        log: the generation for which its fingerprints were made. Those that share a log have the
            same slots, bands, rows and signing.
        numbered_from: see `Layout`.
        signing: what else makes its fingerprints; None: what it was when the application began.
            Of those that read log 0, only generation 0 says it, once there is another log.
    """

    number: int
    shards: int
    threshold: float
    absorb: float
    bucket_capacity: int
    window: str
    slots: int
    bands: int
    rows: int
    containment: float | None = None
    log: int = 0
    numbered_from: int = 0
    signing: Signing | None = None

    @classmethod
    def of(cls, settings: Settings, number: int = 0) -> Generation:
        """Return the generation that settings describe."""
        parameters, index = settings.parameters(), settings.index
        return cls(
            number,
            index.shards,
            parameters.threshold,
            settings.absorb,
            index.bucket_capacity,
            index.window,
            parameters.slots,
            parameters.bands,
            parameters.rows,
            parameters.containment,
        )

    @classmethod
    def fingerprinted(cls, settings: Settings) -> Generation:
        """Return the generation that settings describe, with what makes its fingerprints."""
        signing = Signing.of(settings.parameters())
        return msgspec.structs.replace(cls.of(settings), signing=signing)

    def settings(self, settings: Settings) -> Settings:
        """Return settings with this generation's in place of their own."""
        own: dict[str, object] = {"threshold": self.threshold, "slots": self.slots}
        own["containment"] = self.containment
        own |= {"bands": self.bands, "rows": self.rows}
        own |= self.signing.similarity() if self.signing is not None else {}
        rules = {"shards": self.shards, "absorb": self.absorb, "window": self.window}
        rules |= {"bucket_capacity": self.bucket_capacity}
        return settings.model_copy(
            update={
                "similarity": settings.similarity.model_copy(update=own),
                "index": settings.index.model_copy(update=rules),
            }
        )

    def topology(self, base: Topology) -> Topology:
        """Return the names of its topics; ``base`` is the topology of generation 0."""
        if not self.number:
            return base
        layout = self._layout(base)
        own = base if layout is None else base.refingerprinted(self.log, layout)
        return own.reindexed(self.number, self.shards, self.threshold, self.containment)

    def _layout(self, base: Topology) -> Layout | None:
        """Return the layout of its log, the same for all that read it; None: that of ``base``."""
        if not self.log or self.signing is None:
            return None
        given = self.signing.parameters(base.layout.parameters, self.slots, self.bands, self.rows)
        layout = Layout.of(f"{base.app}.g{self.log}", base.layout.begun_with, 1, given)
        return replace(layout, numbered_from=self.numbered_from, partitions=base.layout.partitions)

    def signer(self) -> Generation:
        """Return what makes the fingerprints of its log: the same for all that read it."""
        sized = self.signing is not None and self.signing.sized
        return msgspec.structs.replace(
            self,
            number=self.log,
            shards=1,
            threshold=1.0,
            absorb=1.0,
            bucket_capacity=1,
            window="none",
            containment=1.0 if sized else None,
        )

    def directory(self, state_dir: Path) -> Path:
        """Return where its stores lie in a worker's state directory."""
        return state_dir / f"g{self.number}" if self.number else state_dir


class Plan(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What all workers run.

    Attributes:
        base: generation 0, with which the application began.
        current: the generation in use.
        following: the one that is being built, or takes over.
        handed_over: whether the log has the hand-over to it.
        used: the highest number that a generation has had.
        left: earlier generations, and aborted ones, whose topics and groups may still be there.
        closing: whether workers seal the log of the one in use, because the following one has
            another; see `worker.stages.turns`.
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

    def begun(self, settings: Settings) -> Settings:
        """Return settings as those of generation 0; its topology goes with them."""
        base = self.base.settings(settings)
        if not self.partitions:
            return base
        return base.reindexed(base, lambda _: self.widened(base.topology(self.begun_with)))

    def widened(self, topology: Topology) -> Topology:
        """Return a topology with as many partitions of the documents as are read now."""
        return topology.widened(self.partitions) if self.partitions else topology

    def settings(self, settings: Settings) -> Settings:
        """Return settings as those of the generation in use; its topology goes with them."""
        base = self.begun(settings)
        current = self.current
        return current.settings(base).reindexed(base, current.topology) if current.number else base

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


class Part(NamedTuple):
    """A loop of a worker: a stage, and the generations that it reads or keeps.

    *fingerprint* has the generation for which its log was made, if that isn't the first one.
    ``sealed`` and ``starts`` are what `Plan.closing` and `Plan.starts` mean for it, and
    ``partitions`` and ``aside`` are what `Plan.partitions` and `Plan.aside` are for a stage that
    reads documents.
    """

    stage: str
    generations: tuple[Generation, ...] = ()
    sealed: bool = False
    starts: tuple[int, ...] = ()
    partitions: int = 0
    aside: tuple[SetAside, ...] = ()

    @property
    def name(self) -> str:
        """Return what to call it in logs, and its thread."""
        own = self.generations[-1:] if self.stage != "route" else ()
        number = own[0].number if own else 0
        return f"{self.stage}-g{number}" if number else self.stage

    def ahead(self, current: Generation) -> bool:
        """Return whether it works only for the generation after the one in use."""
        if self.stage == "index":
            return self.generations[0] != current
        if self.stage == "fingerprint":
            return (self.generations[0].log if self.generations else 0) != current.log
        return self.stage == "refingerprint"

    def holds(self, current: Generation) -> bool:
        """Return whether it reads nothing: its log is sealed, or has not begun."""
        return self.sealed or (
            self.stage == "fingerprint" and self.ahead(current) and not self.starts
        )


def parts(stages: Iterable[str], plan: Plan) -> list[Part]:
    """Return the loops of a worker with these stages."""
    found: list[Part] = []
    for stage in stages:
        if stage == "index":
            found += [Part(stage, (one,)) for one in plan.generations()]
        elif stage == "fingerprint":
            found += _signing(plan)
        else:
            found.append(
                Part(stage, plan.generations(), partitions=plan.partitions, aside=plan.aside)
            )
    return found


def _signing(plan: Plan) -> Iterator[Part]:
    """Yield the loops that write fingerprints, for the logs of both generations."""
    count, aside = plan.partitions, plan.aside
    own = _signer(plan.current)
    yield Part("fingerprint", own, sealed=plan.closing, partitions=count, aside=aside)
    if plan.following is not None and plan.rewriting:
        yield Part("refingerprint", (plan.current, plan.following), aside=aside)
        own = _signer(plan.following)
        yield Part("fingerprint", own, starts=plan.starts, partitions=count, aside=aside)


def _signer(generation: Generation) -> tuple[Generation, ...]:
    return (generation.signer(),) if generation.log else ()
