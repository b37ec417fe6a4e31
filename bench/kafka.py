"""Documents per second on Kafka: neardup, a plain copier, and a filter on datasketch.

They run on one broker, one after the other, in turns. All read the same topic and write
exactly once. Each is timed from the first output that a ``read_committed`` consumer could
read to the last. The stages of neardup run ahead of its output by the records buffered between
them. So neardup is also timed from the first transaction of its first stage, the strictest
measure, and the targets apply to that.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import NamedTuple

from bench.cluster import DOCUMENTS, PARTITIONS, application, broker, committed_counts, delete, feed
from bench.cluster import worker as run_worker
from bench.corpus import source, texts
from bench.processes import Program
from bench.report import Figures, Target, console, show
from localkafka.broker import KafkaCluster

DEADLINE_SECONDS = 240.0
WARM_UP_TURNS = 3
"""At first, a new broker uses a third of a core for just-in-time compilation."""
RIVAL_SECONDS = 12.0
"""How long to time the filter on datasketch: it needs minutes for all documents."""


class Mark(NamedTuple):
    """When how many documents were committed, and the CPU time of the programs until then."""

    time: float
    documents: int
    cpu_seconds: float


@dataclass(frozen=True, slots=True)
class Run:
    """Documents/s, CPU microseconds per document, and the largest process in bytes.

    The CPU time is that after the first documents were committed, so without starting.
    """

    rate: float
    strict_rate: float
    cpu_us: float
    peak_bytes: int


class Runs:
    """Creates and measures applications, each under a new name."""

    def __init__(self, kafka: KafkaCluster, total: int, before: int = 0) -> None:
        """Keep the broker, whose documents topic has ``total`` documents.

        The first ``before`` of them are not timed.
        """
        self._kafka = kafka
        self._total = total
        self._before = before
        self._made = 0

    def _name(self, what: str) -> str:
        self._made += 1
        return f"{what}-{self._made}"

    def neardup(self, workers: int, shards: int, others: Mapping[str, str] | None = None) -> Run:
        """Measure worker processes that share the work; ``others`` are settings to change."""
        name = self._name(f"neardup-{workers}x{shards}")
        with ExitStack() as stack:
            settings, environment = stack.enter_context(
                application(self._kafka, name, shards, others=others)
            )
            documents = settings.topics.documents
            first: list[float] = []
            began = threading.Thread(
                target=self._await_first,
                args=(f"{name}.fingerprint", first, documents),
                daemon=True,
            )
            began.start()
            programs = [
                stack.enter_context(run_worker(environment, f"w{number}"))
                for number in range(workers)
            ]
            marks = self._marks(f"{name}.route", programs, DEADLINE_SECONDS, documents)
            began.join()
            return self._run(marks, programs, first[0])

    def copier(self) -> Run:
        """Measure the plain copier."""
        return self._rival("copier", ["copied"], DEADLINE_SECONDS)

    def datasketch(self) -> Run:
        """Measure the filter on datasketch."""
        return self._rival("datasketch_worker", ["unique", "duplicate"], RIVAL_SECONDS)

    def _rival(self, module: str, outputs: list[str], seconds: float) -> Run:
        name = self._name(module)
        targets = [self._kafka.create_topic(f"{name}.{output}", PARTITIONS) for output in outputs]
        arguments = [f"bench.{module}", self._kafka.bootstrap, name, DOCUMENTS, *targets]
        try:
            with Program(arguments) as program:
                marks = self._marks(name, [program], seconds)
                return self._run(marks, [program], marks[0].time)
        finally:
            delete(self._kafka, targets)

    def _await_first(self, group: str, first: list[float], topic: str) -> None:
        marks = committed_counts(self._kafka, group, lambda: None, DEADLINE_SECONDS, topic)
        first.append(next(marks)[0])

    def _marks(
        self, group: str, programs: Sequence[Program], seconds: float, topic: str = DOCUMENTS
    ) -> list[Mark]:
        """Watch a group until it has read all documents, or ``seconds`` after the first."""

        def check() -> None:
            for program in programs:
                program.check()

        marks: list[Mark] = []
        counts = committed_counts(self._kafka, group, check, DEADLINE_SECONDS, topic)
        for at, documents in counts:
            cpu = sum(program.cpu_seconds() for program in programs)
            if documents < self._before:
                continue
            marks.append(Mark(at, documents, cpu))
            if documents >= self._total or at - marks[0].time > seconds:
                return marks
        raise SystemExit(
            f"{group}: not all of {self._total:,} documents within {DEADLINE_SECONDS:.0f} s;"
            f" {marks[-1:]}"
        )

    def _run(self, marks: list[Mark], programs: Sequence[Program], first: float) -> Run:
        usages = [program.stop() for program in programs]
        start, end = marks[0], marks[-1]
        done = end.documents - start.documents
        strictly = end.documents if first < start.time else done
        return Run(
            rate=done / (end.time - start.time),
            strict_rate=strictly / (end.time - min(first, start.time)),
            cpu_us=(end.cpu_seconds - start.cpu_seconds) / done * 1e6,
            peak_bytes=max(usage.peak_bytes for usage in usages),
        )


def run(*, quick: bool = False) -> list[Target]:
    """Measure in turns, print the figures, and return the targets."""
    total, turns = (40_000, 1) if quick else (120_000, 5)
    with broker() as kafka:
        began = time.monotonic()
        _, size = feed(kafka, texts(total))
        console.print(
            f"{total:,} documents of {size / total:,.0f} bytes ({source()}) in {PARTITIONS}"
            f" partitions, written in {time.monotonic() - began:.0f} s; one broker, the same cores"
        )
        runs = Runs(kafka, total)
        turn: dict[str, Callable[[], Run]] = {
            "copier": runs.copier,
            "neardup, 1 worker, P = 4": lambda: runs.neardup(1, 4),
            "datasketch": runs.datasketch,
            "neardup, 2 workers, P = 4": lambda: runs.neardup(2, 4),
            "neardup, 2 workers, P = 2": lambda: runs.neardup(2, 2),
        }
        for _ in range(0 if quick else WARM_UP_TURNS):
            turn["copier"]()
            turn["neardup, 2 workers, P = 4"]()
        measured: dict[str, list[Run]] = {name: [] for name in turn}
        for _ in range(turns):
            for name, measure in turn.items():
                measured[name].append(measure())
                console.print(f"  {name}: {measured[name][-1].strict_rate:,.0f}/s", style="dim")
        for shards in (1, 2):
            name = f"neardup, 1 worker, P = {shards}"
            measured[name] = [runs.neardup(1, shards)]
    return _report(measured)


def ratio(measured: Mapping[str, Sequence[Run]], ours: str, theirs: str) -> Figures:
    """Return the rates of one as multiples of another's, turn by turn."""
    pairs = zip(measured[ours], measured[theirs], strict=True)
    return Figures(f"{ours} to {theirs}", [a.strict_rate / b.strict_rate for a, b in pairs], ".2f")


