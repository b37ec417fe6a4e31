"""The dashboards as JSON that Grafana 11 imports."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from worker.metrics.panels import Dashboard, Panel
from worker.metrics.table import TABLE

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
