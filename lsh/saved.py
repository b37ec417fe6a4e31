"""The files of saved indexes: numpy's .npz, without pickle. The only module of `lsh` with I/O.

They have the documents in their order, not the buckets, because these follow from the documents.
"""

from __future__ import annotations

import json
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields
from math import prod
from os import SEEK_END
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final, TypeAlias
from zipfile import ZIP_STORED, ZipFile

import numpy as np
from numpy.lib.format import read_array_header_1_0, read_array_header_2_0, read_magic

from lsh.columns import ids_of
from lsh.fingerprint import Fingerprints
from lsh.parameters import DERIVED, OMITTED, Parameters

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from os import PathLike

    from numpy.typing import NDArray

    from lsh.hits import Id


FilePath: TypeAlias = "str | PathLike[str]"

FORMAT_VERSION = 2
_FORMAT: Final = "neardup index"
_TYPES: Final = {"keys": "<u8", "sketches": "|u1", "shingles": "<u4", "blank": "|b1"}
_SIZES: Final = "<i8"
_PACKED: Final = "|u1"  # JSON


@dataclass(frozen=True, slots=True)
class Saved:
    """The contents of a file.

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

    def first(self, count: int) -> Saved:
        """Return the same with the first documents alone."""
        part = slice(count)
        return Saved(
            self.header,
            self.ids[part],
            None if self.texts is None else self.texts[part],
            self.keys[:, part],
            self.sketches[part],
            self.shingles[part],
            self.blank[part],
            self.sizes[part],
        )

    def countable(self) -> bool:
        """Return whether the size of each document is known, or can be counted from its text."""
        texts = [None] * len(self.ids) if self.texts is None else self.texts
        uncounted = np.flatnonzero((self.sizes < 0) & ~self.blank)
        return all(texts[row] is not None for row in uncounted.tolist())


def _parameters_in(header: dict[str, Any]) -> Parameters:
    """Return the parameters in a header, but with the public default seed.

    Raises ValueError if the header doesn't have all, or if there was a list of boilerplate,
    which isn't in the file.
    """
    described = header["parameters"]
    if "boilerplate" in described:
        raise ValueError("boilerplate: the index was made with a list; give load the parameters")
    named = (field.name for field in fields(Parameters))
    absent = {"seed", "boilerplate"} | (OMITTED - described.keys())
    return Parameters(**{name: described[name] for name in named if name not in absent})


def _require(header: dict[str, Any], parameters: Parameters) -> None:
    """Check that an index was made with these parameters, and by the same scheme.

    Raises ValueError with one line that names the difference.
    """
    described = header["parameters"]
    own = parameters.describe()
    if described.get("boilerplate") != own.pop("boilerplate", None):
        raise ValueError("boilerplate: the index was made with another list, or with none")
    names = {**own, **dict.fromkeys(OMITTED & described.keys())}
    for name in sorted(names, key=lambda name: name in DERIVED):
        ours = own.get(name)
        if name == "seed_digest" and described.get(name) != ours:
            raise ValueError("seed: the index was made with another one; give load the parameters")
        if described.get(name) != ours:
            raise ValueError(f"{name}: the file has {described.get(name)!r}, not {ours!r}")


def write(path: FilePath, saved: Saved) -> None:
    """Write the file of an `Index`. Until it is complete, one of that name stays as it was.

    Raises OSError if it can't be written.
    """
    kinds = {**_TYPES, "sizes": _SIZES}
    arrays = {name: getattr(saved, name).astype(kind) for name, kind in kinds.items()}
    arrays["texts"] = _packed(saved.texts)
    write_arrays(path, _FORMAT, saved.header, saved.ids, arrays)


def write_arrays(
    path: FilePath,
    format_: str,
    header: Mapping[str, Any],
    ids: Iterable[Id],
    arrays: Mapping[str, NDArray[Any]],
) -> None:
    """Write a file. Until it is complete, one of that name stays as it was.

    format_: its name. header: values of JSON. ids: of n documents. arrays: by name.

    Raises OSError if it can't be written.
    """
    packed: dict[str, Any] = {
        "header": _packed({"format": format_, "version": FORMAT_VERSION, **header}),
        "ids": _packed(list(ids)),
    }
    packed |= arrays
    target = Path(path)
    beside = target.with_name(target.name + ".part")
    try:
        with beside.open("wb") as file:
            np.savez(file, **packed)
        beside.replace(target)
    finally:
        with suppress(FileNotFoundError):
            beside.unlink()


def read(path: FilePath) -> Saved:
    """Return what the file of an `Index` has.

    Raises OSError and ValueError as `read_arrays` does.
    """
    kinds = {**_TYPES, "sizes": _SIZES, "texts": _PACKED}
    header, ids, arrays = read_arrays(path, _FORMAT, kinds)
    with named_damage(path):
        saved = Saved(header, ids, _unpacked(arrays.pop("texts")), **arrays)
        texts = saved.ids if saved.texts is None else saved.texts
        shapes = saved.keys.shape[1:], saved.sketches.shape[:1], saved.shingles.shape
        all_shapes = {*shapes, saved.blank.shape, saved.sizes.shape, (len(ids),), (len(texts),)}
        if all_shapes != {(len(ids),)}:
            raise ValueError("its parts have different numbers of documents")
    return saved


def read_arrays(
    path: FilePath, format_: str, kinds: Mapping[str, str]
) -> tuple[dict[str, Any], list[Id], dict[str, NDArray[Any]]]:
    """Return what a file has: its header, its ids and its arrays.

    format_: the name that it was written with. kinds: the types of its arrays by name.

    Raises OSError if it can't be opened, and ValueError with one line if it isn't such a file,
    has another version, or is damaged.
    """
    with Path(path).open("rb") as file, named_damage(path):
        _check_lengths(file)
        with np.load(file) as arrays:
            header = _unpacked(_typed(arrays["header"], _PACKED))
            _check_format(header, format_)
            ids = _unpacked(_typed(arrays["ids"], _PACKED))
            typed = {name: _typed(arrays[name], kind) for name, kind in kinds.items()}
        return header, ids_of(ids), typed


def parameters_of(
    path: FilePath, header: dict[str, Any], parameters: Parameters | None
) -> Parameters:
    """Return the parameters of the index in a file.

    parameters: what it must have been made with; None: what its header says.

    Raises ValueError with one line if it was made with others, or the header doesn't say all.
    """
    with named_damage(path, (KeyError, TypeError)):
        try:
            found = _parameters_in(header) if parameters is None else parameters
            _require(header, found)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None
    return found


@contextmanager
def named_damage(
    path: FilePath, errors: tuple[type[Exception], ...] = (Exception,)
) -> Iterator[None]:
    """Raise ValueError with one line that names the file if what is done with it fails.

    errors: what a damaged file makes its reader raise; of numpy and zipfile, that is anything.
    """
    try:
        yield
    except _OtherVersion as error:
        raise ValueError(f"{path} {error}") from None
    except errors as error:
        raise ValueError(f"{path} is not a saved index, or is damaged: {error}") from error


class _OtherVersion(ValueError):
    """The file has another version."""


def _check_lengths(file: BinaryIO) -> None:
    """Check that each array is as long as it says it is, before numpy takes the memory for it."""
    length = file.seek(0, SEEK_END)
    with ZipFile(file) as archive:
        for part in archive.infolist():
            if part.compress_type != ZIP_STORED or part.file_size != part.compress_size:
                raise ValueError(f"{part.filename} is compressed")
            if part.file_size > length:
                raise ValueError(f"{part.filename} is cut off")
            with archive.open(part) as opened:
                version = read_magic(opened)
                reads = read_array_header_1_0 if version == (1, 0) else read_array_header_2_0
                shape, _, kind = reads(opened)
                left = part.file_size - opened.tell()
                if min(shape, default=0) < 0 or prod(shape) * kind.itemsize != left:
                    raise ValueError(f"{part.filename} has {left} bytes for {kind}{list(shape)}")
    file.seek(0)


def _check_format(header: dict[str, Any], format_: str) -> None:
    if header["format"] != format_:
        raise ValueError(f"its format is {header['format']!r}, not {format_!r}")
    if (version := header["version"]) != FORMAT_VERSION:
        raise _OtherVersion(f"has version {version!r} of the format, not {FORMAT_VERSION}")


def _packed(value: object) -> NDArray[np.uint8]:
    return np.frombuffer(json.dumps(value).encode("ascii"), np.uint8)


def _unpacked(array: NDArray[Any]) -> Any:  # noqa: ANN401 -- what the JSON has
    return json.loads(array.tobytes())


def _typed(array: NDArray[Any], kind: str) -> NDArray[Any]:
    if array.dtype != np.dtype(kind):
        raise ValueError(f"an array of {array.dtype} is where {kind} should be")
    return array
