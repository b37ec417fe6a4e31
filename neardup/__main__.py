"""``neardup``, the command, and ``python -m neardup``."""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path

__all__ = ["main"]

_HERE = str(Path(__file__).parents[1])


class _Beside:
    """Finds ``lsh`` and ``worker`` beside this package, whatever else has such a name.

    Directories of ``PYTHONPATH``, and with ``-m`` the current one, come before installed packages,
    and somebody's ``worker.py`` may be in one.
    """

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        del path, target
        return PathFinder.find_spec(name, [_HERE]) if name in {"lsh", "worker"} else None


# At once: a process that multiprocessing starts imports this module, and calls nothing in it.
sys.meta_path.insert(0, _Beside)


def main() -> None:
    """Run the command line."""
    from worker.cli.root import main as run  # noqa: PLC0415 -- found as above

    run()


if __name__ == "__main__":
    main()
