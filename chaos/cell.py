"""What a cell of the matrix is, how large it is run, and what became of it: plain data."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from chaos.speed import Speed
from chaos.strike import Strike
from chaos.supervisor import Restart
from chaos.trends import Trend

Protocol = Literal["classic", "consumer"]
Brokers = Literal["fast", "default"]
"""Whether absences show in seconds, or when they do with Kafka's own settings."""


@dataclass(frozen=True)
class Ending:
    """How a worker may end by itself."""

    status: int
    words: str
    """Part of the last thing that it says."""

    def fits(self, restart: Restart) -> bool:
        """Tell whether a worker ended like this."""
        return restart.status == self.status and self.words in restart.why


@dataclass(frozen=True)
class Cell:
    """What is broken, in which set-up, and what may come of it."""

    name: str
    faults: tuple[str, ...]
    workers: Mapping[str, str]
    """Stages by worker; each may be hit unless ``victims`` says who."""
    victims: tuple[str, ...] = ()
    spacing: tuple[float, float] = (8.0, 12.0)
    gap: float | None = None
    """The most seconds without a verdict, from a fault to the next."""
    away: float | None = None
    """The same, from a fault until it is over: while who was hit is away."""
    wait: float | None = None
    """The most seconds that any document may wait for its verdict."""
    upstream_gap: float | None = None
    """The most seconds in which *fingerprint* may bring nothing."""
    small_disk: bool = False
    snapshots: float | None = None
    """Seconds between a shard's snapshots, behind which the log is trimmed; None: none."""
    trims: bool = True
    """Whether workers trim the log behind their snapshots. A new index is built from all of it."""
    verified: float | None = None
    """Seconds between two times that snapshots are read back; None: as by default."""
    standby: bool = False
    """Whether every worker keeps every shard warm."""
    rate: float = 1_500.0
    """Documents a second at most, unless a run says otherwise."""
    brokers: Brokers = "fast"
    retention: float | None = None
    """Seconds after which every log forgets; None: never."""
    speed: Speed | None = None
    """How fast all links of workers are; None: as fast as they can be."""
    aborts: float = 0.0
    """Before which share of the slices fed a transaction aborts; 0: no transactions are used."""
    window: str | None = None
    """How long documents are remembered; None: for ever."""
    containment: float | None = None
    """From which share of its shingles on a document matches one that has them; None: from none.

    If there is one, some documents are excerpts of others."""
    forgets: float = 0.0
    """How many tombstones are fed with the documents, as a share of these."""
    endings: tuple[Ending, ...] = ()
    """How workers may end by themselves; any other end breaks the cell."""
    failures: int = 0
    """How often commands may fail that are run again then; brokers fail, too."""
    least_faults: int = 2
    """How many faults there are at least, however few documents."""
    most_faults: int | None = None
    """How many there are at most, as of those that end the run."""

    def unexpected(self, restarts: Iterable[Restart]) -> list[Restart]:
        """Return the ends of workers that none of ``endings`` explains."""
        return [one for one in restarts if not any(ending.fits(one) for ending in self.endings)]


@dataclass(frozen=True)
class Run:
    """How large a run of a cell is, and what it draws from."""

    documents: Sequence[tuple[str, str]]
    strikes: Sequence[Strike]
    rate: float
    """Documents a second."""
    shards: tuple[int, ...] = (1, 2, 4, 18)
    """With how many shards the run's order is replayed."""
    seconds: float | None = None
    """When no fault begins any more, however many are left."""


@dataclass(frozen=True)
class Hit:
    """A fault, and what was seen of it from outside; in seconds."""

    fault: str
    what: str
    lasted: float
    gap: float
    """The longest time without a verdict, until the next fault."""
    wait: float
    """The longest that a document had waited for its verdict."""
    upstream_gap: float
    """The longest time in which nothing came out of *fingerprint*."""
    away: float
    """The longest time without a verdict, until it was over."""


@dataclass
class Outcome:
    """What became of a cell."""

    cell: str
    protocol: Protocol
    documents: int = 0
    seconds: float = 0.0
    hits: list[Hit] = field(default_factory=list)
    restarts: list[Restart] = field(default_factory=list)
    """Every end of a worker that it was not told to, and nobody forced on it."""
    unexpected: int = 0
    """How many of them the cell does not expect."""
    reindexes: int = 0
    """How many generations of the index have taken over from the one before."""
    failures: list[str] = field(default_factory=list)
    """What commands said that failed, and were run again."""
    contained: int = 0
    """How many matches were found by their containment alone."""
    troubles: Mapping[str, int] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    trends: list[Trend] = field(default_factory=list)
    """What the workers used, in a soak."""
    left_out: str = ""
    """Why it could not be run here."""

    @property
    def gap(self) -> float:
        """Give the longest time without a verdict."""
        return max((hit.gap for hit in self.hits), default=0.0)

    @property
    def away(self) -> float:
        """Give the longest time without a verdict while a fault lasted."""
        return max((hit.away for hit in self.hits), default=0.0)

    @property
    def wait(self) -> float:
        """Give the longest wait of a document."""
        return max((hit.wait for hit in self.hits), default=0.0)

    @property
    def upstream_gap(self) -> float:
        """Give the longest time in which nothing came out of *fingerprint*."""
        return max((hit.upstream_gap for hit in self.hits), default=0.0)
