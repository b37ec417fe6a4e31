"""What a worker runs of a plan: its loops, and the mode in which each of them works."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from worker.generations.generation import Generation
from worker.generations.plan import Plan
from worker.topology import Topology
from worker.wire.frame import SetAside


@dataclass(frozen=True, slots=True)
class InUse:
    """It works for the generation in use.

    Attributes:
        following: the next generation, whose answers *route* reads, too.
        aside: the ranges of the documents that it does not read.
    """

    following: Topology | None = None
    aside: tuple[SetAside, ...] = ()


@dataclass(frozen=True, slots=True)
class BeingBuilt:
    """*index* builds the next generation. It counts in no metric of the one in use."""


@dataclass(frozen=True, slots=True)
class Rewriting:
    """*refingerprint* makes the log of the next generation.

    Attributes:
        source: whose log it is made from.
        aside: as above.
    """

    source: Topology
    aside: tuple[SetAside, ...] = ()


@dataclass(frozen=True, slots=True)
class Sealing:
    """*fingerprint* seals its log, and reads nothing more for it."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """*fingerprint* waits to be told where it begins the log of the next generation."""


@dataclass(frozen=True, slots=True)
class Beginning:
    """*fingerprint* begins the log of the next generation.

    Attributes:
        starts: where, by partition of the documents.
        aside: as above.
    """

    starts: tuple[int, ...]
    aside: tuple[SetAside, ...] = ()


Mode = InUse | BeingBuilt | Rewriting | Sealing | Waiting | Beginning


class Part(NamedTuple):
    """A loop of a worker.

    Attributes:
        stage: what it runs.
        topology: what it reads and writes.
        mode: for what it works.
        generation: whose rules it has; None if its log is all that it has of one.
    """

    stage: str
    topology: Topology
    mode: Mode = InUse()
    generation: Generation | None = None

    @property
    def name(self) -> str:
        """Return what to call it in logs, and its thread."""
        topology = self.topology
        numbers = {"route": 0, "index": topology.generation}
        number = numbers.get(self.stage, topology.log)
        return f"{self.stage}-g{number}" if number else self.stage

    @property
    def ahead(self) -> bool:
        """Return whether it works only for the generation after the one in use."""
        return not isinstance(self.mode, InUse | Sealing)

    @property
    def holds(self) -> bool:
        """Return whether it reads nothing: its log is sealed, or has not begun."""
        return isinstance(self.mode, Sealing | Waiting)


def parts(stages: Iterable[str], plan: Plan, base: Topology) -> list[Part]:
    """Return the loops of a worker with these stages; ``base`` is generation 0's topology."""
    found: list[Part] = []
    for stage in stages:
        if stage == "index":
            found += _indexes(plan, base)
        elif stage == "fingerprint":
            found += _signing(plan, plan.widened(base))
        else:
            found.append(_routing(stage, plan, plan.widened(base)))
    return found


def _indexes(plan: Plan, base: Topology) -> Iterator[Part]:
    """Yield the loops of the index; no partition of the documents is theirs."""
    yield Part("index", plan.current.topology(base), InUse(), plan.current)
    if plan.following is not None:
        yield Part("index", plan.following.topology(base), BeingBuilt(), plan.following)


def _routing(stage: str, plan: Plan, base: Topology) -> Part:
    following = None if plan.following is None else plan.following.topology(base)
    own = plan.current.topology(base)
    return Part(stage, own, InUse(following, plan.aside), plan.current)


def _signing(plan: Plan, base: Topology) -> Iterator[Part]:
    """Yield the loops that write fingerprints, for the logs of both generations."""
    mode: Mode = Sealing() if plan.closing else InUse(aside=plan.aside)
    yield Part("fingerprint", _log(plan.current, base), mode)
    if plan.following is not None and plan.rewriting:
        source, target = plan.current.topology(base), _log(plan.following, base)
        yield Part("refingerprint", target, Rewriting(source, plan.aside))
        own: Mode = Beginning(plan.starts, plan.aside) if plan.starts else Waiting()
        yield Part("fingerprint", target, own)


def _log(generation: Generation, base: Topology) -> Topology:
    """Return the topology by which the fingerprints of a generation's log are made."""
    return generation.signer().topology(base) if generation.log else base
