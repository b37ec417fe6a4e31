"""Fixtures: worlds, and what knows how they should have ended."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from tests.world.measures import Measures
from tests.world.crash.proof import Oracle
from tests.world.world import World

MakeWorld = Callable[..., World]


def _fast_directory() -> Path:
    """Make a directory in memory where there is one: hundreds of RocksDBs come and go."""
    memory = Path("/dev/shm")  # noqa: S108 -- the directory below has a name of its own
    return Path(tempfile.mkdtemp(prefix="neardup-", dir=memory if memory.is_dir() else None))


@pytest.fixture(scope="session")
def directory() -> Iterator[Path]:
    """Yield a directory for all disks."""
    path = _fast_directory()
    yield path
    shutil.rmtree(path)


@pytest.fixture
def world(directory: Path) -> Iterator[MakeWorld]:
    """Yield a factory of worlds; takes what the class takes."""
    with ExitStack() as stack:

        def make(measures: Measures | None = None) -> World:
            place = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=directory)))
            return stack.enter_context(closing(World(place, measures)))

        yield make


@pytest.fixture(scope="session")
def oracle(directory: Path) -> Oracle:
    """Give what judges runs; shared, for many runs have the same logs."""
    return Oracle(directory)
