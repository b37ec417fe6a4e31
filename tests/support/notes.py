"""Notes that outlive what a test lets die."""

from __future__ import annotations

from worker.stages.deaths import Deaths


class KeptNotes:
    """Keeps the value that was written last."""

    def __init__(self, value: bytes | None = None) -> None:
        """Begin with a value, or none."""
        self.value = value

    def read(self) -> bytes | None:
        """See `worker.stages.deaths.Notes`."""
        return self.value

    def write(self, value: bytes) -> None:
        """See `worker.stages.deaths.Notes`."""
        self.value = value

    def close(self) -> None:
        """See `worker.stages.deaths.Notes`."""

    def life(self, identity: str = "id") -> Deaths:
        """Begin the next life of a worker that notes what it reads here."""
        return Deaths("documents", identity, self)
