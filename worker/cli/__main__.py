"""``python -m worker.cli``."""

from __future__ import annotations

from worker.cli.root import main

main()
