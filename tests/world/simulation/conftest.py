"""Fixtures: worlds, and what every run of one ends with."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from tests.world.simulation.judge import problems
from tests.world.measures import Measures
from tests.world.simulation.timed import World

MakeWorld = Callable[..., World]
Judge = Callable[[World], list[str]]


@pytest.fixture(scope="session")
def directory() -> Iterator[Path]:
    """Yield a directory for all disks; in memory where there is one, for there are hundreds."""
    memory = Path("/dev/shm")  # noqa: S108 -- the directory below has a name of its own
    path = Path(tempfile.mkdtemp(prefix="neardup-", dir=memory if memory.is_dir() else None))
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


@pytest.fixture
def judged(directory: Path) -> Judge:
    """Give what ends a run, and names what is wrong."""
    return lambda world: problems(world, directory)
