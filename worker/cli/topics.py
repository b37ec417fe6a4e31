"""``neardup topics`` and ``neardup init``: create topics, set starting offsets, check both."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from itertools import zip_longest
from typing import Any

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
from worker.cli.screen import line, print_json, screen, shown
from worker.settings.loading import PUBLIC_SEED
from worker.settings.model import Settings
from worker.topology import STAGES, Topology
from worker.visible import counted

_WRONG = Text("wrong", "bold red")
_SEED_LATER = ", then run `neardup init --accept`"


def _cluster(settings: Settings) -> Cluster:
    # Silences librdkafka: if the command fails, its last line has the error.
    logging.getLogger("librdkafka").addHandler(logging.NullHandler())
    return Cluster(settings.kafka_options())


def create(
    settings: Settings,
    *,
    partitions: int | None,
    replication: int | None,
    start: str,
    documents_max_bytes: int,
    force: bool,
) -> None:
    """Create missing topics, set the starting offsets, and check everything."""
    where = Start.parse(start, datetime.now(UTC))
    cluster = _cluster(settings)
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
    _recorded(console, settings, topology, agree(cluster, settings, topology, replace=force))
    _report(console, begin_groups(cluster, topology, where, force=force), start)
    _conclude(console, inspect(cluster, settings))


def begin(settings: Settings, *, start: str, force: bool, accept: bool) -> None:
    """Set the starting offsets, record the shared settings, and check everything."""
    where = Start.parse(start, datetime.now(UTC))
    cluster = _cluster(settings)
    console = screen()
    found = _existing(cluster, settings)
    topology = found.topology
    if accept and found.truncated:
        count = accept_cut(cluster, found)
        console.print(
            line(
                ("accepted", "green"),
                f" {topology.documents}: it has lost its end;"
                f" {counted(count, 'document')} that nobody has read: on {topology.rejected},"
                " for `neardup redrive`",
            )
        )
    changed = agree(cluster, settings, topology, replace=force or accept)
    _recorded(console, settings, topology, changed)
    _report(console, begin_groups(cluster, topology, where, force=force), start)
    _conclude(console, inspect(cluster, settings))


def _existing(cluster: Cluster, settings: Settings) -> Inspection:
    found = inspect(cluster, settings)
    for problem in found.problems:
        settable = problem.subject.startswith("group ") or (
            problem.subject == found.topology.layout_log
            and found.topics[found.topology.layout_log] is not None
        )
        if problem.severity == "error" and not settable:
            raise CommandError(f"{problem}; see `neardup topics verify`")
    return found


def _recorded(
    console: Console,
    settings: Settings,
    topology: Topology,
    changed: Sequence[Difference] | None,
) -> None:
    if changed is None:
        console.print(shown(f"kept     {topology.layout_log}: the recorded settings", "dim"))
        return
    said = f" {topology.layout_log}: the settings of all workers"
    console.print(line(("recorded", "green"), said))
    for one in changed:
        console.print(shown(f"         {one.name}: {one.recorded} became {one.here}"))
    if settings.similarity.default_seed:
        console.print(line(("warning ", "yellow"), f" {PUBLIC_SEED}{_SEED_LATER}"))


def _report(console: Console, begun: Begun, start: str) -> None:
    for group, offsets in begun.committed.items():
        said = f"      group {group}: {counted(len(offsets), 'offset')}, from {start}"
        console.print(line(("set", "green"), said))
    for group, offsets in begun.kept.items():
        present = counted(len(offsets), "offset was", "offsets were")
        said = f"kept     group {group}: {present} already set"
        console.print(shown(said, "dim"))


def show(settings: Settings, *, as_json: bool) -> None:
    """Print the topics and groups, and their problems; see `report`."""
    report(inspect(_cluster(settings), settings), as_json=as_json)


def report(found: Inspection, *, as_json: bool) -> None:
    """Print what an inspection has found, as a table or as JSON.

    Raises:
        CommandError: a worker can't run.
    """
    if as_json:
        print_json(_facts(found))
        _refuse_errors(found)
        return
    console = screen()
    console.print(_table(found))
    console.print()
    _conclude(console, found)


def _conclude(console: Console, found: Inspection) -> None:
    for problem, following in zip_longest(found.problems, found.problems[1:]):
        same = following is not None and following.fix == problem.fix
        _print_problem(console, problem, fix="" if same else problem.fix)
    warnings = _refuse_errors(found)
    said = f"ok, {counted(warnings, 'warning')}" if warnings else "ok"
    console.print(
        f"{said}: {counted(found.topology.layout.partitions, 'partition')},"
        f" {counted(found.topology.layout.shards, 'shard')}, {counted(found.brokers, 'broker')}"
    )


def _refuse_errors(found: Inspection) -> int:
    """Return the number of warnings, if there are no errors."""
    errors = sum(problem.severity == "error" for problem in found.problems)
    warnings = len(found.problems) - errors
    if errors:
        more = f", {counted(warnings, 'warning')}" if warnings else ""
        raise CommandError(f"a worker can't run: {counted(errors, 'error')}{more}", EXIT_USAGE)
    return warnings


def _print_problem(console: Console, problem: Problem, *, fix: str) -> None:
    style = "bold red" if problem.severity == "error" else "yellow"
    said = line(
        (problem.subject, "bold"),
        f": {problem.what} is ",
        (problem.has, style),
        f", must be {problem.takes}",
        (f" ({problem.why})" if problem.why else "", "dim"),
    )
    grid = Table.grid(padding=(0, 1))
    grid.add_column(width=8)
    grid.add_column(overflow="fold")
    grid.add_row(Text(problem.severity, style), said)
    if fix:
        grid.add_row("", line(("fix: ", "dim"), fix))
    console.print(grid)


def _table(found: Inspection) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("")
    table.add_column("topic or group", overflow="fold")
    for name in ("parts", "copies", "keeps", "time", "batch"):
        table.add_column(name, justify="right")
    for one in found.plans:
        state = found.topics[one.name]
        mark = _mark(found, one.name)
        if state is None:
            table.add_row(mark, shown(one.name), "-", "-", "-", "-", "-")
            continue
        table.add_row(
            mark,
            shown(one.name),
            str(state.partitions),
            f"{state.settings.get('min.insync.replicas', '?')}/{state.replicas}",
            _keeps(state.settings.get("cleanup.policy", ""), state.settings.get("retention.ms")),
            state.settings.get("message.timestamp.type", "?").removesuffix("Time"),
            _size(int(state.settings.get("max.message.bytes", "0"))),
        )
    table.add_section()
    for stage in STAGES:
        group = found.topology.group(stage)
        wanted = sum(found.topology.inputs(stage).values())
        have = len(found.committed[group])
        mark = _mark(found, f"group {group}") if have == wanted else _WRONG
        table.add_row(mark, shown(f"group {group}"), "", "", f"{have} of {wanted} set")
    return table


def _mark(found: Inspection, subject: str) -> Text:
    severities = {p.severity for p in found.problems if p.subject == subject}
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


def _facts(found: Inspection) -> dict[str, Any]:
    """Return an inspection as plain values. The names are part of the interface."""
    topology = found.topology
    groups = {topology.group(stage): sum(topology.inputs(stage).values()) for stage in STAGES}
    return {
        "ok": not any(problem.severity == "error" for problem in found.problems),
        "app": topology.app,
        "partitions": topology.layout.partitions,
        "shards": topology.layout.shards,
        "brokers": found.brokers,
        "topics": [_topic(found, one.name) for one in found.plans],
        "groups": [
            {"name": name, "offsets": len(found.committed[name]), "inputs": inputs}
            for name, inputs in groups.items()
        ],
        "problems": [asdict(problem) for problem in found.problems],
    }


def _topic(found: Inspection, name: str) -> dict[str, Any]:
    state = found.topics[name]
    if state is None:
        return {"name": name, "exists": False}
    return {
        "name": name,
        "exists": True,
        "partitions": state.partitions,
        "replicas": state.replicas,
        "settings": dict(sorted(state.settings.items())),
    }
