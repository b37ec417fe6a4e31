"""What happens to brokers: whoever leads a topic, or coordinates, is killed, stopped, frozen."""

from collections.abc import Sequence

from chaos.fault import LEADERS, Fault, World


class _OfBrokers(Fault):
    node: int

    @classmethod
    def targets(cls, victims: Sequence[str]) -> Sequence[str]:
        """Whoever leads one of these."""
        del victims
        return LEADERS

    def _find(self, world: World, target: str) -> int:
        self.node = world.leader(target)
        return self.node


class BrokerKill(_OfBrokers):
    """SIGKILL."""

    name = "broker-kill"
    holds = (0.0, 5.0)

    def inject(self, world: World, target: str) -> str:
        """Kill."""
        world.cluster.kill(self._find(world, target))
        return f"killed broker {self.node}, leader of {target}"

    def heal(self, world: World, target: str) -> None:
        """Start, and wait until it is in sync."""
        del target
        world.cluster.start(self.node)


class BrokerTerminate(BrokerKill):
    """SIGTERM: it hands over what it leads."""

    name = "broker-term"

    def inject(self, world: World, target: str) -> str:
        """Stop."""
        world.cluster.stop(self._find(world, target))
        return f"stopped broker {self.node}, leader of {target}"


class BrokerPause(_OfBrokers):
    """SIGSTOP for longer than the controller waits: a leader that wakes up deposed."""

    name = "broker-zombie"
    holds = (7.0,)

    def inject(self, world: World, target: str) -> str:
        """Freeze."""
        world.cluster.pause(self._find(world, target))
        return f"froze broker {self.node}, leader of {target}"

    def heal(self, world: World, target: str) -> None:
        """Wake it, and wait until it is in sync."""
        del target
        world.cluster.resume(self.node)
        world.cluster.await_in_sync(self.node)
