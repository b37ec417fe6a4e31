"""The cells of the matrix, and a run over them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Final, get_args

from chaos.cell import Brokers, Cell, Ending, Outcome, Protocol, Run
from chaos.nemesis import plan, printed
from chaos.of_disks import NO_SPACE
from chaos.proxy import Proxies
from chaos.retention import CLEANING
from chaos.running import run_cell
from chaos.speed import Speed
from chaos.strike import Strike
from chaos.supervisor import ALL_STAGES
from localkafka.broker import KafkaCluster
from tests.support.corpus import corpus, with_excerpts

TRIO: Final = {"alpha": ALL_STAGES, "beta": ALL_STAGES, "gamma": ALL_STAGES}
QUARTET: Final = {**TRIO, "delta": ALL_STAGES}
APART: Final = {"alpha": "fingerprint,route", "beta": "index", "gamma": "index"}

EASY: Final = 800.0
"""Documents a second where seconds are counted: two cores for all must not be what is slow."""

STUCK_SECONDS: Final = 4.0 + 10.0
"""A transaction's timeout, and until a coordinator looks for such as are past it (default)."""

GONE: Final = Cell(
    # It may die in the midst of a transaction, which nobody of its name comes back to end.
    "worker-gone",
    ("worker-gone",),
    TRIO,
    spacing=(28.0, 30.0),
    away=STUCK_SECONDS + 6.0,
    rate=EASY,
)

STUCK: Final = Cell(
    "stuck-transaction",
    ("stuck-transaction",),
    {"alpha": "fingerprint", "beta": ALL_STAGES, "gamma": ALL_STAGES},
    victims=("alpha",),
    spacing=(24.0, 26.0),
    gap=STUCK_SECONDS + 2.0,
    rate=EASY,
)

DISK_FULL_ENDINGS: Final = tuple(Ending(status, NO_SPACE) for status in (1, 2))

ANOTHER_TOPIC: Final = (
    Ending(1, "was deleted and recreated"),
    Ending(1, "no committed offset for"),
    Ending(2, "its offset of"),
)
CUT_LOG: Final = (Ending(1, "has lost its end"), Ending(2, "has lost its end"))
DAMAGED: Final = (Ending(1, "damaged"), Ending(1, "Corruption"))
BAD_RECORDS: Final = (Ending(1, "can't be read from offset"),)

CELLS: Final[Mapping[str, Cell]] = {
    cell.name: cell
    for cell in (
        Cell("worker-kill", ("worker-kill",), TRIO),
        Cell("worker-term", ("worker-term",), TRIO),
        GONE,
        replace(GONE, name="warm-standby", standby=True),
        Cell("workers-scale", ("workers-scale",), TRIO),
        Cell(
            "rolling-restart",
            ("rolling-restart",),
            QUARTET,
            spacing=(30.0, 32.0),
            wait=10.0,
            rate=EASY,
        ),
        Cell("zombie", ("zombie",), TRIO, spacing=(14.0, 16.0)),
        STUCK,
        Cell("state-lost", ("state-lost",), TRIO),
        Cell("snapshots", ("worker-kill", "state-lost", "worker-term"), TRIO, snapshots=3.0),
        Cell(
            "disk-full",
            ("disk-full",),
            TRIO,
            victims=("alpha",),
            small_disk=True,
            endings=DISK_FULL_ENDINGS,
        ),
        Cell("slow-shard", ("slow-shard",), APART, victims=("beta",)),
        Cell(
            "index-only",
            ("worker-kill", "zombie"),
            APART,
            victims=("beta",),
            spacing=(14.0, 16.0),
            upstream_gap=3.0,
            rate=EASY,
        ),
        Cell("broker-kill", ("broker-kill",), TRIO, spacing=(14.0, 18.0), gap=15.0, rate=EASY),
        Cell("broker-term", ("broker-term",), TRIO, spacing=(14.0, 18.0)),
        Cell("broker-zombie", ("broker-zombie",), TRIO, spacing=(16.0, 20.0)),
        Cell("endtxn", ("endtxn",), TRIO, spacing=(14.0, 16.0)),
        Cell("txnoffsetcommit", ("txnoffsetcommit",), TRIO, spacing=(14.0, 16.0)),
        Cell("produce", ("produce",), TRIO, spacing=(14.0, 16.0)),
        Cell("fetch", ("fetch",), TRIO, spacing=(14.0, 16.0)),
        Cell("heartbeat", ("heartbeat",), TRIO, spacing=(14.0, 16.0)),
        Cell(
            "everything",
            (
                "worker-kill",
                "broker-kill",
                "endtxn",
                "zombie",
                "produce",
                "state-lost",
                "broker-zombie",
                "workers-scale",
                "heartbeat",
            ),
            TRIO,
            spacing=(10.0, 14.0),
        ),
        Cell(
            "time",
            ("idle", "idle-partition"),
            TRIO,
            spacing=(20.0, 24.0),
            rate=EASY,
            retention=65.0,
            snapshots=3.0,
            least_faults=6,
        ),
        Cell(
            "change",
            ("settings-tuned", "settings-refused"),
            TRIO,
            rate=EASY,
            endings=(Ending(2, "threshold"), Ending(2, "other parameters")),
            least_faults=4,
        ),
        Cell(
            "partitions-added",
            ("partitions-added", "worker-kill", "endtxn"),
            TRIO,
            spacing=(16.0, 20.0),
            rate=EASY,
            least_faults=6,
        ),
        Cell(
            "packed-batches",
            ("packed-batch", "worker-kill"),
            TRIO,
            spacing=(8.0, 12.0),
            rate=EASY,
            least_faults=6,
        ),
        Cell(
            "documents-recreated",
            ("documents-recreated",),
            TRIO,
            rate=EASY,
            endings=ANOTHER_TOPIC,
            most_faults=1,
        ),
        Cell(
            "documents-cut",
            ("documents-cut",),
            TRIO,
            rate=EASY,
            endings=CUT_LOG,
            most_faults=1,
        ),
        Cell(
            "slow",
            ("all-gone", "worker-kill", "broker-kill"),
            TRIO,
            spacing=(30.0, 34.0),
            rate=EASY,
            speed=Speed(delay=0.05, bytes_per_second=1_000_000),
        ),
        Cell(
            "rot-tables",
            ("rot-tables",),
            TRIO,
            spacing=(20.0, 24.0),
            rate=EASY,
            snapshots=3.0,
            endings=DAMAGED,
        ),
        Cell(
            "rot-snapshots",
            ("rot-snapshots",),
            TRIO,
            spacing=(14.0, 16.0),
            rate=EASY,
            snapshots=3.0,
            verified=3.0,
        ),
        Cell(
            "rot-segments",
            ("rot-segments",),
            TRIO,
            spacing=(30.0, 34.0),
            rate=EASY,
            endings=BAD_RECORDS,
            least_faults=4,
        ),
        Cell(
            "standby-trim",
            ("standby-frozen",),
            TRIO,
            spacing=(30.0, 34.0),
            rate=EASY,
            standby=True,
            snapshots=3.0,
        ),
        Cell(
            "aborting-input",
            ("worker-kill", "idle", "zombie", "state-lost"),
            TRIO,
            spacing=(14.0, 16.0),
            rate=EASY,
            retention=65.0,
            aborts=0.3,
        ),
        Cell(
            "window",
            ("worker-kill", "state-lost", "zombie", "worker-term"),
            TRIO,
            spacing=(12.0, 14.0),
            rate=EASY,
            retention=65.0,
            snapshots=3.0,
            standby=True,
            window="20s",
            forgets=0.02,
            least_faults=6,
        ),
        Cell(
            "reindex",
            (
                "reindex",
                "worker-kill",
                "reindex-kill",
                "zombie",
                "reindex",
                "state-lost",
                "reindex-kill",
                "worker-term",
            ),
            TRIO,
            spacing=(5.0, 7.0),
            rate=150.0,
            forgets=0.02,
            least_faults=8,
        ),
        Cell(
            "reindex-anew",
            (
                "reindex-anew",
                "worker-kill",
                "reindex-anew-kill",
                "worker-kill",
                "zombie",
                "reindex-anew",
                "state-lost",
                "reindex-anew-kill",
                "worker-kill",
            ),
            TRIO,
            spacing=(5.0, 7.0),
            rate=150.0,
            forgets=0.02,
            least_faults=9,
        ),
        Cell(
            "containment",
            ("worker-kill", "state-lost", "zombie", "worker-term"),
            TRIO,
            spacing=(12.0, 14.0),
            rate=EASY,
            standby=True,
            snapshots=3.0,
            containment=0.9,
            forgets=0.02,
            least_faults=4,
        ),
        Cell(
            "defaults",
            ("worker-kill", "broker-kill"),
            TRIO,
            spacing=(50.0, 60.0),
            rate=EASY,
            brokers="default",
        ),
        replace(STUCK, name="stuck-defaults", brokers="default"),
    )
}

