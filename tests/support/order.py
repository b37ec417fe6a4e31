"""In which order processes that run tests side by side take the files."""

from collections.abc import Collection, Iterable
from typing import Final

LONGEST: Final = (
    "tests/chaos/test_cells.py",
    "tests/integration/test_monitoring.py",
    "tests/integration/test_reindex.py",
    "tests/integration/test_unpacking.py",
    "tests/contract/test_bus_truncation.py",
    "tests/integration/test_restarts.py",
    "tests/core/test_fuzzing.py",
    "tests/worker/page/test_views.py",
    "tests/world/crash/test_points.py",
    "tests/integration/test_scaling.py",
    "tests/world/crash/test_reindex.py",
    "tests/integration/test_slow_link.py",
    "tests/integration/test_snapshots.py",
    "tests/integration/test_agreement.py",
    "tests/worker/cli/test_redrive.py",
    "tests/integration/test_bad_input.py",
    "tests/integration/test_truncated_log.py",
    "tests/integration/test_erasure.py",
    "tests/worker/page/test_corrections.py",
    "tests/worker/serve/test_page_attacks.py",
    "tests/chaos/test_redrive.py",
    "tests/integration/test_standby_trim.py",
    "tests/integration/test_poison.py",
    "tests/integration/test_configuration.py",
    "tests/chaos/test_doubt.py",
    "tests/integration/test_outage.py",
    "tests/integration/test_frozen_broker.py",
    "tests/kafka/test_broker.py",
    "tests/kafka/test_positions.py",
    "tests/integration/test_verdicts.py",
    "tests/contract/test_bus_reading.py",
    "tests/worker/index/test_decision.py",
    "tests/contract/test_bus_groups.py",
    "tests/worker/cli/test_on_kafka.py",
    "tests/integration/test_deleted_records.py",
    "tests/worker/cli/test_dedupe_state.py",
    "tests/worker/offline/test_embedded.py",
)
"""Files that take half a minute and more in one of the runs; the longest first."""


def longest_first(files: Iterable[str], on_broker: Collection[str]) -> list[str]:
    """Return the files: the longest, then others with a real broker, then the rest as they were.

    A long file that began late would run alone at the end. Those that don't wait fill gaps.
    """
    places = {name: place for place, name in enumerate(LONGEST)}
    return sorted(files, key=lambda name: (places.get(name, len(LONGEST)), name not in on_broker))
