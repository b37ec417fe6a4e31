"""Readers and writers of users' files: documents in, verdicts out, in several formats."""

from __future__ import annotations
