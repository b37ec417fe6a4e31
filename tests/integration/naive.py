"""The oracle's verdicts on the frames of a run: without arrays, shards, runs or RocksDB."""

from collections.abc import Sequence

import numpy as np

from lsh.index import BucketRules
from tests.oracle.index import Document, NaiveIndex
from tests.support.checker.history import Source, Verdict
from tests.support.frame_keys import keys_of
from worker.bus import Record
from worker.topology import Topology
from worker.wire.codec import decode
from worker.wire.fingerprints import FingerprintFrame
from worker.wire.frame import POSITION_BITS


def naive_verdicts(
    frames: Sequence[Record], topology: Topology, rules: BucketRules
) -> dict[Source, Verdict]:
    """Judge the documents of frames without tombstones, one after the other; times decide nothing.

    Each document is compared with every entry of its buckets, so this is for some thousands.
    """
    index = NaiveIndex(rules, range(topology.layout.columns))
    found: dict[Source, Verdict] = {}
    for record in frames:
        frame = decode(FingerprintFrame, record.value, topology.layout.id)
        keys = keys_of(frame, topology.layout.parameters)
        for row, ident in enumerate(frame.ids.unpack()):
            document = Document(
                sequence=(record.offset << POSITION_BITS) + row,
                id=ident,
                time=None,
                shingles=int(frame.shingles[row]),
                keys=keys[row],
                sketch=frame.sketches[row].tobytes(),
            )
            matches = index.judge(document)
            # Shards send similarities with 32 bits.
            listed = tuple(
                (one.id.decode(), round(float(np.float32(one.similarity)), 4)) for one in matches
            )
            first = min(((one.sequence, one.id.decode()) for one in matches), default=None)
            place = frame.partition, frame.start + int(frame.offsets[row])
            found[place] = Verdict(document.sequence, listed, first and first[::-1])
    return found
