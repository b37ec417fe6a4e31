"""The generations of an application's index: which one is in use, and which one is being built."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import msgspec

from worker.settings import Settings
from worker.topology import Topology

__all__ = ["Generation", "Part", "Plan", "parts"]


class Generation(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The shards and the rules of one generation; the fingerprints are those of all.

    Attributes:
        number: 0 is the one with which the application began.
        shards: P.
        threshold: the similarity from which documents match.
        absorb: the similarity from which an entry stands for a document.
        bucket_capacity: the most entries of a bucket.
        window: how long a document is remembered, as in the settings.
        slots: of a signature; the same in all generations.
        bands: of a signature; the same in all generations.
        rows: of a band; the same in all generations.
        containment: the share of a document from which it matches one that has it, or None.
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

    def settings(self, settings: Settings) -> Settings:
        """Return settings with this generation's in place of their own."""
        own: dict[str, float | None] = {"threshold": self.threshold, "slots": self.slots}
        own["containment"] = self.containment
        own |= {"bands": self.bands, "rows": self.rows}
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
        return base.reindexed(self.number, self.shards, self.threshold, self.containment)

    def directory(self, state_dir: Path) -> Path:
        """Return where its stores lie in a worker's state directory."""
        return state_dir / f"g{self.number}" if self.number else state_dir


class Plan(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What all workers run.

    Attributes:
        base: generation 0, which says how fingerprints are made.
        current: the generation in use.
        following: the one that is being built, or takes over.
        handed_over: whether the log has the hand-over to it.
        used: the highest number that a generation has had.
        left: earlier generations, and aborted ones, whose topics and groups may still be there.
    """

    base: Generation
    current: Generation
    following: Generation | None = None
    handed_over: bool = False
    used: int = 0
    left: tuple[Generation, ...] = ()

    @classmethod
    def of(cls, settings: Settings) -> Plan:
        """Return the plan of an application that was never reindexed."""
        base = Generation.of(settings)
        return cls(base, base)

    def building(self, following: Generation) -> Plan:
        """Return the plan in which this generation is built; its number is the next one."""
        number = self.used + 1
        made = msgspec.structs.replace(following, number=number)
        return msgspec.structs.replace(self, following=made, handed_over=False, used=number)

    def done(self) -> Plan:
        """Return the plan in which the following generation is the one in use."""
        assert self.following is not None  # noqa: S101 -- the caller has looked
        return msgspec.structs.replace(
            self,
            current=self.following,
            following=None,
            handed_over=False,
            left=(*self.left, self.current),
        )

    def aborted(self) -> Plan:
        """Return the plan in which the following generation is given up."""
        assert self.following is not None  # noqa: S101 -- the caller has looked
        return msgspec.structs.replace(self, following=None, left=(*self.left, self.following))

    def settings(self, settings: Settings) -> Settings:
        """Return settings as those of the generation in use; its topology goes with them."""
        base = self.base.settings(settings)
        current = self.current
        return current.settings(base).reindexed(base, current.number) if current.number else base

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
    """A loop of a worker: a stage, and the generations that it reads or keeps."""

    stage: str
    generations: tuple[Generation, ...] = ()

    @property
    def name(self) -> str:
        """Return what to call it in logs, and its thread."""
        number = self.generations[-1].number if self.stage == "index" else 0
        return f"{self.stage}-g{number}" if number else self.stage


def parts(stages: Iterable[str], plan: Plan) -> list[Part]:
    """Return the loops of a worker with these stages."""
    found = []
    for stage in stages:
        if stage == "index":
            found += [Part(stage, (one,)) for one in plan.generations()]
        else:
            found.append(Part(stage, plan.generations() if stage == "route" else ()))
    return found
