"""``neardup topics create``, ``topics verify`` and ``init``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from itertools import zip_longest
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from worker.admin.accept_cut import accept_cut
from worker.admin.agreement import Difference
from worker.admin.checks import Inspection, inspect
from worker.admin.cluster import Cluster
from worker.admin.create import create as create_topics
from worker.admin.layout_log import agree, refuse_others
from worker.admin.problem import Problem
from worker.admin.reindex.in_use import in_use
from worker.admin.starts import Begun, Start
from worker.admin.starts import begin as begin_groups
from worker.cli.errors import EXIT_USAGE, CommandError
from worker.cli.options import App, Bootstrap, Config, Json, for_kafka
from worker.cli.screen import line, print_json, screen, shown
from worker.settings.loading import PUBLIC_SEED
from worker.settings.model import Settings
from worker.topology import STAGES, Topology
from worker.visible import counted

_WRONG = Text("wrong", "bold red")
_SEED_LATER = ", then run `neardup init --accept`"
From = Annotated[
    str,
    typer.Option(
        "--from",
        metavar="START",
        help="Where to start in the documents topic: earliest, latest, a time (ISO 8601 in UTC, or"
        " an age like 24h), or app:NAME, after the last document that application NAME published."
        " Stop that application first.",
    ),
]
Force = Annotated[
    bool,
    typer.Option(
        "--force",
        help="Replace the starting offsets and the recorded settings. Works only until a worker"
        " has processed anything.",
    ),
]


def create(
    bootstrap: Bootstrap = None,
    config: Config = None,
    app: App = None,
    *,
    partitions: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Partitions of the documents topic and the topics that follow it. Default: those"
            " of the existing documents topic, else 4. `neardup reindex --partitions` adds more.",
        ),
    ] = None,
    replication: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Replication factor. Default: 3, or the number of brokers if that is lower.",
        ),
    ] = None,
    start: From = "earliest",
    documents_max_bytes: Annotated[
        int,
        typer.Option(
            metavar="BYTES",
            min=16_384,
            help="max.message.bytes of the documents topic: its largest record batch.",
        ),
    ] = 1_048_588,
    force: Force = False,
) -> None:
    """Create missing topics, check the others, and set the starting offsets.

    You can run it again at any time: it changes no existing topic and no offset that is set.
    """
    settings = for_kafka(config, bootstrap, app)
    offsets = Start.parse(start, datetime.now(UTC))
    cluster = Cluster(settings.kafka_options())
    console = screen()
    if not force:
        refuse_others(cluster, settings)
    created = create_topics(
        cluster,
        settings,
        in_use(cluster, settings),
        partitions=partitions,
        replication=replication,
        documents_max_bytes=documents_max_bytes,
    )
    for name in created.made:
        console.print(line(("created", "green"), f"  {name}"))
    if created.found:
        console.print(
            f"kept     {counted(len(created.found), 'existing topic')}, unchanged", style="dim"
        )
    topology = created.topology
    _print_recorded(console, settings, topology, agree(cluster, settings, topology, replace=force))
    _print_offsets(console, begin_groups(cluster, topology, offsets, force=force), start)
    _conclude(console, inspect(cluster, settings))


def init(
    bootstrap: Bootstrap = None,
    config: Config = None,
    app: App = None,
    *,
    start: From = "earliest",
    force: Force = False,
    accept: Annotated[
        bool,
        typer.Option(
            "--accept",
            help="Record the current settings of documents, limits and topics; all workers must"
            " use them from now on. Also go on after the documents' log has lost its end: documents"
            " at offsets that were read before are published on `rejected`.",
        ),
    ] = False,
) -> None:
    """Set starting offsets and record the shared settings, for topics created by other tools.

    Offsets that are already set stay.
    """
    settings = for_kafka(config, bootstrap, app)
    offsets = Start.parse(start, datetime.now(UTC))
    cluster = Cluster(settings.kafka_options())
    console = screen()
    inspection = _existing(cluster, settings)
    topology = inspection.topology
    if accept and inspection.truncated:
        count = accept_cut(cluster, inspection)
        console.print(
            line(
                ("accepted", "green"),
                f" {topology.documents}: it has lost its end;"
                f" {counted(count, 'document')} that nobody has read: on {topology.rejected},"
                " for `neardup redrive`",
            )
        )
    changed = agree(cluster, settings, topology, replace=force or accept)
    _print_recorded(console, settings, topology, changed)
    _print_offsets(console, begin_groups(cluster, topology, offsets, force=force), start)
    _conclude(console, inspect(cluster, settings))


def verify(
    bootstrap: Bootstrap = None,
    config: Config = None,
    app: App = None,
    *,
    as_json: Json = False,
) -> None:
    """Check topics, their settings, and the groups' offsets; exit 2 if a worker can't run."""
    settings = for_kafka(config, bootstrap, app)
    report(inspect(Cluster(settings.kafka_options()), settings), as_json=as_json)


def _existing(cluster: Cluster, settings: Settings) -> Inspection:
    inspection = inspect(cluster, settings)
    for problem in inspection.problems:
        settable = problem.subject.startswith("group ") or (
            problem.subject == inspection.topology.layout_log
            and inspection.topics[inspection.topology.layout_log] is not None
        )
        if problem.severity == "error" and not settable:
            raise CommandError(f"{problem}; see `neardup topics verify`")
    return inspection


def _print_recorded(
    console: Console,
    settings: Settings,
    topology: Topology,
    changed: Sequence[Difference] | None,
) -> None:
    if changed is None:
        console.print(shown(f"kept     {topology.layout_log}: the recorded settings", "dim"))
        return
    text = f" {topology.layout_log}: the settings of all workers"
    console.print(line(("recorded", "green"), text))
    for change in changed:
        console.print(shown(f"         {change.name}: {change.recorded} became {change.here}"))
    if settings.similarity.default_seed:
        console.print(line(("warning ", "yellow"), f" {PUBLIC_SEED}{_SEED_LATER}"))


def _print_offsets(console: Console, begun: Begun, start: str) -> None:
    for group, offsets in begun.committed.items():
        text = f"      group {group}: {counted(len(offsets), 'offset')}, from {start}"
        console.print(line(("set", "green"), text))
    for group, offsets in begun.kept.items():
        present = counted(len(offsets), "offset was", "offsets were")
        text = f"kept     group {group}: {present} already set"
        console.print(shown(text, "dim"))


def report(inspection: Inspection, *, as_json: bool) -> None:
    """Print an inspection, as a table or as JSON.

    Raises:
        CommandError: a worker can't run.
    """
    if as_json:
        print_json(_facts(inspection))
        _refuse_errors(inspection)
        return
    console = screen()
    console.print(_table(inspection))
    console.print()
    _conclude(console, inspection)


def _conclude(console: Console, inspection: Inspection) -> None:
    for problem, following in zip_longest(inspection.problems, inspection.problems[1:]):
        same = following is not None and following.fix == problem.fix
        _print_problem(console, problem, fix="" if same else problem.fix)
    warnings = _refuse_errors(inspection)
    text = f"ok, {counted(warnings, 'warning')}" if warnings else "ok"
    layout = inspection.topology.layout
    console.print(
        f"{text}: {counted(layout.partitions, 'partition')}, {counted(layout.shards, 'shard')},"
        f" {counted(inspection.brokers, 'broker')}"
    )


def _refuse_errors(inspection: Inspection) -> int:
    """Return the number of warnings, if there are no errors."""
    errors = sum(problem.severity == "error" for problem in inspection.problems)
    warnings = len(inspection.problems) - errors
    if errors:
        more = f", {counted(warnings, 'warning')}" if warnings else ""
        raise CommandError(f"a worker can't run: {counted(errors, 'error')}{more}", EXIT_USAGE)
    return warnings


def _print_problem(console: Console, problem: Problem, *, fix: str) -> None:
    style = "bold red" if problem.severity == "error" else "yellow"
    text = line(
        (problem.subject, "bold"),
        f": {problem.what} is ",
        (problem.has, style),
        f", must be {problem.takes}",
        (f" ({problem.why})" if problem.why else "", "dim"),
    )
    grid = Table.grid(padding=(0, 1))
    grid.add_column(width=8)
    grid.add_column(overflow="fold")
    grid.add_row(Text(problem.severity, style), text)
    if fix:
        grid.add_row("", line(("fix: ", "dim"), fix))
    console.print(grid)


def _table(inspection: Inspection) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("")
    table.add_column("topic or group", overflow="fold")
    for name in ("parts", "copies", "keeps", "time", "batch"):
        table.add_column(name, justify="right")
    for plan in inspection.plans:
        state = inspection.topics[plan.name]
        mark = _mark(inspection, plan.name)
        if state is None:
            table.add_row(mark, shown(plan.name), "-", "-", "-", "-", "-")
            continue
        table.add_row(
            mark,
            shown(plan.name),
            str(state.partitions),
            f"{state.settings.get('min.insync.replicas', '?')}/{state.replicas}",
            _keeps(state.settings.get("cleanup.policy", ""), state.settings.get("retention.ms")),
            state.settings.get("message.timestamp.type", "?").removesuffix("Time"),
            _size(int(state.settings.get("max.message.bytes", "0"))),
        )
    table.add_section()
    for stage in STAGES:
        group = inspection.topology.group(stage)
        expected = sum(inspection.topology.inputs(stage).values())
        have = len(inspection.committed[group])
        mark = _mark(inspection, f"group {group}") if have == expected else _WRONG
        table.add_row(mark, shown(f"group {group}"), "", "", f"{have} of {expected} set")
    return table


def _mark(inspection: Inspection, subject: str) -> Text:
    severities = {p.severity for p in inspection.problems if p.subject == subject}
    if "error" in severities:
        return _WRONG
    return Text("warning", "yellow") if severities else Text("ok", "green")


def _keeps(policy: str, retention_ms: str | None) -> str:
    if "compact" in policy:
        return "compacted"
    if retention_ms is None or int(retention_ms) < 0:
        return "for ever"
    hours = int(retention_ms) / 3_600_000
    return f"{hours / 24:g} days" if hours >= 24 else f"{hours:.3g} hours"  # noqa: PLR2004 -- a day


def _size(size: int) -> str:
    return f"{size / (1 << 20):.1f} MiB" if size >= 1 << 20 else f"{size / 1024:.0f} KiB"


def _facts(inspection: Inspection) -> dict[str, Any]:
    """Return an inspection as plain values. The names are part of the interface."""
    topology = inspection.topology
    groups = {topology.group(stage): sum(topology.inputs(stage).values()) for stage in STAGES}
    return {
        "ok": not any(problem.severity == "error" for problem in inspection.problems),
        "app": topology.app,
        "partitions": topology.layout.partitions,
        "shards": topology.layout.shards,
        "brokers": inspection.brokers,
        "topics": [_topic(inspection, plan.name) for plan in inspection.plans],
        "groups": [
            {"name": name, "offsets": len(inspection.committed[name]), "inputs": inputs}
            for name, inputs in groups.items()
        ],
        "problems": [asdict(problem) for problem in inspection.problems],
    }


def _topic(inspection: Inspection, name: str) -> dict[str, Any]:
    state = inspection.topics[name]
    if state is None:
        return {"name": name, "exists": False}
    return {
        "name": name,
        "exists": True,
        "partitions": state.partitions,
        "replicas": state.replicas,
        "settings": dict(sorted(state.settings.items())),
    }
