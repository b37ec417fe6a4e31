"""Snapshots of shards: shipped to a repository, verified there, and restored."""

from __future__ import annotations
