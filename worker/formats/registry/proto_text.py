"""Protobuf schemas as text, compiled by protoc: not all registries turn them into descriptors."""

from __future__ import annotations

import re
import subprocess
import sys
from base64 import b64encode
from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Final

from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet

from worker.formats.registry.known_imports import known

_MAIN: Final = "value.proto"
_SECONDS: Final = 10
_PLACE: Final = re.compile(r"\S+\.proto:")
"""How a line begins that says what is wrong."""
_IMPORT: Final = re.compile(r'\bimport\s+(?:public\s+|weak\s+)?["\']([^"\'\s]{1,200})["\']')


def compiled(text: str, references: Sequence[tuple[str, str]]) -> tuple[str, list[tuple[str, str]]]:
    """Return a file's descriptor in base64, and by names those of the files that it imports.

    Takes the texts of all of them.

    Raises:
        ValueError: they can't be compiled; the message says why.
    """
    if find_spec("grpc_tools") is None:
        raise ValueError("the registry returns it as text, which takes more: grpcio-tools")
    try:
        with TemporaryDirectory(prefix="neardup-proto-") as folder:
            return _compiled(Path(folder), [*references, (_MAIN, text)])
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ValueError(f"protoc: {error}") from None


def _compiled(folder: Path, files: Sequence[tuple[str, str]]) -> tuple[str, list[tuple[str, str]]]:
    shared = _known(text for _, text in files)
    (folder / "known").write_bytes(FileDescriptorSet(file=shared.values()).SerializeToString())
    for name, text in files:
        if name in shared:
            continue
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts:
            raise ValueError(f"it imports {name}, which is no name of a file")
        target = folder / "in" / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    out = folder / "out"
    command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{folder / 'in'}"]
    command += [f"--descriptor_set_in={folder / 'known'}"]
    command += ["--include_imports", f"--descriptor_set_out={out}", _MAIN]
    # In a process of its own: what it says is the reason, and it has an end.
    done = subprocess.run(  # noqa: S603 -- no shell, and names are checked
        command, capture_output=True, text=True, check=False, timeout=_SECONDS
    )
    if done.returncode:
        errors = done.stderr.replace(f"{folder / 'in'}/", "").splitlines()
        said = [line for line in errors if _PLACE.match(line)]
        raise ValueError(f"protoc: {said[0] if said else f'exit status {done.returncode}'}")
    made = FileDescriptorSet.FromString(out.read_bytes()).file
    texts = {one.name: b64encode(one.SerializeToString()).decode() for one in made}
    return texts.pop(_MAIN), list(texts.items())


def _known(texts: Iterable[str]) -> dict[str, FileDescriptorProto]:
    """Return what texts import that every client has, with what that imports."""
    found: dict[str, FileDescriptorProto] = {}
    left = [name for text in texts for name in _IMPORT.findall(text)]
    while left:
        name = left.pop()
        file = None if name in found else known(name)
        if file is not None:
            found[name] = file
            left += file.dependency
    return found
