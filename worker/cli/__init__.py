"""The command line: one module per command, imported only when the command runs."""

from __future__ import annotations

from worker.cli.root import main

__all__ = ["main"]
