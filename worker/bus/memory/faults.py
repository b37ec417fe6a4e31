"""A hook between the steps of a transaction, for tests that crash there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, Protocol

from worker.bus import Aborted, OutcomeUnknown, TopicPartition

Step = Literal["begin", "produce", "offsets", "commit", "committed"]


class Torn(Exception):
    """Ends a transaction with a commit in some of its partitions, and an abort in the others.

    Kafka's coordinators may do so while brokers fail.
    """

    def __init__(
        self,
        keeps: Callable[[TopicPartition | None], bool],
        seen: Aborted | OutcomeUnknown,
    ) -> None:
        """Take whether a partition sees a commit (None: the group's offsets), and the outcome.

        ``seen`` is what the caller of the commit is to see.
        """
        self.keeps = keeps
        self.seen = seen
        super().__init__(str(seen))


class Faults(Protocol):
    """Called before each step of `Member.commit` or `LogWriter.commit`, and after the last.

    ====================  ==========================================================
    ``begin``             before anything happens
    ``produce``           before the records of each partition, in turn
    ``offsets``           the records are written; before the offsets
    ``commit``            everything is written, and nothing is visible
    ``committed``         everything is visible; the caller doesn't know it yet
    ====================  ==========================================================

    It returns, or raises what the caller is to see:

    - `Aborted`: the transaction is rolled back first. Not allowed at ``committed``.
    - `OutcomeUnknown`: at ``commit`` the transaction stays open, and `renew`, or a new
      member or writer of the same name, aborts it. At ``committed`` it took effect.
    - `Torn`: at ``commit`` the transaction takes effect in part.
    - any other exception simulates the death of the process: an open transaction stays
      open until a new member takes the name, or `MemoryBus.evict` evicts it.

    A `LogWriter` has an empty group and no offsets; its name is the instance.

    A hook may use the bus, for example to let another member join in the middle.
    """

    def __call__(self, step: Step, group: str, instance: str, /) -> None:
        """Return to continue, or raise."""


def no_faults(step: Step, group: str, instance: str) -> None:
    """Let every step continue."""
