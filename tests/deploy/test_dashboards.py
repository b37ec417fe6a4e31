"""The dashboards are those of the table, and hang together as Grafana wants them."""

from __future__ import annotations

import json
import re
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from tools.dashboards import DASHBOARDS, selected
from tools.monitoring import files
from worker.metrics import table

DEPLOY = Path(__file__).parents[2] / "deploy"
METRICS = {metric.name for metric in table.TABLE}


def page(path: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((DEPLOY / path).read_text())
    return found


def queries(found: dict[str, Any]) -> list[str]:
    return [one["expr"] for panel in found["panels"] for one in panel.get("targets", ())]


@pytest.fixture(params=[f"grafana/{one.name}.json" for one in DASHBOARDS])
def dashboard(request: pytest.FixtureRequest) -> dict[str, Any]:
    return page(request.param)


def test_the_files_are_those_of_the_tables() -> None:
    there = {f"grafana/{path.name}" for path in (DEPLOY / "grafana").glob("*.json")}
    assert there == {path for path in files() if path.startswith("grafana/")}
    for path, text in files().items():
        assert (DEPLOY / path).read_text() == text, "run: python -m tools.monitoring deploy"


def test_dashboards_have_addresses_of_their_own() -> None:
    assert len({one.name for one in DASHBOARDS}) == len({one.title for one in DASHBOARDS}) == 2


def test_panels_have_places_of_their_own(dashboard: dict[str, Any]) -> None:
    panels = dashboard["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    places = [panel["gridPos"] for panel in panels]
    assert all(at["x"] + at["w"] <= 24 for at in places)
    for one, other in combinations(places, 2):
        beside = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
        below = one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"]
        assert beside or below, (one, other)


def test_a_dashboard_asks_for_one_application_of_one_data_source(dashboard: dict[str, Any]) -> None:
    variables = {one["name"] for one in dashboard["templating"]["list"]}
    assert variables == {"datasource", "app"}
    for panel in dashboard["panels"]:
        for target in panel.get("targets", ()):
            assert target["datasource"] == panel["datasource"]
            assert target["datasource"]["uid"] == "${datasource}"
    for query in queries(dashboard):
        assert set(re.findall(r"\$(\w+)", query)) <= {"app", "__rate_interval"}
        series = re.findall(r"\b((?:neardup|process)_\w+)(\{app=\"\$app\"[,}])?", query)
        assert series
        for name, selector in series:
            assert selector, query
            assert name.startswith("process_") or name.removesuffix("_bucket") in METRICS


def test_a_panel_says_what_its_metrics_mean(dashboard: dict[str, Any]) -> None:
    for panel in dashboard["panels"]:
        own = [one["expr"] for one in panel.get("targets", ())]
        for name in set(re.findall(r"\bneardup_\w+", " ".join(own))):
            assert f"`{name.removesuffix('_bucket')}`: " in panel["description"]
        assert "](" not in panel.get("description", "")


def test_a_query_selects_its_application() -> None:
    assert selected('a(neardup_x{y="z"}) / on (b) neardup_y[5m]') == (
        'a(neardup_x{app="$app",y="z"}) / on (b) neardup_y{app="$app"}[5m]'
    )
