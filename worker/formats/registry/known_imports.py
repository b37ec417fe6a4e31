"""Files that Protobuf schemas import although nobody registers them: every client has them."""

from __future__ import annotations

import re
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any, Final

from google.protobuf.descriptor_pb2 import FileDescriptorProto

_GOOGLE: Final = re.compile(r"(google/(?:api|protobuf|rpc|type)/[a-z_]{1,40})\.proto")
"""Of Protobuf itself, and of googleapis-common-protos."""
_CONFLUENT: Final = re.compile(r"(confluent/(?:meta|type/[a-z_]{1,40}))\.proto")
_CLIENT: Final = "confluent_kafka.schema_registry"
"""The package with Confluent's own files. It isn't imported: that takes more packages."""


def known(name: str) -> FileDescriptorProto | None:
    """Return the descriptor of a file that every client has; None if it is none of these."""
    found = _descriptor(name) if _GOOGLE.fullmatch(name) or _CONFLUENT.fullmatch(name) else None
    return None if found is None else FileDescriptorProto.FromString(found)


@lru_cache(maxsize=256)
def _descriptor(name: str) -> bytes | None:
    path = name.removesuffix(".proto") + "_pb2"
    try:
        module = _beside_client(path) if name.startswith("confluent/") else _imported(path)
    except (ImportError, OSError):
        return None
    return bytes(module.DESCRIPTOR.serialized_pb)


def _imported(path: str) -> Any:  # noqa: ANN401 -- a module
    return import_module(path.replace("/", "."))


def _beside_client(path: str) -> Any:  # noqa: ANN401 -- a module
    client = find_spec(_CLIENT)
    if client is None or client.origin is None:
        raise ImportError(_CLIENT)
    spec = spec_from_file_location(
        path.replace("/", "."), Path(client.origin).parent / f"{path}.py"
    )
    if spec is None or spec.loader is None:
        raise ImportError(path)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
