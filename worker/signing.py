"""How fingerprints are made, as far as a reindex from the documents may change it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal, Self

import msgspec

from lsh import SWITCHES, Parameters

__all__ = ["Signing"]


class Signing(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What makes the fingerprints of a log, besides their numbers of slots, bands and rows.

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
