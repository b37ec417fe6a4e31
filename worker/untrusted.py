"""The errors of decoders at untrusted bytes. Each reader of such bytes raises an error of its own.

`tests/readers` lists the readers, and shows each of them hostile bytes.
"""

from __future__ import annotations

from typing import Final

NOT_READ: Final = (ValueError, RecursionError)
"""The errors of msgspec, json and codecs: their own are all ValueErrors, and values that nest
deeply end the stack."""


def why(error: Exception) -> str:
    """Return what is wrong with bytes at which a decoder has raised an error."""
    return "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
