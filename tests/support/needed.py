"""Tests that need what may not be here: a package of an extra, or a browser.

Such a test has the marker ``needs("pyarrow")``. It is skipped without that, and fails with
``NEARDUP_REQUIRE_EXTRAS=1``. The summary counts those that ran, so that CI can't pass without them.
"""

from __future__ import annotations

import os
import shutil
from collections import Counter
from importlib.util import find_spec

import pytest

_REQUIRED = os.environ.get("NEARDUP_REQUIRE_EXTRAS") == "1"
_PROGRAMS = frozenset({"chromium"})
_RAN = "with"


class Needed:
    """Skips, fails and counts tests by what they need. By their reports: see `tests.conftest`."""

    def __init__(self) -> None:
        self._ran: Counter[str] = Counter()

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        for item in items:
            item.user_properties += [(_RAN, name) for name in _needed(item)]

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        for name in _needed(item):
            found = shutil.which(name) if name in _PROGRAMS else find_spec(name)
            if found is None and _REQUIRED:
                pytest.fail(f"{name} is required, and is not here", pytrace=False)
            if found is None:
                pytest.skip(f"{name} is not here")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" and not report.skipped:
            names = [value for key, value in report.user_properties if key == _RAN]
            self._ran.update(map(str, names))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        for name, count in sorted(self._ran.items()):
            terminalreporter.write_line(f"with {name}: {count} tests")


def _needed(item: pytest.Item) -> list[str]:
    return [name for marker in item.iter_markers("needs") for name in marker.args]
