"""Queries of a state directory of ``neardup dedupe --state``, which nobody follows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeVar

from lsh import SWITCHES
from worker.closing import Closing
from worker.index.directory import stores_in
from worker.index.errors import HeaderMismatch, StoreDamaged
from worker.index.keyspace import StoreHeader
from worker.index.read_only import ReadOnlyStore
from worker.index.store_reader import StoreReader
from worker.offline.filter import offline_settings
from worker.offline.state_versions import current_index, recorded_documents, section_of
from worker.settings.model import Settings

T = TypeVar("T")

_OF_SIMILARITY = ("threshold", "shingle", "shingle_size", "slots", "bands", "rows", *SWITCHES)
_NEVER = "none"
"""Of a window, and of a containment."""


class StateShards(Closing):
    """The shards in a state directory, opened read-only, as they are when they are opened."""

    def __init__(self, home: Path) -> None:
        """Open the current index. A run may replace it meanwhile.

        Raises:
            StateError: the directory is no state of neardup.
            StoreDamaged: a shard is missing, or can't be read.
        """
        with ExitStack() as stack:
            path = current_index(home)
            stores = {
                shard: stack.enter_context(ReadOnlyStore(store))
                for shard, store in stores_in(path).items()
            }
            facts = {shard: store.facts() for shard, store in stores.items()}
            if not facts or set(facts) != set(range(int(facts[min(facts)].header["shards"]))):
                raise StoreDamaged(f"{path}: not all of its shards are there")
            self.header: StoreHeader = facts[0].header
            self.position = min(one.offset for one in facts.values())
            self._readers: Mapping[int, StoreReader] = {
                shard: store.reader() for shard, store in stores.items()
            }
            self._path = path
            self._documents = section_of(recorded_documents(home))
            self._open = stack.pop_all()

    def settings(self, files: Path | Sequence[Path] | None, more: Mapping[str, Any]) -> Settings:
        """Return settings with the parameters that the index was made with.

        Documents are read as the others were, unless ``more`` says otherwise. ``files`` have the
        rest, such as the seed.

        Raises:
            HeaderMismatch: it was made with something that no setting can be, or another seed.
            ConfigurationError: a setting is wrong.
        """
        header = self.header
        settings = offline_settings(
            files,
            {
                **{f"documents.{name}": value for name, value in self._documents.items()},
                **{name: value for name, value in more.items() if value is not None},
                **{f"similarity.{name}": header[name] for name in _OF_SIMILARITY},
                "similarity.containment": header.get("containment", _NEVER),
                "index.shards": header["shards"],
                "index.absorb": header["absorb"],
                "index.bucket_capacity": header["bucket_capacity"],
                "index.window": header.get("window", _NEVER),
                "index.future_allowance_seconds": _seconds(header.get("future_allowance_ms")),
            },
        )
        expected = settings.parameters().describe()
        different = [
            f"{name}: it has {header.get(name, 'none')}, the settings say"
            f" {expected.get(name, 'none')}"
            for name in [*expected, *({"boilerplate"} - expected.keys())]
            if header.get(name) != expected.get(name)
        ]
        if different:
            raise HeaderMismatch(
                f"{self._path} was made with other parameters ({'; '.join(different)})"
            )
        return settings

    def read(self, shard: int, ask: Callable[[StoreReader], T]) -> T:
        """Return what ``ask`` returns; see `Shards`."""
        return ask(self._readers[shard])

    def close(self) -> None:
        """Close the stores."""
        self._open.close()


def _seconds(milliseconds: str | float | None) -> float | None:
    return None if milliseconds is None else float(milliseconds) / 1_000
