"""The nemesis: faults one after another, by a schedule that is plain data.

The schedule is drawn from a seed, printed as lines of JSON, and can be replayed from
them. Which node leads a topic is found when the fault is due, and told in the log.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from random import Random
from time import monotonic
from typing import Final

from chaos.fault import Fault, World
from chaos.of_brokers import BrokerKill, BrokerPause, BrokerTerminate
from chaos.of_change import (
    DocumentsCut,
    DocumentsRecreated,
    PartitionsAdded,
    SettingsRefused,
    SettingsTuned,
)
from chaos.of_disks import DiskFull
from chaos.of_network import EndTxn, Fetch, Heartbeat, Produce, TxnOffsetCommit
from chaos.of_packing import PackedBatch
from chaos.of_reindex import (
    Reindex,
    ReindexAnew,
    ReindexAnewKilled,
    ReindexKilled,
    ReindexOften,
)
from chaos.of_rot import RotSegments, RotSnapshots, RotTables
from chaos.of_standby import StandbyFrozen
from chaos.of_time import Idle, IdlePartition
from chaos.of_workers import (
    Added,
    AllGone,
    Gone,
    Kill,
    Pause,
    Rolling,
    Slow,
    StateLost,
    Stuck,
    Terminate,
)
from chaos.strike import Strike

FAULTS: Final[dict[str, type[Fault]]] = {
    fault.name: fault
    for fault in (
        Kill,
        Gone,
        Terminate,
        Pause,
        StateLost,
        Added,
        Slow,
        Stuck,
        Rolling,
        BrokerKill,
        BrokerTerminate,
        BrokerPause,
        EndTxn,
        TxnOffsetCommit,
        Produce,
        Fetch,
        Heartbeat,
        DiskFull,
        AllGone,
        Idle,
        IdlePartition,
        StandbyFrozen,
        RotTables,
        RotSnapshots,
        RotSegments,
        SettingsTuned,
        SettingsRefused,
        PackedBatch,
        PartitionsAdded,
        DocumentsRecreated,
        DocumentsCut,
        Reindex,
        ReindexAnew,
        ReindexAnewKilled,
        ReindexKilled,
        ReindexOften,
    )
}

EVERYWHERE: Final = tuple(name for name, fault in FAULTS.items() if fault.everywhere)
"""The faults that need no cell of their own."""

REST_SECONDS: Final = 5.0


@dataclass
class Struck:
    """What became of a line of the schedule; times are of the monotonic clock."""

    strike: Strike
    began: float
    what: str = ""
    healed: float | None = None


def plan(
    faults: Sequence[str],
    victims: Sequence[str],
    seed: int,
    count: int,
    spacing: tuple[float, float],
) -> list[Strike]:
    """Draw a schedule: the faults in turn, each with targets in turn, from a drawn start.

    ``spacing`` is the least and the most seconds from one to the next.
    """
    random = Random(seed)
    first = {name: random.randrange(64) for name in faults}
    used = dict.fromkeys(faults, 0)
    strikes = []
    at = random.uniform(0.5, 2.0)
    for number in range(count):
        name = faults[number % len(faults)]
        fault = FAULTS[name]
        targets = fault.targets(victims)
        place = first[name] + used[name]
        used[name] += 1
        hold = fault.holds[place % len(fault.holds)]
        strikes.append(Strike(round(at, 1), name, targets[place % len(targets)], hold))
        at += random.uniform(*spacing)
    return strikes


def printed(strikes: Iterable[Strike]) -> str:
    """Give a schedule as lines of JSON."""
    return "\n".join(json.dumps(asdict(strike)) for strike in strikes)


def parse(lines: str) -> list[Strike]:
    """Read a schedule.

    Raises:
        ValueError: it names a fault that there isn't.
    """
    strikes = [Strike(**json.loads(line)) for line in lines.splitlines() if line.strip()]
    for strike in strikes:
        if strike.fault not in FAULTS:
            raise ValueError(f"no fault {strike.fault!r}; there are {', '.join(FAULTS)}")
    return strikes


class Nemesis:
    """Carries a schedule out, in the thread that calls `run`."""

    def __init__(
        self,
        world: World,
        strikes: Sequence[Strike],
        say: Callable[[str], None],
        seconds: float | None = None,
    ) -> None:
        """Take what to do, and whom to tell; after so many ``seconds`` nothing begins."""
        self._seconds = seconds
        self._world = world
        self._strikes = strikes
        self._say = say
        self.struck: list[Struck] = []

    def run(self) -> None:
        """Strike by strike; what was done is put right also if the run is given up."""
        began = monotonic()
        rested = began
        for strike in self._strikes:
            self._world.wait(max(rested, began + strike.at) - monotonic())
            late = self._seconds is not None and monotonic() - began > self._seconds
            if late or self._world.over.is_set():
                return
            self._world.reindexing.run_again()
            fault = FAULTS[strike.fault]()
            one = Struck(strike, monotonic())
            self.struck.append(one)
            one.what = fault.inject(self._world, strike.target)
            self._say(f"{monotonic() - began:6.1f} s  {one.what}")
            try:
                fault.last(self._world, strike.target, strike.hold)
            finally:
                fault.heal(self._world, strike.target)
            one.healed = monotonic()
            rested = one.healed + REST_SECONDS
            lasted = one.healed - one.began
            self._say(f"{one.healed - began:6.1f} s  {strike.fault} over, after {lasted:.1f} s")
