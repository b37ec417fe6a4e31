"""Creates and checks an application's topics, groups and offsets."""

from __future__ import annotations

from worker.admin.checks import Inspection, Problem, inspect, topic_problems, verify
from worker.admin.cluster import Cluster
from worker.admin.create import Created, create
from worker.admin.layout_log import agree, refuse_others
from worker.admin.starts import Begun, Start, begin

__all__ = [
    "Begun",
    "Cluster",
    "Created",
    "Inspection",
    "Problem",
    "Start",
    "agree",
    "begin",
    "create",
    "inspect",
    "refuse_others",
    "topic_problems",
    "verify",
]
