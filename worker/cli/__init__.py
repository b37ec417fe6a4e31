"""The command line: one module a command, each imported only when it runs."""

from __future__ import annotations

from worker.cli.root import main

__all__ = ["main"]
