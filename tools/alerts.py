"""Every alert, and the file of rules that Prometheus loads. Each has a section in the runbook."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Final, Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """When somebody should look.

    Attributes:
        name: the alert's name, and the heading of its section in the runbook.
        value: a PromQL expression that has series while all is well, too.
        fires: the comparison with which the value is bad.
        minutes: for how long it must be so.
        severity: ``critical`` if documents wait or are about to, else ``warning``.
        summary: what is wrong, in the words of Prometheus's templates.
    """

    name: str
    value: str
    fires: str
    minutes: int
    severity: Literal["critical", "warning"]
    summary: str

    @property
    def expression(self) -> str:
        """Return the expression that is evaluated."""
        return f"{self.value} {self.fires}"


_APP = "{{ $labels.app }}"
_STAGE = "{{ $labels.stage }}"
_WORKER = f"{_APP} on {{{{ $labels.instance }}}}"
_VALUE = "{{ $value | humanize }}"
_SECONDS = "{{ $value | humanizeDuration }}"

ALERTS: Final = (
    Alert(
        name="NeardupDown",
        value="sum by (app, stage) (neardup_assigned_partitions"
        " or last_over_time(neardup_assigned_partitions[1h]) * 0)",
        fires="== 0",
        minutes=5,
        severity="critical",
        summary=f"No worker runs {_STAGE} of {_APP}",
    ),
    Alert(
        name="NeardupRestarting",
        value='changes(process_start_time_seconds{app!=""}[30m])',
        fires="> 3",
        minutes=0,
        severity="critical",
        summary=f"Restarts of {_WORKER} within 30 minutes: {_VALUE}",
    ),
    Alert(
        name="NeardupNotReady",
        value="neardup_ready",
        fires="== 0",
        minutes=15,
        severity="warning",
        summary=f"{_WORKER} has not been ready for 15 minutes",
    ),
    Alert(
        name="NeardupVerdictsLate",
        value='max by (app) (neardup_watermark_age_seconds{stage="route"})',
        fires="> 300",
        minutes=5,
        severity="critical",
        summary=f"A document of {_APP} has waited for its verdict for {_SECONDS}",
    ),
    Alert(
        name="NeardupLag",
        value="max by (app, stage) (neardup_consumer_lag_seconds)",
        fires="> 300",
        minutes=10,
        severity="warning",
        summary=f"The stage {_STAGE} of {_APP} is {_SECONDS} behind",
    ),
    Alert(
        name="NeardupLatency",
        value="histogram_quantile(0.99,"
        " sum by (app, le) (rate(neardup_latency_seconds_bucket[5m])))",
        fires="> 60",
        minutes=10,
        severity="warning",
        summary=f"One verdict of {_APP} in 100 takes longer than {_SECONDS}",
    ),
    Alert(
        name="NeardupRejected",
        value='sum by (app) (increase(neardup_documents_total{verdict="rejected"}[15m]))',
        fires="> 0",
        minutes=0,
        severity="warning",
        summary=f"Documents that {_APP} rejected within 15 minutes: {_VALUE}",
    ),
    Alert(
        name="NeardupFramesRefused",
        value="sum by (app, stage) (increase(neardup_frames_refused_total[15m]))",
        fires="> 0",
        minutes=0,
        severity="critical",
        summary=f"Records that {_STAGE} of {_APP} refused within 15 minutes: {_VALUE}",
    ),
    Alert(
        name="NeardupTransactions",
        value="sum by (app, stage)"
        ' (increase(neardup_transactions_total{outcome!="committed"}[15m]))',
        fires="> 5",
        minutes=0,
        severity="warning",
        summary=f"Transactions of {_STAGE} of {_APP} that failed within 15 minutes: {_VALUE}",
    ),
    Alert(
        name="NeardupUnreadPartitions",
        value="sum by (app, stage) (neardup_unread_partitions)",
        fires="> 0",
        minutes=5,
        severity="critical",
        summary=f"Partitions that {_STAGE} of {_APP} has and doesn't read: {_VALUE}",
    ),
    Alert(
        name="NeardupWatchdog",
        value="max by (app, instance, stage, watch) (neardup_watchdog_seconds"
        " / on (app, instance, watch) group_left neardup_watchdog_limit_seconds)",
        fires="> 0.25",
        minutes=0,
        severity="warning",
        summary=f"{_STAGE} of {_WORKER} makes no progress ({{{{ $labels.watch }}}}):"
        " {{ $value | humanizePercentage }} of the time after which the worker exits",
    ),
    Alert(
        name="NeardupKafkaSilent",
        value="neardup_kafka_silent_seconds",
        fires="> 30",
        minutes=0,
        severity="critical",
        summary=f"No broker has answered {_WORKER} for {_SECONDS}",
    ),
    Alert(
        name="NeardupSettingsRefused",
        value="max by (app) (neardup_refused_settings)",
        fires="> 0",
        minutes=0,
        severity="critical",
        summary=f"Settings of topics with which workers of {_APP} end: {_VALUE}",
    ),
    Alert(
        name="NeardupRestore",
        value="max by (app, shard) (neardup_restore_remaining_records)",
        fires="> 0",
        minutes=15,
        severity="warning",
        summary=f"Shard {{{{ $labels.shard }}}} of {_APP} has not answered for 15 minutes",
    ),
    Alert(
        name="NeardupDisk",
        value='neardup_state_disk_bytes{part="free"} / on (app, instance)'
        ' neardup_state_disk_bytes{part="total"}',
        fires="< 0.1",
        minutes=5,
        severity="critical",
        summary=f"{{{{ $value | humanizePercentage }}}} of the disk of {_WORKER} is free",
    ),
    Alert(
        name="NeardupMemory",
        value='avg_over_time(neardup_memory_bytes{part="worker"}[15m])'
        " / on (app, instance, part) neardup_memory_share_bytes",
        fires="> 1",
        minutes=0,
        severity="warning",
        summary=f"{_WORKER} takes {{{{ $value | humanizePercentage }}}} of worker.memory",
    ),
    Alert(
        name="NeardupSnapshots",
        value='sum by (app) (increase(neardup_snapshots_total{outcome="failed"}[1h]))',
        fires="> 2",
        minutes=0,
        severity="warning",
        summary=f"Snapshots of {_APP} that failed within an hour: {_VALUE}",
    ),
    Alert(
        name="NeardupSnapshotOld",
        value="(time() - max by (app, shard) (neardup_snapshot_timestamp_seconds))"
        " * on (app) group_left clamp_max(ceil(sum by (app)"
        ' (increase(neardup_index_documents_total{kind="live"}[1h] offset 1h))), 1)',
        fires="> 7200",
        minutes=15,
        severity="warning",
        summary=f"The newest snapshot of shard {{{{ $labels.shard }}}} of {_APP} is {_SECONDS} old",
    ),
    Alert(
        name="NeardupSnapshotDamaged",
        value="sum by (app) (increase(neardup_snapshot_damaged_files_total[1h]))",
        fires="> 0",
        minutes=0,
        severity="critical",
        summary=f"Files of snapshots of {_APP} that were found damaged: {_VALUE}",
    ),
)
"""All alerts, the most urgent questions first."""


_RUNBOOK: Final = "docs/how-to/runbook.md"
_HEAD = """\
# Alerts of neardup. Generated: python -m tools.monitoring deploy
groups:
  - name: neardup
    rules:
"""


def rules() -> str:
    """Return all rules, as YAML."""
    return _HEAD + "".join(map(_rule, ALERTS))


def anchor(alert: Alert) -> str:
    """Return the anchor of an alert's section in the runbook."""
    return alert.name.lower()


def _rule(alert: Alert) -> str:
    # In single quotes, YAML knows no escapes; a string of JSON is one of YAML.
    return f"""\
      - alert: {alert.name}
        expr: '{alert.expression}'
        for: {alert.minutes}m
        labels:
          severity: {alert.severity}
        annotations:
          summary: {json.dumps(alert.summary)}
          runbook: {_RUNBOOK}#{anchor(alert)}
"""
