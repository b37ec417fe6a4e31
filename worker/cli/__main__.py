"""``python -m worker.cli``."""

from __future__ import annotations

from worker.cli import main

main()