def _report(measured: dict[str, list[Run]]) -> list[Target]:
    show(
        "Documents/s, from the first batch read to the last readable output",
        [Figures(name, [one.strict_rate for one in runs]) for name, runs in measured.items()],
    )
    show(
        "Documents/s, from the first readable output to the last",
        [Figures(name, [one.rate for one in runs]) for name, runs in measured.items()],
    )
    show(
        "CPU microseconds per document, of all processes but the broker, once they run",
        [Figures(name, [one.cpu_us for one in runs]) for name, runs in measured.items()],
    )
    show(
        "Peak memory of the largest process, MiB",
        [
            Figures(name, [one.peak_bytes / 2**20 for one in runs])
            for name, runs in measured.items()
        ],
        "The filter on datasketch is one process, with its index in memory. It is timed over its"
        f" first {RIVAL_SECONDS:.0f} s.",
    )
    ratios = [
        ratio(measured, ours, theirs)
        for theirs in ("copier", "datasketch")
        for ours in measured
        if len(measured[ours]) > 1 and ours.startswith("neardup")
    ]
    show("Ratios, turn by turn", ratios)
    # The targets are for two workers, because one Python process can't use both cores, and for
    # the default of two shards: more shards than workers keep more sketches, without gain.
    return [
        Target(
            one.name,
            one.median,
            0.53 if one.name.endswith("copier") else 25.0,
            at_least=True,
            form=".2f",
        )
        for one in ratios
        if "2 workers, P = 2" in one.name
    ]
