"""What workers must agree on to understand each other's frames."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Self

from lsh import Parameters


@dataclass(frozen=True, slots=True)
class Layout:
    """How an application is divided, and what its fingerprints are made with.

    Attributes:
        id: what frames are stamped with. Frames of another layout are refused.
        partitions: N, of the documents, as many as are read.
        begun_with: with how many the application began. The id is of these: frames stay the same
            if partitions are added.
        shards: P, of the index.
        parameters: those of the fingerprints.
        numbered_from: the number of a frame at offset 0 of the log. The logs of an application
            have different ones, so that sequence numbers go on from one to the next.
    """

    id: str
    partitions: int
    shards: int
    parameters: Parameters
    numbered_from: int = 0
    begun_with: int = 0

    @classmethod
    def of(cls, app: str, partitions: int, shards: int, parameters: Parameters) -> Self:
        """Return a layout whose id is a digest of all that is in it."""
        facts = {
            "app": app,
            "partitions": partitions,
            "shards": shards,
            **parameters.describe(),
        }
        digest = blake2b(json.dumps(facts, sort_keys=True).encode(), digest_size=6).hexdigest()
        return cls(digest, partitions, shards, parameters, begun_with=partitions)

    def widened(self, partitions: int) -> Self:
        """Return the layout once so many partitions of the documents are read."""
        return replace(self, partitions=partitions)

    @property
    def columns(self) -> int:
        """Return the number of key columns: one for each band, and one for the exact text."""
        return self.parameters.bands + 1

    def columns_of(self, shard: int) -> range:
        """Return the key columns that a shard owns."""
        return range(shard, self.columns, self.shards)
