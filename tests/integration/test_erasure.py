"""What is forgotten leaves every file of running workers in time, also where a shard was before."""

import json
from base64 import b32encode
from collections.abc import Callable
from pathlib import Path
from random import Random
from time import monotonic

import pytest

from localkafka.broker import wait_until
from tests.integration.conftest import Launch
from tests.support.application import ApplicationUnderTest
from tests.support.command_line import on_kafka
from tests.support.live_files import live_files
from tests.support.texts import near_copies

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(600), pytest.mark.slow(ci=False)]

SECONDS = 60.0
"""The least that index.erasure_seconds can be."""
MARGIN = 20.0
COUNT = 50


def stores(application: ApplicationUnderTest, name: str) -> set[str]:
    return {path.name for path in application.worker(name).state_dir.glob("shard-*")}


def having(application: ApplicationUnderTest, idents: list[str]) -> set[Path]:
    """Return the files of workers that have any of these ids."""
    found = set()
    for name in application.workers:
        for path in live_files(application.directory / name):
            try:
                content = path.read_bytes()
            except FileNotFoundError:  # The worker has just deleted it.
                continue
            if any(ident.encode() in content for ident in idents):
                found.add(path)
    return found


def erased(application: ApplicationUnderTest, idents: list[str]) -> Callable[[], bool]:
    return lambda: not having(application, idents)


def test_what_is_forgotten_after_a_shard_has_moved_is_gone_in_time(launch: Launch) -> None:
    application = launch(
        partitions=2, settings={"index": {"erasure_seconds": SECONDS, "flush_seconds": 1}}
    )
    application.seat("alpha")
    chance = Random(4)
    idents = [b32encode(chance.randbytes(20)).decode() for _ in range(COUNT)]
    texts = [text for _, text in near_copies(COUNT, 3)]
    application.feed(application.documents(list(zip(idents, texts, strict=True))))
    application.audit.reach(COUNT, 60)
    wait_until(lambda: bool(having(application, idents)), 30, "a flush")
    application.seat("beta")
    moved = stores(application, "beta")
    assert moved
    assert moved < stores(application, "alpha")
    done = on_kafka("forget", "--json", "--config", application.config, *idents, "a-typo")
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert "a-typo" in said["unknown"]
    # Copies for which other documents stand are unknown, too.
    assert len(said["unknown"]) < COUNT / 2
    began = monotonic()
    wait_until(erased(application, idents), SECONDS + MARGIN, "files without the ids")
    assert monotonic() - began < SECONDS + MARGIN
    wait_until(lambda: stores(application, "alpha").isdisjoint(moved), MARGIN, "a deletion")
