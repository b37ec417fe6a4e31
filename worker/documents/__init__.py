"""Finds documents on the topics: by position, by id, by header."""

from __future__ import annotations
