"""What happens to who keeps shards warm: frozen until the log has gone on without it."""

from collections.abc import Sequence
from typing import Final

from chaos.fault import Fault, World
from chaos.offsets import ends, starts
from localkafka.broker import wait_until

TRIMMED_SECONDS: Final = 120.0
READ_ON_SECONDS: Final = 3.0
"""In which it notices that the log has gone on, and reads what is there."""


class StandbyFrozen(Fault):
    """SIGSTOP until a shard's log is trimmed past where it was; then the owners are killed.

    It is woken as soon as one log has gone, while it can still read on in the others: what it
    has read of them when it meets the hole must not be lost.
    """

    name = "standby-frozen"
    everywhere = False
    holds = (8.0,)

    @classmethod
    def targets(cls, victims: Sequence[str]) -> Sequence[str]:
        """Any worker; the others are the owners."""
        return victims

    def __init__(self) -> None:
        """Prepare."""
        self._killed: list[str] = []

    def inject(self, world: World, target: str) -> str:
        """Freeze, wait for the trim, wake, kill the others."""
        topology, supervisor = world.topology, world.supervisor
        supervisor.await_ready(target)
        order = [topology.order]
        admin = world.cluster.admin()
        supervisor.pause(target)
        try:
            before = ends(admin, order)

            def trimmed() -> bool:
                return starts(admin, order)[topology.order] > before[topology.order]

            wait_until(trimmed, TRIMMED_SECONDS, f"the log to be trimmed past {before}")
        finally:
            supervisor.resume(target)
        world.wait(READ_ON_SECONDS)
        supervisor.await_ready(target)
        self._killed = [name for name in supervisor.names if name != target]
        for name in self._killed:
            supervisor.kill(name)
        return f"froze {target} past the trim, woke it, killed {', '.join(self._killed)}"

    def heal(self, world: World, target: str) -> None:
        """Start the others once it has taken over."""
        world.supervisor.await_ready(target)
        world.supervisor.start(*self._killed)
