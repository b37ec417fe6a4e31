"""Writes what follows from the table of metrics.

``python -m tools.monitoring > docs/reference/metrics.md`` writes the page of all metrics, and
``python -m tools.monitoring deploy`` the rules and dashboards into that folder.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from tools.alerts import ALERTS, anchor, rules
from tools.dashboards import DASHBOARDS, dashboard
from worker.metrics.metric import Area, Histogram, Metric
from worker.metrics.table import TABLE

_TITLES: Final[Mapping[Area, tuple[str, str]]] = {
    "verdicts": ("Verdicts", "The verdicts on documents, and how long they take."),
    "stages": (
        "Stages",
        "The label `stage` is fingerprint, index or route. Each stage has its own loop.",
    ),
    "index": (
        "Index",
        "A worker exports the shards that it owns, and the lag of those that it keeps warm.",
    ),
    "queries": (
        "Queries",
        "Only `neardup serve` feeds these; see [querying](../how-to/query.md).",
    ),
    "snapshots": (
        "Snapshots",
        "These need `index.snapshots.url`; see [snapshots](../how-to/snapshots.md).",
    ),
    "process": ("Process", "The worker itself."),
}

_INTRODUCTION = """\
# Metrics

A worker serves its metrics for Prometheus at `/metrics`, on `worker.http_host:worker.http_port`:

    $ curl -s localhost:9464/metrics | grep -E '^neardup_(documents|rejected)_total'
    neardup_documents_total{app="neardup",verdict="unique"} 48211.0
    neardup_documents_total{app="neardup",verdict="duplicate"} 5127.0
    neardup_documents_total{app="neardup",verdict="rejected"} 2.0
    neardup_rejected_total{app="neardup",reason="not-json"} 2.0

Every series has the label `app`, the application's name (the setting `app`); the tables below
leave it out. On Linux there are also `process_cpu_seconds_total`, `process_resident_memory_bytes`,
`process_open_fds` and the other `process_*` that all of Prometheus's clients have.

## Alerts

`deploy/prometheus/neardup.rules.yml` has these ([how to use it](../how-to/monitor.md)). Start with
these thresholds, and adjust them to your load.

| alert | severity | when | minutes |
|---|---|---|--:|
"""

_FOOT = """
This page is generated: `python -m tools.monitoring > docs/reference/metrics.md`.
"""


def reference() -> str:
    """Return the page of all metrics, as Markdown."""
    parts = [_INTRODUCTION]
    parts += [
        f"| [{alert.name}](../how-to/runbook.md#{anchor(alert)}) | {alert.severity}"
        f" | `{alert.expression}` | {alert.minutes} |\n"
        for alert in ALERTS
    ]
    for area, (title, about) in _TITLES.items():
        parts.append(f"\n## {title}\n\n{about}\n\n")
        parts.append("| metric | kind | meaning | what to do |\n|---|---|---|---|\n")
        parts += [_row(metric) for metric in TABLE if metric.area == area]
    return "".join([*parts, _FOOT])


def files() -> dict[str, str]:
    """Return the texts of all rules and dashboards, by their paths in ``deploy/``."""
    dashboards = {f"grafana/{page.name}.json": dashboard(page) for page in DASHBOARDS}
    return {"prometheus/neardup.rules.yml": rules(), **dashboards}


def _row(metric: Metric) -> str:
    labels = f"{{{','.join(metric.labels)}}}" if metric.labels else ""
    meaning = " ".join([metric.meaning, *_bounds(metric)])
    kind = type(metric).__name__.lower()
    return f"| `{metric.name}{labels}` | {kind} | {meaning} | {metric.remedy} |\n"


def _bounds(metric: Metric) -> Iterator[str]:
    if isinstance(metric, Histogram):
        yield f"Buckets up to {', '.join(f'{bound:g}' for bound in metric.buckets)}."


if __name__ == "__main__":
    for directory in sys.argv[1:]:
        for path, text in files().items():
            target = Path(directory, path)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")
    if not sys.argv[1:]:
        sys.stdout.write(reference())
