"""The files of a directory in which running workers create and delete."""

import os
from collections.abc import Iterator
from pathlib import Path


def live_files(directory: Path) -> Iterator[Path]:
    """Yield each file below this directory. Any of them may be gone by then.

    Unlike `Path.rglob`, it passes over a directory that is deleted while it is read.
    """
    for parent, _, names in os.walk(directory):
        for name in names:
            yield Path(parent, name)
