"""The loops that a worker runs of a plan, and the mode in which each of them works."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from worker.generations.generation import Generation
from worker.generations.plan import Plan
from worker.topology import Topology
from worker.wire.frame import SetAside


@dataclass(frozen=True, slots=True)
class Mode:
    """For what a loop works.

    Attributes:
        work: ``use``: for the generation in use. ``build``: *index* builds the next generation.
            ``rewrite``: *refingerprint* makes the log of the next generation. ``seal``:
            *fingerprint* seals its log, and reads nothing more for it. ``wait``: it waits to be
            told where it begins the log of the next generation. ``begin``: it begins that.
        aside: the ranges of the documents that it does not read.
        following: in use, the next generation, whose answers *route* reads, too.
        source: of a rewriting, the log that it reads.
        starts: where a log begins, by partition of the documents.
    """

    work: Literal["use", "build", "rewrite", "seal", "wait", "begin"] = "use"
    aside: tuple[SetAside, ...] = ()
    following: Topology | None = None
    source: Topology | None = None
    starts: tuple[int, ...] = ()

    @property
    def in_use(self) -> bool:
        """Return whether it reads and writes for the generation in use."""
        return self.work == "use"

    @property
    def counts(self) -> bool:
        """Return whether it counts in the metrics of the pipeline: it reads what comes now."""
        return self.work in {"use", "begin"}

    @property
    def ahead(self) -> bool:
        """Return whether it works only for the generation after the one in use."""
        return self.work not in {"use", "seal"}

    @property
    def holds(self) -> bool:
        """Return whether it reads nothing: its log is sealed, or has not begun."""
        return self.work in {"seal", "wait"}


IN_USE: Final = Mode()


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
    mode: Mode = IN_USE
    generation: Generation | None = None

    @property
    def name(self) -> str:
        """Return what to call it in logs, and its thread."""
        topology = self.topology
        numbers = {"route": 0, "index": topology.generation}
        number = numbers.get(self.stage, topology.log)
        return f"{self.stage}-g{number}" if number else self.stage


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
    yield Part("index", plan.current.topology(base), IN_USE, plan.current)
    if plan.following is not None:
        yield Part("index", plan.following.topology(base), Mode("build"), plan.following)


def _routing(stage: str, plan: Plan, base: Topology) -> Part:
    following = None if plan.following is None else plan.following.topology(base)
    own = plan.current.topology(base)
    return Part(stage, own, Mode("use", plan.aside, following), plan.current)


def _signing(plan: Plan, base: Topology) -> Iterator[Part]:
    """Yield the loops that write fingerprints, for the logs of both generations."""
    mode = Mode("seal") if plan.closing else Mode("use", plan.aside)
    yield Part("fingerprint", _log(plan.current, base), mode)
    if plan.following is not None and plan.rewriting:
        source, target = plan.current.topology(base), _log(plan.following, base)
        yield Part("refingerprint", target, Mode("rewrite", plan.aside, source=source))
        begin = Mode("begin", plan.aside, starts=plan.starts)
        own = begin if plan.starts else Mode("wait")
        yield Part("fingerprint", target, own)


def _log(generation: Generation, base: Topology) -> Topology:
    """Return the topology by which the fingerprints of a generation's log are made."""
    return generation.signer().topology(base) if generation.log else base
