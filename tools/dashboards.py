"""The dashboards: their panels, what these ask, and the JSON that Grafana 11 imports."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from worker.metrics.table import TABLE


@dataclass(frozen=True, slots=True)
class Panel:
    """A graph.

    Attributes:
        title: what it shows.
        unit: Grafana's name of the values' unit.
        queries: legends with their PromQL, without the application, which the dashboard selects.
        now: whether only the present value is of interest: a number, not a graph.
    """

    title: str
    unit: str
    queries: dict[str, str]
    now: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    """Panels below a heading."""

    title: str
    panels: tuple[Panel, ...]


@dataclass(frozen=True, slots=True)
class Dashboard:
    """A page of panels; ``name`` is the file's, and part of the address."""

    name: str
    title: str
    rows: tuple[Row, ...]


def _rates(metric: str, by: str) -> dict[str, str]:
    """Return the query of a counter's rates a second, by a label."""
    return {f"{{{{{by}}}}}": f"sum by ({by}) (rate({metric}[$__rate_interval]))"}


def _most(metric: str, by: str = "shard") -> dict[str, str]:
    """Return the query of a gauge's greatest values, by a label."""
    legend = f"{{{{{by}}}}}" if by == "stage" else f"{by} {{{{{by}}}}}"
    return {legend: f"max by ({by}) ({metric})"}


def _each(query: str) -> dict[str, str]:
    """Return a query that has a value for each process."""
    return {"{{instance}}": query}


def _quantile(metric: str, share: float, by: str = "le") -> str:
    """Return the query of a histogram's quantile."""
    return f"histogram_quantile({share}, sum by ({by}) (rate({metric}_bucket[$__rate_interval])))"


def _median(metric: str) -> dict[str, str]:
    """Return the queries of a histogram's median and 99th percentile."""
    return {"median": _quantile(metric, 0.5), "p99": _quantile(metric, 0.99)}


def _rate(series: str) -> str:
    return f"sum(rate({series}[$__rate_interval]))"


def _for_each_document(metric: str) -> str:
    return f"{_rate(metric)} / {_rate('neardup_index_documents_total')}"


_FREE_DISK: Final = (
    'neardup_state_disk_bytes{part="free"} / on (instance) neardup_state_disk_bytes{part="total"}'
)
_DUPLICATE: Final = 'neardup_documents_total{verdict="duplicate"}'
_REJECTED: Final = 'neardup_documents_total{verdict="rejected"}'
_PUBLISHED: Final = 'neardup_watermark_age_seconds{stage="route"}'
_MEMORY: Final = (
    'neardup_memory_bytes{part="worker"} / on (instance, part) neardup_memory_share_bytes'
)
_WATCHDOG: Final = (
    "neardup_watchdog_seconds / on (instance, watch) group_left neardup_watchdog_limit_seconds"
)
_TO_COMPACT: Final = "neardup_index_pending_compaction_bytes"

