"""``python -m worker.metrics > docs/reference/metrics.md`` writes the page of all metrics."""

from __future__ import annotations

import sys

from worker.metrics.reference import reference

sys.stdout.write(reference())
