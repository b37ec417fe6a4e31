"""Lines of bounded size."""

from __future__ import annotations

from collections.abc import Iterator

from worker.cli.inputs.compressed import Reader
from worker.offline import Line

__all__ = ["lines"]

_SKIP = 1 << 20


def lines(file: Reader, base: bytes, max_line: int) -> Iterator[Line]:
    """Yield the lines of a file, without blank ones; ``base`` names the file in their keys.

    Of a line longer than ``max_line`` bytes, the beginning is kept and the rest is skipped.
    """
    readline = file.readline
    limit = max_line + 2
    number = 0
    while raw := readline(limit):
        number += 1
        size = len(raw)
        if size == limit and not raw.endswith(b"\n"):
            while rest := readline(_SKIP):
                size += len(rest)
                if rest.endswith(b"\n"):
                    break
        if not raw.isspace():
            yield Line(b"%s:%d" % (base, number), raw, size)
