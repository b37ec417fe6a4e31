"""The alerts as a file of rules that Prometheus loads."""

from __future__ import annotations

import json
from typing import Final

from worker.metrics.alerts import ALERTS, Alert

_RUNBOOK: Final = "docs/how-to/runbook.md"
_HEAD = """\
# Alerts of neardup. Generated: python -m worker.metrics deploy
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
