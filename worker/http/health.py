"""The state of a worker, as probes see it."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["Health"]


@dataclass(frozen=True, slots=True)
class Health:
    """The state of a worker; the lists name stages.

    Attributes:
        failed: the stage that failed first. The log says why.
        stopping: whether the worker is on its way out.
        unanswered: whether no broker has answered for as long as a session lasts.
        waiting: stages that wait for their seat: they have not joined yet, or have lost it.
        restoring: stages with a shard that doesn't answer yet.
        catching_up: stages that still process the backlog of their last assignment.
        stalled: stages that don't poll.
    """

    failed: str | None = None
    stopping: bool = False
    unanswered: bool = False
    waiting: list[str] = field(default_factory=list)
    restoring: list[str] = field(default_factory=list)
    catching_up: list[str] = field(default_factory=list)
    stalled: list[str] = field(default_factory=list)

    @property
    def alive(self) -> bool:
        """Return whether the worker needs no restart; an outage of Kafka is no reason for one."""
        return self.failed is None and not self.stalled

    @property
    def ready(self) -> bool:
        """Return whether Kafka answers, and every stage has its seat, its shards and no backlog."""
        behind = self.waiting or self.restoring or self.catching_up
        return self.alive and not (self.stopping or self.unanswered or behind)
