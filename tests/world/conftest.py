"""Fixtures: worlds, and what knows how they should have ended."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Protocol, TypeVar

import pytest

from tests.world.crash.proof import Oracle
from tests.world.measures import Measures
from tests.world.simulation.judge import problems
from tests.world.simulation.timed import TimedWorld
from tests.world.world import World

W = TypeVar("W", bound=World)
Judge = Callable[[TimedWorld], list[str]]


class Make(Protocol):
    """Makes worlds, each with disks of its own."""

    def __call__(self, kind: type[W], measures: Measures | None = None) -> W:
        """Make one of a kind; it is closed when the test ends."""


@pytest.fixture(scope="session")
def directory() -> Iterator[Path]:
    """Yield a directory for all disks; in memory where there is one, for there are hundreds."""
    memory = Path("/dev/shm")  # noqa: S108 -- the directory below has a name of its own
    path = Path(tempfile.mkdtemp(prefix="neardup-", dir=memory if memory.is_dir() else None))
    yield path
    shutil.rmtree(path)


@pytest.fixture
def make(directory: Path) -> Iterator[Make]:
    """Yield a factory of worlds."""
    with ExitStack() as stack:

        def made(kind: type[W], measures: Measures | None = None) -> W:
            place = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=directory)))
            return stack.enter_context(closing(kind(place, measures)))

        yield made


@pytest.fixture(scope="session")
def oracle(directory: Path) -> Oracle:
    """Give what judges runs; shared, for many runs have the same logs."""
    return Oracle(directory)


@pytest.fixture
def judged(directory: Path) -> Judge:
    """Give what ends a run in which time passes, and names what is wrong."""
    return lambda world: problems(world, directory)
