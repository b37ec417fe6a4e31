"""Every alert fires when it should, says what is wrong, and has a section in the runbook."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.support.prometheus import program
from tools.alerts import ALERTS, Alert, anchor, rules
from worker.metrics import table

ROOT = Path(__file__).parents[2]
RULES = ROOT / "deploy" / "prometheus" / "neardup.rules.yml"
A_WORKER = 'app="news",instance="a:9464"'


class Case(NamedTuple):
    """What Prometheus has scraped each minute, when it is asked, and what the alert then says."""

    series: dict[str, str]
    minute: int
    labels: dict[str, str]
    summary: str


APP = {"app": "news"}
WORKER = {"app": "news", "instance": "a:9464"}

CASES = {
    "NeardupDown": Case(
        {f'neardup_assigned_partitions{{{A_WORKER},stage="index"}}': "4x5 _x60"},
        20,
        {**APP, "stage": "index"},
        "No worker runs index of news",
    ),
    "NeardupRestarting": Case(
        {f"process_start_time_seconds{{{A_WORKER}}}": "1x2 2x2 3x2 4x2 5x30"},
        14,
        WORKER,
        "Restarts of news on a:9464 within 30 minutes: 4",
    ),
    "NeardupNotReady": Case(
        {f"neardup_ready{{{A_WORKER}}}": "0x30"},
        16,
        WORKER,
        "news on a:9464 has not been ready for 15 minutes",
    ),
    "NeardupVerdictsLate": Case(
        {f'neardup_watermark_age_seconds{{{A_WORKER},stage="route"}}': "0+60x30"},
        12,
        APP,
        "A document of news has waited for its verdict for 12m 0s",
    ),
    "NeardupLag": Case(
        {f'neardup_consumer_lag_seconds{{{A_WORKER},stage="index"}}': "0+60x30"},
        20,
        {**APP, "stage": "index"},
        "The stage index of news is 20m 0s behind",
    ),
    "NeardupLatency": Case(
        {
            f'neardup_latency_seconds_bucket{{{A_WORKER},le="60"}}': "0x30",
            f'neardup_latency_seconds_bucket{{{A_WORKER},le="300"}}': "0+100x30",
            f'neardup_latency_seconds_bucket{{{A_WORKER},le="+Inf"}}': "0+100x30",
        },
        20,
        APP,
        "One verdict of news in 100 takes longer than 4m 57s",
    ),
    "NeardupRejected": Case(
        {f'neardup_documents_total{{{A_WORKER},verdict="rejected"}}': "0x5 2x30"},
        10,
        APP,
        "Documents that news rejected within 15 minutes: 2",
    ),
    "NeardupFramesRefused": Case(
        {f'neardup_frames_refused_total{{{A_WORKER},stage="index"}}': "0x5 1x30"},
        10,
        {**APP, "stage": "index"},
        "Records that index of news refused within 15 minutes: 1",
    ),
    "NeardupTransactions": Case(
        {
            f'neardup_transactions_total{{{A_WORKER},stage="route",outcome="aborted"}}': "0+1x30",
            f'neardup_transactions_total{{{A_WORKER},stage="route",outcome="committed"}}': "0+9x30",
        },
        20,
        {**APP, "stage": "route"},
        "Transactions of route of news that failed within 15 minutes: 15",
    ),
    "NeardupUnreadPartitions": Case(
        {f'neardup_unread_partitions{{{A_WORKER},stage="route"}}': "2x30"},
        6,
        {**APP, "stage": "route"},
        "Partitions that route of news has and doesn't read: 2",
    ),
    "NeardupWatchdog": Case(
        {
            f'neardup_watchdog_seconds{{{A_WORKER},stage="route",watch="progress"}}': "90x9",
            f'neardup_watchdog_limit_seconds{{{A_WORKER},watch="progress"}}': "120x9",
        },
        5,
        {**WORKER, "stage": "route", "watch": "progress"},
        "route of news on a:9464 makes no progress (progress): 75% of the time after which the"
        " worker exits",
    ),
    "NeardupKafkaSilent": Case(
        {f"neardup_kafka_silent_seconds{{{A_WORKER}}}": "45x9"},
        5,
        WORKER,
        "No broker has answered news on a:9464 for 45s",
    ),
    "NeardupSettingsRefused": Case(
        {f"neardup_refused_settings{{{A_WORKER}}}": "1x9"},
        5,
        APP,
        "Settings of topics with which workers of news end: 1",
    ),
    "NeardupRestore": Case(
        {f'neardup_restore_remaining_records{{{A_WORKER},shard="3"}}': "900-1x30"},
        16,
        {**APP, "shard": "3"},
        "Shard 3 of news has not answered for 15 minutes",
    ),
    "NeardupDisk": Case(
        {
            f'neardup_state_disk_bytes{{{A_WORKER},part="free"}}': "5x30",
            f'neardup_state_disk_bytes{{{A_WORKER},part="total"}}': "100x30",
        },
        6,
        WORKER,
        "5% of the disk of news on a:9464 is free",
    ),
    "NeardupMemory": Case(
        {
            f'neardup_memory_bytes{{{A_WORKER},part="worker"}}': "150x30",
            f'neardup_memory_share_bytes{{{A_WORKER},part="worker"}}': "100x30",
        },
        16,
        {**WORKER, "part": "worker"},
        "news on a:9464 takes 150% of worker.memory",
    ),
    "NeardupSnapshots": Case(
        {f'neardup_snapshots_total{{{A_WORKER},outcome="failed"}}': "0x5 3x60"},
        30,
        APP,
        "Snapshots of news that failed within an hour: 3",
    ),
    "NeardupSnapshotOld": Case(
        {
            f'neardup_snapshot_timestamp_seconds{{{A_WORKER},shard="0"}}': "0x200",
            f'neardup_index_documents_total{{{A_WORKER},kind="live"}}': "0+10x200",
        },
        180,
        {**APP, "shard": "0"},
        "The newest snapshot of shard 0 of news is 3h 0m 0s old",
    ),
    "NeardupSnapshotDamaged": Case(
        {f'neardup_snapshot_damaged_files_total{{{A_WORKER},in_store="no"}}': "0x5 1x60"},
        30,
        APP,
        "Files of snapshots of news that were found damaged: 1",
    ),
}

HEALTHY = {
    # Two workers are restarted one after the other; the first has a new address afterwards.
    'neardup_ready{app="news",instance="a:9464"}': "1x20 0x2 _x180",
    'neardup_ready{app="news",instance="c:9464"}': "_x22 0x2 1x180",
    'neardup_ready{app="news",instance="b:9464"}': "1x30 _x2 0x2 1x180",
    'process_start_time_seconds{app="news",instance="b:9464"}': "1x30 _x2 9x180",
    'neardup_assigned_partitions{app="news",instance="a:9464",stage="index"}': "4x22 _x180",
    'neardup_assigned_partitions{app="news",instance="b:9464",stage="index"}': "4x30 _x2 4x180",
    'neardup_assigned_partitions{app="news",instance="c:9464",stage="index"}': "_x24 4x180",
    # A worker that starts is behind for a minute, and some transactions are rolled back.
    'neardup_watermark_age_seconds{app="news",instance="b:9464",stage="route"}': "1x32 90x2 1x180",
    'neardup_consumer_lag_seconds{app="news",instance="b:9464",stage="index"}': "1x32 90x2 1x180",
    'neardup_transactions_total{app="news",instance="b:9464",stage="route",outcome="aborted"}': (
        "0x20 1x10 _x2 0x2 1x180"
    ),
    'neardup_documents_total{app="news",instance="b:9464",verdict="rejected"}': "7x30 _x2 0x180",
    'neardup_restore_remaining_records{app="news",instance="b:9464",shard="1"}': "0x32 800x3 0x180",
    'neardup_kafka_silent_seconds{app="news",instance="b:9464"}': "0x30 2 0x180",
    'neardup_snapshot_timestamp_seconds{app="news",instance="b:9464",shard="1"}': "0+60x180",
    # An application that gets no documents has old snapshots.
    'neardup_snapshot_timestamp_seconds{app="idle",instance="d:9464",shard="0"}': "0x180",
    'neardup_index_documents_total{app="idle",instance="d:9464",kind="live"}': "500x180",
    'neardup_index_documents_total{app="news",instance="b:9464",kind="live"}': "0+10x180",
}


def rule_test(series: dict[str, str], asked: list[dict[str, Any]]) -> dict[str, Any]:
    given = [{"series": name, "values": values} for name, values in series.items()]
    return {"interval": "1m", "input_series": given, "alert_rule_test": asked}


def run_promtool(directory: Path, tests: list[dict[str, Any]]) -> None:
    """Have promtool test the rules that are shipped."""
    path = directory / "tests.yml"
    path.write_text(
        json.dumps({"rule_files": [str(RULES)], "evaluation_interval": "1m", "tests": tests})
    )
    done = subprocess.run(
        [program("promtool"), "test", "rules", str(path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_rules_are_those_of_the_table() -> None:
    assert RULES.read_text() == rules(), "run: python -m tools.monitoring deploy"


def test_prometheus_accepts_the_rules() -> None:
    done = subprocess.run(
        [program("promtool"), "check", "rules", "--lint-fatal", str(RULES)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"SUCCESS: {len(ALERTS)} rules found" in done.stdout


def test_each_alert_has_a_case() -> None:
    assert [alert.name for alert in ALERTS] == list(CASES)


def test_every_alert_fires_and_says_what_is_wrong(tmp_path: Path) -> None:
    tests = []
    for alert in ALERTS:
        case = CASES[alert.name]
        runbook = f"docs/how-to/runbook.md#{anchor(alert)}"
        fires = {
            "exp_labels": {"severity": alert.severity, **case.labels},
            "exp_annotations": {"summary": case.summary, "runbook": runbook},
        }
        asked = {"alertname": alert.name, "eval_time": f"{case.minute}m", "exp_alerts": [fires]}
        tests.append(rule_test(case.series, [asked]))
    run_promtool(tmp_path, tests)


def test_no_alert_fires_on_three_healthy_hours_with_a_rolling_restart(tmp_path: Path) -> None:
    asked: list[dict[str, Any]] = [
        {"alertname": alert.name, "eval_time": f"{minute}m", "exp_alerts": []}
        for alert in ALERTS
        for minute in range(1, 180)
    ]
    run_promtool(tmp_path, [rule_test(HEALTHY, asked)])


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert.name)
def test_an_alert_names_metrics_that_exist_by_application(alert: Alert) -> None:
    known = {metric.name for metric in table.TABLE}
    named = set(re.findall(r"\bneardup_[a-z_]+[a-z]", alert.value))
    assert {name.removesuffix("_bucket") for name in named} <= known
    for grouped in re.findall(r"\b(?:by|on) \(([^)]*)\)", alert.value):
        assert grouped.split(", ")[0] == "app", alert.value


def test_each_alert_has_a_section_in_the_runbook() -> None:
    page = (ROOT / "docs" / "how-to" / "runbook.md").read_text()
    assert re.findall(r"^### (Neardup\w+)$", page, re.MULTILINE) == [one.name for one in ALERTS]
