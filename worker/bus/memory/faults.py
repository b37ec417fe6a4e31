"""A hook between the steps of a transaction, for tests that crash there."""

from __future__ import annotations

from typing import Literal, Protocol

__all__ = ["Faults", "Step", "no_faults"]

Step = Literal["begin", "produce", "offsets", "commit", "committed"]


class Faults(Protocol):
    """Called before each step of `Member.commit`, and after the last.

    ====================  ==========================================================
    ``begin``             nothing has happened yet
    ``produce``           before the records of each partition, in turn
    ``offsets``           the records are written; before the offsets
    ``commit``            all is written, nothing visible
    ``committed``         all is visible; the caller doesn't know it yet
    ====================  ==========================================================

    It returns, or raises what the caller shall see:

    - `Aborted`: the transaction is rolled back first. Not after ``committed``.
    - `OutcomeUnknown`: at ``commit`` the transaction stays open, and `Member.renew`, or a
      new member of the same name, aborts it. At ``committed`` it took effect.
    - anything else stands for the death of the process: what is open stays open, until
      the name is taken by a new member, or evicted.

    A hook may use the bus, too: let another member join in the middle, say.
    """

    def __call__(self, step: Step, group: str, instance: str, /) -> None:
        """Return to go on, or raise."""


def no_faults(step: Step, group: str, instance: str) -> None:
    """Let everything pass."""
