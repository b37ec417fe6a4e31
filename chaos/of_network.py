"""What happens between workers and brokers: requests or answers late, lost, or cut off."""

from collections.abc import Sequence
from itertools import product
from typing import ClassVar, Final, get_args

from chaos.fault import Fault, World
from chaos.rule import Act, Of, Rule
from chaos.wire import Api
from localkafka.broker import wait_until

LIMITS: Final[dict[Act, int]] = {"drop": 3, "cut": 10, "late": 10, "delay": 4}
"""What can happen to a request or an answer of any kind, and to how many of them at most: what is
dropped costs its sender a whole timeout."""

HIT_SECONDS: Final = 30.0
LATE_SECONDS: Final = 0.5
"""Enough for a few more transactions of the same producer."""


class _OfNetwork(Fault):
    apis: ClassVar[frozenset[Api]]
    delay_seconds: ClassVar[float] = 3.0
    holds = (6.0,)

    def __init__(self) -> None:
        """Prepare."""
        self._rule: Rule | None = None

    @classmethod
    def targets(cls, victims: Sequence[str]) -> Sequence[str]:
        """Each way in which a request can go wrong."""
        del victims
        ways = [f"{act} {of}" for act, of in product(LIMITS, get_args(Of))]
        return [way for way in ways if way != "late response"]

    @classmethod
    def rule(cls, target: str) -> Rule:
        """Return what a proxy does to requests or answers in this way."""
        acts: dict[str, Act] = {act: act for act in LIMITS}
        ofs: dict[str, Of] = {of: of for of in get_args(Of)}
        act, of = target.split()
        return Rule(
            cls.apis,
            acts[act],
            ofs[of],
            seconds=LATE_SECONDS if act == "late" else cls.delay_seconds,
            share=0.5,
            limit=LIMITS[acts[act]],
            seed=len(target),
        )

    def inject(self, world: World, target: str) -> str:
        """Set the rule."""
        self._rule = self.rule(target)
        world.proxies.add(self._rule)
        return f"{self.name}: {target}"

    def heal(self, world: World, target: str) -> None:
        """Take the rule away once it has met something."""
        rule = self._rule
        assert rule is not None
        wait_until(lambda: rule.hits > 0, HIT_SECONDS, f"a request of {self.name} to {target}")
        world.proxies.remove(rule)


class EndTxn(_OfNetwork):
    """Of the request that ends a transaction."""

    name = "endtxn"
    # Longer than its sender waits (4 s), which by then is at its next transaction.
    delay_seconds = 6.0
    apis = frozenset({Api.END_TXN})


class TxnOffsetCommit(_OfNetwork):
    """Of the request that puts offsets into a transaction."""

    name = "txnoffsetcommit"
    apis = frozenset({Api.TXN_OFFSET_COMMIT})


class Produce(_OfNetwork):
    """Of the request that writes records."""

    name = "produce"
    apis = frozenset({Api.PRODUCE})


class Fetch(_OfNetwork):
    """Of the request that reads records."""

    name = "fetch"
    apis = frozenset({Api.FETCH})
    delay_seconds = 1.0


class Heartbeat(_OfNetwork):
    """Of the request that keeps a seat, in either protocol."""

    name = "heartbeat"
    apis = frozenset({Api.HEARTBEAT, Api.CONSUMER_GROUP_HEARTBEAT})
