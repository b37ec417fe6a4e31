"""Notes that outlive what a test lets die."""

from __future__ import annotations

from worker.bus.deadly_documents import DeadlyDocuments
from worker.bus.last_life import LastLife


class KeptNotes:
    """Keeps the value that was written last."""

    def __init__(self, value: bytes | None = None) -> None:
        """Begin with a value, or none."""
        self.value = value

    def read(self) -> bytes | None:
        """See `worker.bus.last_life.Notes`."""
        return self.value

    def write(self, value: bytes) -> None:
        """See `worker.bus.last_life.Notes`."""
        self.value = value

    def life(self, identity: str = "id") -> LastLife:
        """Begin the next life of a worker that notes what it reads here."""
        return LastLife("documents", identity, self, 1)

    def documents(self, identity: str = "id") -> DeadlyDocuments:
        """Begin the next life; return what the worker died of while a group read documents."""
        return self.life(identity).documents("g")