_NOW: Final = Row(
    "Now",
    (
        Panel("Ready processes", "none", {"": "sum(neardup_ready)"}, now=True),
        Panel("Documents a second", "short", {"": _rate("neardup_documents_total")}, now=True),
        Panel(
            "Duplicates",
            "percentunit",
            {"": f"{_rate(_DUPLICATE)} / {_rate('neardup_documents_total')}"},
            now=True,
        ),
        Panel("Oldest without a verdict", "s", {"": f"max({_PUBLISHED})"}, now=True),
        Panel(
            "Rejected in an hour", "short", {"": f"round(sum(increase({_REJECTED}[1h])))"}, now=True
        ),
        Panel("Least free disk", "percentunit", {"": f"min({_FREE_DISK})"}, now=True),
    ),
)
_VERDICTS: Final = Row(
    "Verdicts",
    (
        Panel("Documents a second", "short", _rates("neardup_documents_total", "verdict")),
        Panel("From a document to its verdict", "s", _median("neardup_latency_seconds")),
        # A series begins with the first document of its reason: a rate would miss that one.
        Panel(
            "Rejected since the workers' start",
            "short",
            {"{{reason}}": "sum by (reason) (neardup_rejected_total)"},
        ),
    ),
)
_STAGES: Final = Row(
    "Stages",
    (
        Panel(
            "Age of the oldest unread record", "s", _most("neardup_consumer_lag_seconds", "stage")
        ),
        Panel(
            "Age of the oldest uncommitted record",
            "s",
            _most("neardup_watermark_age_seconds", "stage"),
        ),
        Panel(
            "Unread records, worst partition",
            "short",
            _most("neardup_consumer_lag_records", "stage"),
        ),
        Panel("Transactions a second", "short", _rates("neardup_transactions_total", "outcome")),
        Panel(
            "Duration of transactions, p99",
            "s",
            {"{{stage}}": _quantile("neardup_transaction_seconds", 0.99, "le, stage")},
        ),
        Panel(
            "Partitions with an owner",
            "none",
            {"{{stage}}": "sum by (stage) (neardup_assigned_partitions)"},
        ),
        Panel("Rebalances a second", "short", _rates("neardup_rebalances_total", "stage")),
        Panel(
            "Watchdogs, share of the limit",
            "percentunit",
            {"{{stage}} {{watch}}": f"max by (stage, watch) ({_WATCHDOG})"},
        ),
        Panel("Kafka doesn't answer for", "s", _each("neardup_kafka_silent_seconds")),
    ),
)
_PROCESSES: Final = Row(
    "Processes",
    (
        Panel("Ready", "none", _each("neardup_ready")),
        Panel("Cores", "short", _each("rate(process_cpu_seconds_total[$__rate_interval])")),
        Panel("Memory, share of worker.memory", "percentunit", _each(_MEMORY)),
        Panel(
            "Memory by part",
            "bytes",
            {"{{part}}": 'sum by (part) (neardup_memory_bytes{part!="worker"})'},
        ),
        Panel(
            "Messages in clients' queues",
            "short",
            {"{{part}}": "sum by (part) (neardup_queued_messages)"},
        ),
        Panel("Open files", "short", _each("process_open_fds")),
    ),
)
_SHARDS: Final = Row(
    "Shards",
    (
        Panel(
            "Documents judged a second", "short", _rates("neardup_index_documents_total", "kind")
        ),
        Panel(
            "Comparisons for each document and shard",
            "short",
            {
                "compared": _for_each_document("neardup_index_candidates_total"),
                "matches": _for_each_document("neardup_index_matches_total"),
            },
        ),
        Panel(
            "Frames to read before a shard answers",
            "short",
            _most("neardup_restore_remaining_records"),
        ),
        Panel("Size on disk", "bytes", _most("neardup_index_bytes")),
        Panel("Documents with records", "short", _most("neardup_index_kept_documents")),
        Panel("Memory", "bytes", _most("neardup_index_memory_bytes")),
        Panel(
            "Warm copies and servers are behind",
            "short",
            {"{{instance}} shard {{shard}}": "neardup_standby_lag_records"},
        ),
        Panel("Age of the oldest era", "s", _most("neardup_index_oldest_seconds")),
        Panel(
            "Evicted, old, repeated: a second",
            "short",
            {
                "evicted": _rate("neardup_index_dropped_total"),
                "older than a window": _rate("neardup_index_older_total"),
                "sent again": _rate("neardup_index_repeated_total"),
            },
        ),
    ),
)
_DISK: Final = Row(
    "Disk",
    (
        Panel("Free", "percentunit", _each(_FREE_DISK)),
        Panel(
            "Share of the time that writes wait",
            "percentunit",
            _each("rate(neardup_index_stalled_seconds_total[$__rate_interval])"),
        ),
        Panel("To be compacted", "bytes", _most(_TO_COMPACT)),
    ),
)
_SNAPSHOTS: Final = Row(
    "Snapshots",
    (
        Panel(
            "Age of the newest",
            "s",
            {"shard {{shard}}": "time() - max by (shard) (neardup_snapshot_timestamp_seconds)"},
        ),
        Panel("Size of the newest", "bytes", _most("neardup_snapshot_bytes")),
        Panel(
            "In an hour",
            "short",
            {"{{outcome}}": "sum by (outcome) (increase(neardup_snapshots_total[1h]))"},
        ),
    ),
)
_QUERIES: Final = Row(
    "Queries",
    (
        Panel("Requests a second", "short", _rates("neardup_queries_total", "outcome")),
        Panel("Duration", "s", _median("neardup_query_seconds")),
        Panel("Verdicts a second", "short", _rates("neardup_query_verdicts_total", "verdict")),
    ),
)

