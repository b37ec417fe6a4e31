"""Small batches of documents that unpack to much: a worker gets past them, or says how."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from typing import Final

import pytest

from localkafka.broker import wait_until
from tests.integration.conftest import Launch
from tests.support.application import ApplicationUnderTest
from tests.support.bombs import write_batch
from tests.support.checker import check
from tests.support.checker.history import History, reason, source
from tests.support.corpus import corpus
from tests.support.little_memory import LittleMemory
from tests.support.proof import history_of, prove
from tests.support.worker_process import WorkerProcess
from worker.bus import TopicPartition

pytestmark = [pytest.mark.kafka, pytest.mark.slow, pytest.mark.timeout(300)]

MIB: Final = 1 << 20
LEAST: Final = {"worker": {"memory": "256MiB"}}
SIZE: Final = 950_000
DOCUMENTS: Final = 120


def fed(application: ApplicationUnderTest, codec: str, count: int, size: int = SIZE) -> list[int]:
    """Write documents, and a batch between those of partition 0; give the batch's offsets."""
    documents = application.documents(list(corpus(DOCUMENTS, 12)))
    place = TopicPartition(application.topology.documents, 0)
    application.feed(documents[: DOCUMENTS // 2])
    batch = write_batch(application.kafka.bootstrap, place, codec, count, size)
    application.inputs += batch
    application.feed(documents[DOCUMENTS // 2 :])
    return [record.offset for record in batch]


def test_a_batch_of_zstd_beyond_librdkafkas_own_limit_is_read(launch: Launch) -> None:
    application = launch(partitions=2, settings=LEAST)
    fed(application, "zstd", 106)
    application.start("alpha")
    history = prove(application)
    assert not history.rejected


@pytest.mark.slow(ci=False)
def test_a_batch_that_kills_two_stages_at_once_is_read_by_one_after_the_other(
    launch: Launch,
) -> None:
    application = launch(partitions=2, settings=LEAST)
    fed(application, "gzip", 200)
    worker = application.worker("alpha")
    with LittleMemory(worker, 400 * MIB, partial(application.start, "alpha")) as memory:
        application.start("alpha")
        history = prove(application)
    assert not history.rejected
    assert memory.kills >= 1
    assert "the worker died, or was killed, while it fetched documents" in worker.output()


@pytest.mark.slow(ci=False)
def test_a_batch_that_memory_has_no_room_for_is_set_aside_by_a_command(launch: Launch) -> None:
    application = launch(partitions=2, settings=LEAST)
    batch = fed(application, "gzip", 200)
    worker = application.worker("alpha")
    with LittleMemory(worker, 240 * MIB, partial(application.start, "alpha")):
        application.start("alpha")
        line = _refusal(worker)  # How often it is killed before depends on how busy the machine is.
        _skip(application, line, str(batch[-1] + 1))
        application.start("alpha")
        history = _published(application)
    _check_set_aside(history, batch)


def test_a_batch_beyond_every_limit_is_set_aside_by_a_command(launch: Launch) -> None:
    application = launch(partitions=2, settings=LEAST)
    batch = fed(application, "zstd", 600)  # 570 MB: no memory is taken for it.
    worker = application.worker("alpha")
    application.start("alpha")
    line = _refusal(worker)
    assert "Its checksum is right" in line
    _skip(application, line, None)
    application.start("alpha")
    _check_set_aside(_published(application), batch)


def _refusal(worker: WorkerProcess) -> str:
    """Wait until a worker ends by itself; give its last line."""

    def ended() -> bool:
        return worker.process is not None and worker.process.poll() == 1

    wait_until(ended, 120, "the worker to end by itself")
    return worker.output().splitlines()[-1]


def _skip(application: ApplicationUnderTest, line: str, to: str | None) -> None:
    """Run the command that a worker's last line names: first without doing it."""
    named = re.search(r"`neardup (skip 0 \d+)`", line)
    assert named is not None, line
    command = [sys.executable, "-m", "worker.cli", *named[1].split()]
    command += ["--config", str(application.config)]
    command += [] if to is None else ["--to", to]
    run = partial(subprocess.run, capture_output=True, text=True, check=True)
    assert "nothing was changed" in run(command).stderr
    assert "set aside" in run([*command, "--yes"]).stderr


def _published(application: ApplicationUnderTest) -> History:
    application.audit.finish(120)
    return history_of(application)


def _check_set_aside(history: History, batch: Sequence[int]) -> None:
    """All others were published once, and each of the batch is on *rejected* once."""
    assert not check(history)
    rejected = sorted(source(record) for record in history.rejected)
    assert rejected == [(0, offset) for offset in batch]
    assert {reason(record) for record in history.rejected} == {"unreadable"}
