"""How documents pass through the stages: rates, lag and its trend, and who owns which shard."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Mapping
from functools import partial
from time import monotonic, time
from typing import Literal, NamedTuple

import msgspec

from worker.bus import Bus, BusError, LogReader, TopicPartition
from worker.closing import Closing
from worker.observe.feed import Rejection
from worker.observe.lag import Lag, StageLags
from worker.settings.errors import ConfigurationError
from worker.topology import STAGES, Topology
from worker.visible import visible

Owners = Callable[[], Mapping[int, str]]
"""Returns who owns which shard."""

_LEAST_SECONDS = 1.0
"""A look that is younger is given to whoever asks."""
_TREND_SECONDS = 120.0
_RATE_SECONDS = 15.0


class Stage(msgspec.Struct, frozen=True):
    """A stage: what it reads in a second, and what it has yet to read.

    ``trend`` is by how many records a second ``lag`` grows. ``clear_seconds`` is when it will be
    cleared at this trend, if it shrinks.
    """

    name: str
    unit: Literal["documents", "frames"]
    per_second: float | None
    lag: int
    lag_seconds: float | None
    trend: float | None
    clear_seconds: float | None


class Output(msgspec.Struct, frozen=True):
    """A topic that results are published to. Its rate counts transaction markers as well."""

    name: str
    topic: str
    per_second: float | None


class Shard(msgspec.Struct, frozen=True):
    """A shard: who owns it, and how far its owner and this server's copy are behind.

    ``restoring``: this server's copy can't answer yet.
    """

    number: int
    owner: str | None
    lag: int
    copy_behind: int | None
    restoring: bool


class Flow(msgspec.Struct, frozen=True):
    """How documents pass through the stages. ``trouble`` says what can't be read."""

    app: str
    time: int
    stages: list[Stage]
    outputs: list[Output]
    shards: list[Shard]
    rejected: list[Rejection]
    trouble: str | None


class _Look(NamedTuple):
    """What was found at a moment, by the monotonic clock."""

    at: float
    read: dict[str, int]
    """The sum of the offsets that each stage has committed."""
    lag: dict[str, Lag]
    ends: dict[str, int]
    """The sum of the ends of each output."""
    seats: dict[int, int]
    end: int


class FlowLooks(Closing):
    """Looks at the groups and the ends of the topics when somebody asks. Belongs to one thread."""

    def __init__(
        self, topology: Topology, bus: Bus, owners: Owners, clock: Callable[[], float] = monotonic
    ) -> None:
        """Take what to look at; ``owners`` tells who owns which shard."""
        self._topology = topology
        self._bus = bus
        self._owners = owners
        self._clock = clock
        self._looks: deque[_Look] = deque()
        self._reader: LogReader | None = None
        self._lags: StageLags | None = None
        self._owned: Mapping[int, str] = {}
        self._trouble: str | None = None

    def flow(
        self,
        behind: Mapping[int, int],
        warming: Collection[int],
        rejected: list[Rejection],
        trouble: str | None = None,
    ) -> Flow:
        """Return the present state.

        ``behind`` is how far this server's copy of each shard is behind, ``warming`` are those that
        can't be read yet. ``trouble`` is what keeps rejections from being read.
        """
        if not self._looks or self._clock() - self._looks[-1].at >= _LEAST_SECONDS:
            self._try()
        looks = self._looks
        shards = range(self._topology.layout.shards)
        return Flow(
            self._topology.app,
            int(1_000 * time()),
            [self._stage(name) for name in STAGES] if looks else [],
            [
                Output(name, topic, self._rate(partial(_end_of, topic)))
                for name, topic in self._outputs().items()
            ],
            [
                self._shard(number, behind.get(number), restoring=number in warming)
                for number in shards
            ],
            rejected,
            self._trouble or trouble,
        )

    def _try(self) -> None:
        """Look; what can't be read is noted."""
        try:
            look = self._look()
            self._owned = self._owners()
        except (BusError, ConfigurationError) as error:
            self._trouble = visible(str(error))
            self.close()
            return
        self._trouble = None
        self._looks.append(look)
        while look.at - self._looks[0].at > _TREND_SECONDS:
            self._looks.popleft()

    def _look(self) -> _Look:
        topology = self._topology
        if self._reader is None:
            self._reader = self._bus.log_reader(topology.group("serve"), self._outputs().values())
        if self._lags is None:
            self._lags = StageLags(topology, self._bus.log_reader)
        look = self._lags.look(partial(_ranges, self._reader))
        read = {stage: sum(at.values()) for stage, at in look.read.items()}
        seats = {place.partition: at for place, at in look.committed["index"].items()}
        end = self._reader.watermarks(topology.order)[1]
        ends = self._ends(self._reader)
        return _Look(self._clock(), read, look.lag, ends, seats, end)

    def _ends(self, reader: LogReader) -> dict[str, int]:
        """Return the sums of the ends of the outputs."""
        counts = self._bus.partitions([*self._outputs().values()])
        return {
            topic: sum(
                reader.watermarks(TopicPartition(topic, number))[1] for number in range(count or 0)
            )
            for topic, count in counts.items()
        }

    def _outputs(self) -> dict[str, str]:
        one = self._topology
        return {"unique": one.unique, "duplicate": one.duplicate, "rejected": one.rejected}

    def _rate(self, value: Callable[[_Look], int], seconds: float = _RATE_SECONDS) -> float | None:
        """Return by how much a value grows in a second; None after one look."""
        looks = self._looks
        if len(looks) < 2:  # noqa: PLR2004 -- a rate needs two
            return None
        last = looks[-1]
        first = next(one for one in looks if last.at - one.at <= seconds or one is looks[-2])
        return (value(last) - value(first)) / max(last.at - first.at, 1e-3)

    def _stage(self, name: str) -> Stage:
        lag = self._looks[-1].lag[name]
        trend = self._rate(lambda look: look.lag[name].records, _TREND_SECONDS)
        shrinks = trend is not None and trend < 0 and lag.records > 0
        return Stage(
            name,
            "frames" if name == "index" else "documents",
            _rounded(self._rate(lambda look: look.read[name])),
            lag.records,
            _rounded(lag.seconds),
            _rounded(trend),
            _rounded(lag.records / -trend) if shrinks and trend is not None else None,
        )

    def _shard(self, number: int, copy_behind: int | None, *, restoring: bool) -> Shard:
        lag = 0
        if self._looks:
            look = self._looks[-1]
            if look.lag["index"].records:  # Without one, only a marker follows the last frame.
                lag = max(0, look.end - look.seats.get(number, 0))
        return Shard(number, self._owned.get(number), lag, copy_behind, restoring)

    def close(self) -> None:
        """Close the readers; a later look makes new ones."""
        reader, lags, self._reader, self._lags = self._reader, self._lags, None, None
        if reader is not None:
            reader.close()
        if lags is not None:
            lags.close()


def _ranges(
    reader: LogReader, places: Collection[TopicPartition]
) -> dict[TopicPartition, tuple[int, int]]:
    return {place: reader.watermarks(place) for place in places}


def _end_of(topic: str, look: _Look) -> int:
    return look.ends[topic]


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 2)
