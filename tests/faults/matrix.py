"""The cells of the matrix, and a run over them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Final, get_args

from tests.faults.cell import Cell, Outcome, Protocol, Run
from tests.faults.crew import ALL_STAGES
from tests.faults.nemesis import Strike, plan, printed
from tests.faults.proxy import Proxies
from tests.faults.running import run_cell
from tests.integration.corpus import corpus
from tests.kafka.broker import KafkaCluster

__all__ = ["CELLS", "matrix", "run_of"]

TRIO: Final = {"alpha": ALL_STAGES, "beta": ALL_STAGES, "gamma": ALL_STAGES}
QUARTET: Final = {**TRIO, "delta": ALL_STAGES}
APART: Final = {"alpha": "fingerprint,sequence,route", "beta": "index", "gamma": "index"}

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
        Cell(
            "stuck-transaction",
            ("stuck-transaction",),
            {"alpha": "fingerprint", "beta": ALL_STAGES, "gamma": ALL_STAGES},
            victims=("alpha",),
            spacing=(24.0, 26.0),
            gap=STUCK_SECONDS + 2.0,
            rate=EASY,
        ),
        Cell("state-lost", ("state-lost",), TRIO),
        Cell("snapshots", ("worker-kill", "state-lost", "worker-term"), TRIO, snapshots=3.0),
        Cell("disk-full", ("disk-full",), TRIO, victims=("alpha",), small_disk=True),
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
    )
}

PROTOCOLS: Final[tuple[Protocol, ...]] = get_args(Protocol)


def run_of(  # noqa: PLR0913 -- each with a default
    cell: Cell,
    documents: int,
    seed: int,
    *,
    rate: float | None = None,
    schedule: Sequence[Strike] | None = None,
    faults: int = 2,
) -> Run:
    """Make a run: as many faults as there is time for at its rate, and at least so many."""
    rate = rate or cell.rate
    usual = sum(cell.spacing) / 2
    count = max(faults, int(documents / rate / usual))
    strikes = (
        list(schedule)
        if schedule is not None
        else plan(cell.faults, cell.victims or tuple(cell.workers), seed, count, cell.spacing)
    )
    seconds = max(documents / rate, (strikes[-1].at if strikes else 0.0) + usual)
    return Run(corpus(documents, seed), strikes, documents / seconds)


def matrix(  # noqa: PLR0913 -- what the command line offers
    names: Sequence[str],
    protocols: Sequence[Protocol],
    documents: int,
    seed: int,
    say: Callable[[str], None],
    *,
    rate: float | None = None,
    schedule: Sequence[Strike] | None = None,
) -> Iterator[Outcome]:
    """Run cells on one cluster; where one has gone wrong, the next begins with a new one."""
    left = [(CELLS[name], protocol) for name in names for protocol in protocols]
    while left:
        with ExitStack() as stack:
            cluster = stack.enter_context(KafkaCluster(3, heap_mb=768, proxied=True))
            proxies = stack.enter_context(Proxies(cluster.proxied))
            while left:
                cell, protocol = left.pop(0)
                run = run_of(cell, documents, seed, rate=rate, schedule=schedule)
                say(f"{cell.name}, {protocol}, seed {seed}; the schedule:\n{printed(run.strikes)}")
                outcome = run_cell(cell, protocol, (cluster, proxies), run, say)
                yield outcome
                if outcome.problems:
                    break
