"""What happens to disks: full."""

from collections.abc import Sequence
from typing import Final

from chaos.fault import Fault, World
from localkafka.broker import wait_until

NOTICED_SECONDS: Final = 60.0
NO_SPACE: Final = "No space left on device"


class DiskFull(Fault):
    """No space for the state: the worker must end, say why, and go on when there is space."""

    name = "disk-full"
    holds = (2.0,)

    @classmethod
    def targets(cls, victims: Sequence[str]) -> Sequence[str]:
        """The worker whose state is on the small disk: the first."""
        return victims[:1]

    def inject(self, world: World, target: str) -> str:
        """Fill the disk until the worker has ended of it."""
        disk, supervisor = world.disk, world.supervisor
        assert disk is not None
        supervisor.await_ready(target)
        before = len(supervisor.restarts)

        def ended() -> bool:
            disk.fill()
            return any(one.worker == target for one in supervisor.restarts[before:])

        wait_until(ended, NOTICED_SECONDS, f"{target} to notice that its disk is full")
        first = next(one for one in supervisor.restarts[before:] if one.worker == target)
        assert first.status > 0, f"{target} ended with status {first.status}: {first.why}"
        assert NO_SPACE in first.why, f"{target} does not say that its disk is full: {first.why}"
        return f"filled the disk of {target}, which ended with status {first.status}"

    def heal(self, world: World, target: str) -> None:
        """Give the space back; the supervisor starts the worker."""
        assert world.disk is not None
        world.disk.free()
        world.supervisor.await_ready(target)
