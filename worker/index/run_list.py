"""The list of a store's runs, as it is kept in the store."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

import msgspec

from lsh.index.layout import MOST_DOCUMENTS
from worker.index.eras import Era, Eras
from worker.index.run_layout import FAN_IN, FILTER_BITS, RunShape

__all__ = ["ID_COLUMN", "Merging", "Run", "RunList"]


_ERAS_A_RUN = 2
_Size = Annotated[int, msgspec.Meta(ge=0)]
_Tier = Annotated[int, msgspec.Meta(ge=0, le=10)]
ID_COLUMN = 251
"""The column of documents' ids; see `identities`. Those below are bands and the exact text."""
_Column = Annotated[int, msgspec.Meta(ge=0, le=ID_COLUMN)]
_Bits = Annotated[int, msgspec.Meta(gt=0, le=64)]


class Run(msgspec.Struct, frozen=True):
    """A run: its number, its tier, its documents from ``first`` to before ``end``, its cells."""

    number: int
    tier: _Tier
    first: _Size
    end: _Size
    cells: int

    @property
    def merged(self) -> bool:
        """Return whether a merge has made it; then its pages are in tables of its own."""
        return self.tier > 0


class Merging(msgspec.Struct):
    """A merge under way: the runs of a tier that it reads, the number of the run that it makes.

    ``done`` is how many groups of pages are in finished files, and ``cells`` how many cells these
    have.
    """

    tier: _Tier
    sources: list[int]
    target: int
    done: int = 0
    cells: int = 0


class _Packed(msgspec.Struct):
    run_documents: Annotated[int, msgspec.Meta(gt=0, lt=MOST_DOCUMENTS)]
    columns: list[_Column]
    next: int
    runs: list[Run]
    merging: list[Merging]
    eras: Annotated[list[Era], msgspec.Meta(min_length=1)]
    filter_bits: Annotated[tuple[_Bits, ...], msgspec.Meta(min_length=1)]


@dataclass(slots=True)
class RunList:
    """The runs of a store, oldest first, and everything that is needed to read them.

    ``run_documents`` is how many documents a run of tier 0 has, ``columns`` are the columns of the
    store (empty before the first cell), ``next`` is the number of the next run. Runs have disjoint
    ranges of documents without gaps. ``eras`` divide the documents by time. ``filter_bits`` are as
    in `FILTER_BITS`.
    """

    run_documents: int
    columns: list[int] = field(default_factory=list)
    next: int = 0
    runs: list[Run] = field(default_factory=list)
    merging: list[Merging] = field(default_factory=list)
    eras: Eras = field(default_factory=Eras)
    filter_bits: tuple[int, ...] = FILTER_BITS

    @property
    def end(self) -> int:
        """Return the first document after all runs."""
        return self.runs[-1].end if self.runs else self.eras.current.first

    def of_tier(self, tier: int) -> list[Run]:
        """Return the runs of a tier, oldest first."""
        return [run for run in self.runs if run.tier == tier]

    def to_merge(self, tier: int) -> list[Run]:
        """Return the oldest runs of a tier that can be merged; none if there are too few.

        They are next to one another, and of two eras at most, so that a run's space comes back
        soon after that of its oldest documents might.
        """
        for start in range(len(self.runs) - FAN_IN + 1):
            some = self.runs[start : start + FAN_IN]
            eras = self.eras.overlapping(some[0].first, some[-1].end)
            if all(run.tier == tier for run in some) and len(eras) <= _ERAS_A_RUN:
                return some
        return []

    def dropped(self) -> list[Run]:
        """Drop the runs whose eras are dropped, except those that are being merged; return them."""
        busy = {number for merging in self.merging for number in merging.sources}
        gone = [r for r in self.runs if r.end <= self.eras.first and r.number not in busy]
        self.runs = [run for run in self.runs if run not in gone]
        return gone

    def shape(self, tier: int) -> RunShape:
        """Return the shape of the runs of a tier."""
        return RunShape.of(self.run_documents, tier, self.filter_bits)

    def new_number(self) -> int:
        """Return the number for another run."""
        self.next += 1
        return self.next - 1

    def replace(self, merging: Merging) -> list[Run]:
        """Replace the runs that a merge has read by the one that it has made; return them."""
        sources = set(merging.sources)
        replaced = [run for run in self.runs if run.number in sources]
        first, last = replaced[0], replaced[-1]
        place = self.runs.index(first)
        made = Run(merging.target, merging.tier + 1, first.first, last.end, merging.cells)
        left = [run for run in self.runs if run.number not in sources]
        self.runs = [*left[:place], made, *left[place:]]
        self.merging.remove(merging)
        return replaced

    def pack(self) -> bytes:
        """Return the packed bytes."""
        return msgspec.json.encode(
            _Packed(
                self.run_documents,
                self.columns,
                self.next,
                self.runs,
                self.merging,
                self.eras.kept,
                self.filter_bits,
            )
        )

    @classmethod
    def unpack(cls, packed: bytes | None, run_documents: int) -> RunList:
        """Return the list that `pack` packed; an empty store's if there is none.

        Raises:
            ValueError: it can't be read, or can't be true.
        """
        if packed is None:
            return cls(run_documents)
        try:
            found = msgspec.json.decode(packed, type=_Packed)
        except msgspec.DecodeError as error:
            raise ValueError(f"its list of runs can't be read: {error}") from error
        listed = cls(
            found.run_documents,
            found.columns,
            found.next,
            found.runs,
            found.merging,
            Eras(found.eras),
            found.filter_bits,
        )
        listed.check()
        return listed

    def check(self) -> None:
        """Check that there are no gaps between runs, and that each is as large as its tier says.

        Raises:
            ValueError: there is one.
        """
        end = min(self.eras.first, self.runs[0].first) if self.runs else 0
        for run in self.runs:
            least = FAN_IN**run.tier
            if run.first != end or not least <= run.end - run.first < MOST_DOCUMENTS:
                raise ValueError(
                    f"run {run.number} of tier {run.tier} has documents {run.first} to before"
                    f" {run.end}; it must begin at {end} and have at least {least}"
                )
            end = run.end
