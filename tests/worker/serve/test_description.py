"""The description of the API holds: schemathesis makes requests of it, good and bad ones."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.support.corpus import examples
from worker.cli.demo_page import page_of
from worker.settings.model import Settings

pytestmark = pytest.mark.needs("schemathesis")

TEXT = "The quick brown fox jumps over the lazy dog, and then it jumps back again."
# What a document is, and what a text must have, is up to the settings: a query may be of the form
# that is described, and be refused.
CONFIGURATION = """
[[operations]]
include-path = "/v1/query"
checks.positive_data_acceptance.enabled = false

[[operations]]
include-path = "/v1/corrections"
include-method = "POST"
checks.positive_data_acceptance.enabled = false
"""


@pytest.mark.slow
def test_the_api_is_as_it_is_described(tmp_path: Path) -> None:
    settings = Settings.model_validate(
        {"app": "read", "serve": {"port": 0}, "index": {"cache_bytes": 1 << 20, "shards": 2}}
    )
    values = [b'{"id": "%d", "text": "%s"}' % (n, TEXT.encode()) for n in range(10)]
    (tmp_path / "schemathesis.toml").write_text(CONFIGURATION)
    with page_of(settings, [*values, b"no JSON"], iter(()), threading.Event()) as address:
        done = subprocess.run(
            [sys.executable, "-m", "schemathesis.cli", "run", f"{address}/v1/openapi.json",
             "--exclude-path", "/v1/duplicates/stream",  # It has no end.
             "--max-examples", str(examples(8, 20)), "--seed", "1", "--generation-database", "none",
             "--request-timeout", "20", "--no-color", "--warnings", "off"],
            cwd=tmp_path, capture_output=True, text=True, check=False, timeout=240,
        )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
