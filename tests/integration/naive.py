"""The verdicts of a plain list on the frames of a run: without arrays, shards, runs or RocksDB."""

from collections.abc import Sequence

import numpy as np

from lsh.index import BucketRules
from tests.support.checker import Source, Verdict
from tests.support.frame_keys import keys_of
from tests.worker.index.decisions import Document, model
from worker.bus.port import Record
from worker.topology import Topology
from worker.wire import POSITION_BITS, FingerprintFrame, decode

__all__ = ["naive_verdicts"]


def naive_verdicts(
    frames: Sequence[Record], topology: Topology, rules: BucketRules
) -> dict[Source, Verdict]:
    """Judge the documents of frames without tombstones, one after the other; times decide nothing.

    Each document is compared with every entry of its buckets, so this is for some thousands.
    """
    documents: list[Document] = []
    sources: list[Source] = []
    for record in frames:
        frame = decode(FingerprintFrame, record.value, topology.layout.id)
        keys = keys_of(frame, topology.layout.parameters)
        for row, ident in enumerate(frame.ids.unpack()):
            document = Document((record.offset << POSITION_BITS) + row, 0, 0, ())
            document.id, document.sketch = ident, frame.sketches[row]
            document.keys = keys[row]
            documents.append(document)
            sources.append((frame.partition, frame.start + int(frame.offsets[row])))
    answers = model(documents, list(range(topology.layout.columns)), rules)
    found: dict[Source, Verdict] = {}
    for source, document, matches in zip(sources, documents, answers, strict=True):
        # Shards send similarities with 32 bits.
        listed = tuple(
            (one.id.decode(), round(float(np.float32(one.similarity)), 4)) for one in matches
        )
        first = min(((one.sequence, one.id.decode()) for one in matches), default=None)
        found[source] = Verdict(document.sequence, listed, None if first is None else first[::-1])
    return found
