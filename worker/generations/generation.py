"""One generation of an application's index: its rules, and what makes its fingerprints."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, Self

import msgspec

from lsh import SWITCHES, Parameters
from worker.settings.model import Settings
from worker.topology import Topology
from worker.wire.frame import Layout


class Signing(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The shingles and switches that make a log's fingerprints.

    Slots, bands and rows are in `Generation`.

    Attributes:
        shingle: what a shingle is made of.
        shingle_size: how many of these.
        switches: of the normaliser, those that are on.
        sized: whether fingerprints have the numbers of different shingles, as a containment needs.
    """

    shingle: Literal["char", "word"]
    shingle_size: int
    switches: tuple[str, ...]
    sized: bool

    @classmethod
    def of(cls, parameters: Parameters) -> Self:
        """Return what makes fingerprints with these parameters."""
        return cls(
            parameters.shingle,
            parameters.shingle_size,
            tuple(name for name in SWITCHES if getattr(parameters, name)),
            parameters.containment is not None,
        )

    def similarity(self) -> dict[str, object]:
        """Return it as settings of the section ``similarity``, which no preset changes."""
        switches = {name: name in self.switches for name in SWITCHES}
        return {"shingle": self.shingle, "shingle_size": self.shingle_size, **switches}

    def parameters(self, base: Parameters, slots: int, bands: int, rows: int) -> Parameters:
        """Return the parameters of these fingerprints, with the seed and the lines of ``base``.

        Neither threshold nor containment makes a fingerprint: they have fixed values here.
        """
        switches: dict[str, Any] = {name: name in self.switches for name in SWITCHES}
        return replace(
            base,
            threshold=1.0,
            containment=1.0 if self.sized else None,
            shingle=self.shingle,
            shingle_size=self.shingle_size,
            slots=slots,
            bands=bands,
            rows=rows,
            **switches,
        )


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
        return directory_of(self.number, state_dir)


def directory_of(number: int, state_dir: Path) -> Path:
    """Return where the stores of a generation lie in a worker's state directory."""
    return state_dir / f"g{number}" if number else state_dir
