"""A reader of a stranger's bytes, and the rule that it must hold."""

from __future__ import annotations

import resource
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import process_time
from typing import Final

from tests.readers.hostile import Form

_MOST_SECONDS: Final = 10.0
"""Far above what any reader takes for the largest of these, on any machine."""
_MOST_KB: Final = 128 << 10
"""Beside a multiple of what was given, which is the reader's to build."""


@dataclass(frozen=True)
class Reader:
    """What reads a stranger's bytes.

    modules: the modules whose code it shows. own: what it raises, beside returning. seeds: sound
    bytes, which it reads without an error, in a form whose parts can be changed.
    """

    name: str
    modules: Sequence[str]
    read: Callable[[bytes], object]
    own: tuple[type[Exception], ...]
    seeds: Sequence[bytes]
    form: Form = "bytes"

    def show(self, data: bytes, seed: str) -> None:
        """Show it some bytes; ``seed`` is what repeats them.

        Raises:
            AssertionError: it breaks the rule.
        """
        peak, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, process_time()
        said = f"{self.name}, seed {seed}: {data[:80]!r} ({len(data)} bytes)"
        try:
            self.read(data)
        except self.own:
            pass  # As it should.
        except BaseException as error:
            raise AssertionError(f"{said}: {type(error).__name__}: {str(error)[:200]}") from error
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak
        assert process_time() - began < _MOST_SECONDS, said
        assert grown < _MOST_KB + len(data) // 10, f"{said}: took {grown} kB"