DASHBOARDS: Final = (
    Dashboard("neardup", "neardup", (_NOW, _VERDICTS, _STAGES, _PROCESSES)),
    Dashboard(
        "neardup-index",
        "neardup: index, snapshots, queries",
        (_SHARDS, _DISK, _SNAPSHOTS, _QUERIES),
    ),
)
"""All dashboards."""

_SOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}
_COLUMNS = 24
_GRAPH = 8, 8
"""The width and the height of a graph, in columns."""
_NUMBER = 4, 4
_SERIES = re.compile(r"\b((?:neardup|process)_\w+)(\{?)")
_LINK = re.compile(r"\[([^\]]+)\]\([^)]+\)")


def dashboard(page: Dashboard) -> str:
    """Return a dashboard as Grafana's JSON."""
    model = {
        "uid": page.name,
        "title": page.title,
        "tags": ["neardup"],
        "schemaVersion": 39,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-3h", "to": "now"},
        "links": [
            {
                "type": "dashboards",
                "title": "neardup",
                "tags": ["neardup"],
                "asDropdown": False,
                "keepTime": True,
                "includeVars": True,
            }
        ],
        "templating": {"list": _variables()},
        "panels": list(_panels(page)),
    }
    return json.dumps(model, indent=1) + "\n"


def selected(query: str) -> str:
    """Return a query of the series of one application, which the dashboard's variable names."""
    return _SERIES.sub(lambda found: f'{found[1]}{{app="$app"' + ("," if found[2] else "}"), query)


def _variables() -> list[dict[str, Any]]:
    query = "label_values(neardup_ready, app)"
    return [
        {
            "name": "datasource",
            "label": "Data source",
            "type": "datasource",
            "query": "prometheus",
            "refresh": 1,
        },
        {
            "name": "app",
            "label": "Application",
            "type": "query",
            "datasource": _SOURCE,
            "definition": query,
            "query": {"query": query, "refId": "app"},
            "refresh": 2,
            "sort": 1,
        },
    ]


def _panels(page: Dashboard) -> Iterator[dict[str, Any]]:
    """Yield the rows and their panels, each with its place."""
    y = number = 0
    for row in page.rows:
        number += 1
        at = {"x": 0, "y": y, "w": _COLUMNS, "h": 1}
        yield {"id": number, "type": "row", "title": row.title, "gridPos": at, "panels": []}
        y += 1
        x = height = 0
        for panel in row.panels:
            number += 1
            width, height = _NUMBER if panel.now else _GRAPH
            if x + width > _COLUMNS:
                x, y = 0, y + height
            yield _panel(number, panel, {"x": x, "y": y, "w": width, "h": height})
            x += width
        y += height


def _panel(number: int, panel: Panel, at: dict[str, int]) -> dict[str, Any]:
    defaults: dict[str, Any] = {"unit": panel.unit, "min": 0}
    options: dict[str, Any]
    if panel.now:
        options = {"reduceOptions": {"calcs": ["lastNotNull"]}, "colorMode": "none"}
    else:
        defaults["custom"] = {"lineWidth": 1, "fillOpacity": 5, "showPoints": "never"}
        options = {
            "tooltip": {"mode": "multi", "sort": "desc"},
            "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True},
        }
    return {
        "id": number,
        "type": "stat" if panel.now else "timeseries",
        "title": panel.title,
        "description": _about(panel),
        "datasource": _SOURCE,
        "gridPos": at,
        "fieldConfig": {"defaults": defaults, "overrides": []},
        "options": options,
        "targets": [
            {
                "refId": chr(ord("A") + place),
                "datasource": _SOURCE,
                "expr": selected(query),
                "legendFormat": legend or "__auto",
            }
            for place, (legend, query) in enumerate(panel.queries.items())
        ],
    }


def _about(panel: Panel) -> str:
    """Return what the table says of the metrics that a panel shows."""
    queries = " ".join(panel.queries.values())
    shown = [one for one in TABLE if re.search(rf"\b{one.name}(_bucket)?\b", queries)]
    texts = (f"`{one.name}`: {one.meaning} {one.remedy}" for one in shown)
    return _LINK.sub(r"\1", "\n\n".join(texts))
