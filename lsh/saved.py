"""The file of a saved index: numpy's .npz, without pickle. The only file of `lsh` with I/O.

It has the documents in their order, not the buckets, because these follow from the documents.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final, TypeAlias

import numpy as np

from lsh.fingerprint import Fingerprints
from lsh.parameters import OMITTED, Parameters

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike

    from numpy.typing import NDArray

__all__ = ["FORMAT_VERSION", "FilePath", "Saved", "read", "write"]

FilePath: TypeAlias = "str | PathLike[str]"

FORMAT_VERSION = 2
_EARLIER: Final = 1  # It is read, too: it had no sizes.
_FORMAT: Final = "neardup index"
_TYPES: Final = {"keys": "<u8", "sketches": "|u1", "shingles": "<u4", "blank": "|b1"}
_SIZES: Final = "<i8"


@dataclass(frozen=True, slots=True)
class Saved:
    """What a file has.

    header: what the index was made with; values of JSON.
    ids: n ids. texts: n texts, None for a document that was added without; or None.
    keys: uint64[columns, n]. sketches: uint8[n, slots]. shingles: uint32[n]. blank: bool[n].
    sizes: int64[n], how many different shingles each document has; -1 if nobody counted.
    """

    header: dict[str, Any]
    ids: Sequence[str | int]
    texts: Sequence[str | None] | None
    keys: NDArray[np.uint64]
    sketches: NDArray[np.uint8]
    shingles: NDArray[np.uint32]
    blank: NDArray[np.bool_]
    sizes: NDArray[np.int64]

    def fingerprints(self) -> Fingerprints:
        """Return the fingerprints of the documents."""
        return Fingerprints(self.keys.T, self.sketches, self.shingles, self.blank)

    def countable(self) -> bool:
        """Return whether the size of each document is known, or can be counted from its text."""
        texts = [None] * len(self.ids) if self.texts is None else self.texts
        uncounted = np.flatnonzero((self.sizes < 0) & ~self.blank)
        return all(texts[row] is not None for row in uncounted.tolist())

    def parameters(self) -> Parameters:
        """Return the parameters of the index, but with the public default seed.

        Raises ValueError if the header doesn't have all, or if there was a list of boilerplate,
        which isn't in the file.
        """
        described = self.header["parameters"]
        if "boilerplate" in described:
            raise ValueError("boilerplate: the index was made with a list; see Index.load")
        named = (field.name for field in fields(Parameters))
        absent = {"seed", "boilerplate"} | (OMITTED - described.keys())
        return Parameters(**{name: described[name] for name in named if name not in absent})

    def require(self, parameters: Parameters) -> None:
        """Check that the index was made with these parameters, and by the same scheme.

        Raises ValueError with one line that names the difference.
        """
        described = self.header["parameters"]
        own = parameters.describe()
        if described.get("boilerplate") != own.pop("boilerplate", None):
            raise ValueError("boilerplate: the index was made with another list, or with none")
        for name in {**own, **dict.fromkeys(OMITTED & described.keys())}:
            ours = own.get(name)
            if name == "seed_digest" and described.get(name) != ours:
                raise ValueError("seed: the index was made with another one; see Index.load")
            if described.get(name) != ours:
                raise ValueError(f"{name}: the file has {described.get(name)!r}, not {ours!r}")


def write(path: FilePath, saved: Saved) -> None:
    """Write a file. Until it is complete, one of that name stays as it was.

    Raises OSError if it can't be written.
    """
    header = {"format": _FORMAT, "version": FORMAT_VERSION, **saved.header}
    arrays: dict[str, Any] = {
        "header": _packed(header),
        "ids": _packed(saved.ids),
        "texts": _packed(saved.texts),
    }
    kinds = {**_TYPES, "sizes": _SIZES}
    arrays |= {name: getattr(saved, name).astype(kind) for name, kind in kinds.items()}
    target = Path(path)
    beside = target.with_name(target.name + ".part")
    try:
        with beside.open("wb") as file:
            np.savez(file, **arrays)
        beside.replace(target)
    finally:
        with suppress(FileNotFoundError):
            beside.unlink()


def read(path: FilePath) -> Saved:
    """Return what a file has.

    Raises OSError if it can't be opened, and ValueError with one line if it isn't a saved index,
    has another version, or is damaged.
    """
    with Path(path).open("rb") as file:
        try:
            return _read(file)
        except _OtherVersion as error:
            raise ValueError(f"{path} {error}") from None
        except Exception as error:  # A damaged file can make numpy and zipfile raise anything.
            message = f"{path} is not a saved index, or is damaged: {error}"
            raise ValueError(message) from error


class _OtherVersion(ValueError):
    """The file has another version."""


def _read(file: BinaryIO) -> Saved:
    with np.load(file, allow_pickle=False) as arrays:
        header = _unpacked(arrays["header"])
        if header["format"] != _FORMAT:
            raise ValueError(f"its format is {header['format']!r}")
        version = header["version"]
        if version not in (_EARLIER, FORMAT_VERSION):
            raise _OtherVersion(f"has version {version!r} of the format, not {FORMAT_VERSION}")
        typed = {name: _typed(arrays[name], kind) for name, kind in _TYPES.items()}
        uncounted = np.full(len(typed["shingles"]), -1)
        sizes = uncounted if version == _EARLIER else arrays["sizes"]
        typed["sizes"] = _typed(sizes, _SIZES)
        saved = Saved(header, _unpacked(arrays["ids"]), _unpacked(arrays["texts"]), **typed)
    _check_shapes(saved)
    return saved


def _packed(value: object) -> NDArray[np.uint8]:
    return np.frombuffer(json.dumps(value).encode("ascii"), np.uint8)


def _unpacked(array: NDArray[Any]) -> Any:  # noqa: ANN401 -- what the JSON has
    return json.loads(_typed(array, "|u1").tobytes())


def _typed(array: NDArray[Any], kind: str) -> NDArray[Any]:
    if array.dtype != np.dtype(kind):
        raise ValueError(f"an array of {array.dtype} is where {kind} should be")
    return array


def _check_shapes(saved: Saved) -> None:
    """Check that all parts have the same number of documents."""
    count = len(saved.shingles)
    texts = saved.ids if saved.texts is None else saved.texts
    shapes = saved.keys.shape[1:], saved.sketches.shape[:1], saved.shingles.shape, saved.blank.shape
    if {*shapes, saved.sizes.shape, (len(saved.ids),), (len(texts),)} != {(count,)}:
        raise ValueError("its parts have different numbers of documents")
