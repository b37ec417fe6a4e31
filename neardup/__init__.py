"""neardup finds near-duplicate texts: on Kafka, in files, and in Python.

>>> import neardup
>>> texts = ["The quick brown fox jumps over the lazy dog.", "Something else altogether."]
>>> neardup.dedupe([*texts, "The quick brown fox jumps over the lazy dog!"])
[None, None, 0]

The filter for Kafka is the command `neardup`, which is `python -m neardup` as well. The whole
library is `lsh`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lsh import Index, Parameters

__all__ = ["Index", "__version__", "dedupe"]

__version__ = "0.1.0"


def dedupe(texts: Iterable[str], parameters: Parameters | None = None) -> list[int | None]:
    """Return for each text the position of the earlier one that it repeats; None for a unique one.

    parameters: how texts become fingerprints; None: `lsh.Parameters()`. Of several earlier texts,
        the most similar one counts.

    Raises TypeError if a text is none.
    """
    from lsh import Index  # noqa: PLC0415 -- the command line starts without numpy

    index = Index(parameters)
    found = index.add_many(enumerate(texts))
    return [int(found[at][0].id) if at in found else None for at in range(len(index))]


def __getattr__(name: str) -> object:
    """Import `Index` when somebody asks for it: the command line starts without numpy."""
    if name != "Index":
        raise AttributeError(f"module 'neardup' has no attribute {name!r}")
    from lsh import Index  # noqa: PLC0415 -- see above

    return Index