PROTOCOLS: Final[tuple[Protocol, ...]] = get_args(Protocol)


def run_of(
    cell: Cell,
    documents: int,
    seed: int,
    *,
    rate: float | None = None,
    schedule: Sequence[Strike] | None = None,
    faults: int | None = None,
) -> Run:
    """Make a run: as many faults as there is time for at its rate, and at least so many."""
    rate = rate or cell.rate
    usual = sum(cell.spacing) / 2
    count = max(faults or cell.least_faults, int(documents / rate / usual))
    if cell.most_faults is not None:
        count = min(count, cell.most_faults)
    strikes = (
        list(schedule)
        if schedule is not None
        else plan(cell.faults, cell.victims or tuple(cell.workers), seed, count, cell.spacing)
    )
    seconds = max(documents / rate, (strikes[-1].at if strikes else 0.0) + usual)
    texts = corpus(documents, seed)
    if cell.containment is not None:
        texts = with_excerpts(texts, seed)
    return Run(texts, strikes, documents / seconds)


def matrix(
    names: Sequence[str],
    protocols: Sequence[Protocol],
    documents: int,
    seed: int,
    say: Callable[[str], None],
    *,
    rate: float | None = None,
    schedule: Sequence[Strike] | None = None,
) -> Iterator[Outcome]:
    """Run cells; where one has gone wrong, or needs other brokers, the next has new ones."""
    left = [(CELLS[name], protocol) for name in names for protocol in protocols]
    while left:
        with ExitStack() as stack:
            brokers = left[0][0].brokers
            cluster = stack.enter_context(cluster_of(brokers))
            proxies = stack.enter_context(Proxies(cluster.proxied))
            while left and left[0][0].brokers == brokers:
                cell, protocol = left.pop(0)
                run = run_of(cell, documents, seed, rate=rate, schedule=schedule)
                say(f"{cell.name}, {protocol}, seed {seed}; the schedule:\n{printed(run.strikes)}")
                outcome = run_cell(cell, protocol, (cluster, proxies), run, say)
                yield outcome
                if outcome.problems:
                    break


def cluster_of(brokers: Brokers) -> KafkaCluster:
    """Make the three nodes that cells of a kind run on."""
    fast = brokers == "fast"
    return KafkaCluster(3, CLEANING if fast else {}, heap_mb=768, proxied=True, fast=fast)
