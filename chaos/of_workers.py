"""What happens to workers: killed, told to stop, frozen, without their disk, more and fewer."""

import shutil
from collections.abc import Sequence
from random import Random
from time import monotonic
from typing import ClassVar, Final

from chaos.fault import Fault, World
from chaos.rule import Rule
from chaos.wire import Api, Header
from localkafka.broker import wait_until

TAKEN_OVER_SECONDS: Final = 8.0
"""Longer than a session (6 s): the others have taken over."""


class _OfWorkers(Fault):
    @classmethod
    def targets(cls, victims: Sequence[str]) -> Sequence[str]:
        """Any worker that may be hit."""
        return victims


class Kill(_OfWorkers):
    """SIGKILL; back at once, or after the others took over."""

    name = "worker-kill"
    holds: ClassVar[tuple[float, ...]] = (0.0, TAKEN_OVER_SECONDS)

    def inject(self, world: World, target: str) -> str:
        """Kill."""
        world.supervisor.kill(target)
        return f"killed {target}"

    def heal(self, world: World, target: str) -> None:
        """Start."""
        world.supervisor.start(target)


class Gone(Kill):
    """SIGKILL, and nobody of this name comes back while it lasts; then one does, to go on."""

    name = "worker-gone"
    holds = (25.0,)


class AllGone(Fault):
    """SIGKILL of all workers; when they are back, what was fed meanwhile waits for them."""

    name = "all-gone"
    everywhere = False
    holds = (20.0,)

    @classmethod
    def targets(cls, victims: Sequence[str]) -> Sequence[str]:
        """All of them."""
        return (",".join(victims),)

    def inject(self, world: World, target: str) -> str:
        """Kill."""
        for name in target.split(","):
            world.supervisor.kill(name)
        return f"killed {target}"

    def heal(self, world: World, target: str) -> None:
        """Start."""
        world.supervisor.start(*target.split(","))


class Terminate(_OfWorkers):
    """SIGTERM; back at once, or after the others took over."""

    name = "worker-term"
    holds = (0.0, TAKEN_OVER_SECONDS)

    def inject(self, world: World, target: str) -> str:
        """Tell it to stop, which it must do with status 0."""
        _stop(world, target)
        return f"stopped {target}"

    def heal(self, world: World, target: str) -> None:
        """Start."""
        world.supervisor.start(target)


class Pause(_OfWorkers):
    """SIGSTOP for longer than a session: a zombie that wakes up."""

    name = "zombie"
    holds = (TAKEN_OVER_SECONDS + 1,)

    def inject(self, world: World, target: str) -> str:
        """Freeze."""
        world.supervisor.await_ready(target)
        world.supervisor.pause(target)
        return f"froze {target}"

    def heal(self, world: World, target: str) -> None:
        """Wake."""
        world.supervisor.resume(target)


class StateLost(Kill):
    """SIGKILL, and the state directory is deleted."""

    name = "state-lost"
    holds = (0.0,)

    def inject(self, world: World, target: str) -> str:
        """Kill and delete."""
        world.supervisor.kill(target)
        # Not the directory itself: it may be where a disk is mounted.
        for path in world.supervisor.worker(target).state_from_outside.iterdir():
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()
        return f"killed {target} and deleted its state"


class Added(Fault):
    """One more worker joins, and leaves for good."""

    name = "workers-scale"
    holds = (TAKEN_OVER_SECONDS,)

    @classmethod
    def targets(cls, victims: Sequence[str]) -> Sequence[str]:
        """Names that nobody has; the second worker of a name finds the first one's state."""
        del victims
        return ("extra-1", "extra-2")

    def inject(self, world: World, target: str) -> str:
        """Start, and wait until it has its part."""
        world.supervisor.start(target)
        world.supervisor.await_ready(target)
        return f"{target} has joined"

    def heal(self, world: World, target: str) -> None:
        """Stop it."""
        _stop(world, target)


class Slow(_OfWorkers):
    """A shard that is slow: its worker is frozen for most of every second."""

    name = "slow-shard"
    holds = (6.0,)

    def inject(self, world: World, target: str) -> str:
        """Wait until it is at work."""
        world.supervisor.await_ready(target)
        return f"slowed {target} down"

    def last(self, world: World, target: str, seconds: float) -> None:
        """Freeze and wake it, at intervals that its name decides."""
        random = Random(target)
        until = monotonic() + seconds
        while monotonic() < until and not world.over.is_set():
            world.supervisor.pause(target)
            world.wait(random.uniform(0.5, 1.5))
            world.supervisor.resume(target)
            world.wait(random.uniform(0.1, 0.4))

    def heal(self, world: World, target: str) -> None:
        """Wake it."""
        world.supervisor.resume(target)


class Stuck(_OfWorkers):
    """Frozen between its records and the end of their transaction, which others wait for."""

    name = "stuck-transaction"
    holds = (TAKEN_OVER_SECONDS,)

    def __init__(self) -> None:
        """Prepare."""
        self._rule: Rule | None = None

    def inject(self, world: World, target: str) -> str:
        """Freeze it when it asks for the end of a transaction of *fingerprint*."""
        world.supervisor.await_ready(target)

        def freeze(header: Header) -> None:
            del header
            world.supervisor.pause(target)

        rule = Rule(
            frozenset({Api.END_TXN}),
            "drop",
            "request",
            client=f"{world.topology.group('fingerprint')}.{target}",
            limit=1,
            on_hit=freeze,
        )
        with world.proxies.rule(rule):
            wait_until(lambda: rule.hits > 0, 30, f"a transaction of {target}")
        return f"froze {target} in the middle of a transaction"

    def heal(self, world: World, target: str) -> None:
        """Wake it."""
        world.supervisor.resume(target)


class Rolling(Fault):
    """Every worker is restarted in turn, the next once the last is ready."""

    name = "rolling-restart"

    @classmethod
    def targets(cls, victims: Sequence[str]) -> Sequence[str]:
        """All of them."""
        return (",".join(victims),)

    def inject(self, world: World, target: str) -> str:
        """Restart."""
        for name in target.split(","):
            _stop(world, name)
            world.supervisor.start(name)
            world.supervisor.await_ready(name)
        return f"restarted {target}"

    def heal(self, world: World, target: str) -> None:
        """Wait for the last."""
        world.supervisor.await_ready(target.rsplit(",", maxsplit=1)[-1])


def _stop(world: World, name: str) -> None:
    world.supervisor.await_ready(name)
    status = world.supervisor.stop(name)
    assert status == 0, f"{name}, told to stop, ended with status {status}"
