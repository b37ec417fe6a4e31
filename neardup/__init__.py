"""neardup finds near-duplicate texts: on Kafka, in files, and in Python.

>>> import neardup
>>> index = neardup.Index()
>>> index.add("a", "The quick brown fox jumps over the lazy dog.")
[]
>>> index.add("b", "The quick brown fox jumps over the lazy dog!")
[Hit(id='a', similarity=0.9686274509803922)]

`dedupe` judges the rows of a data frame. Both are of `lsh`, which has the whole library. The filter
for Kafka is the command `neardup`, which is `python -m neardup` as well.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lsh import Index, dedupe

__all__ = ["Index", "__version__", "dedupe"]

__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    """Import the library when somebody asks for it: the command line starts without numpy."""
    if name not in __all__:
        raise AttributeError(f"module 'neardup' has no attribute {name!r}")
    import lsh  # noqa: PLC0415 -- see above

    return getattr(lsh, name)
