"""What ``neardup topics verify --json`` prints."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from worker.admin import Inspection
from worker.topology import STAGES

__all__ = ["facts"]


def facts(found: Inspection) -> dict[str, Any]:
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
