"""Near-duplicate fingerprints of texts: MinHash by one-permutation hashing, banded for LSH.

Pure: numpy, the compiled core and the standard library; no clock, no logging, and no I/O but
`Index.save` and `load`.

>>> from lsh import Fingerprinter, Parameters, similarity
>>> fingerprints = Fingerprinter(Parameters()).fingerprint(["Hello,  world!", "hello, WORLD!"])
>>> float(similarity(fingerprints.sketches[0], fingerprints.sketches[1]))
1.0
"""

from __future__ import annotations

from lsh._core import NORMALISER_VERSION
from lsh._core import __version__ as __version__
from lsh.containment import containment, containment_error
from lsh.containment_index import Contained, ContainmentIndex
from lsh.fingerprint import Fingerprinter, Fingerprints, Sized, sized
from lsh.forest import Forest
from lsh.frames import dedupe
from lsh.hits import Group, Hit, SimilarPair
from lsh.measures import (
    Pair,
    compare,
    exact_containment,
    exact_jaccard,
    is_candidate,
    normalise,
    shared_bands,
    shingle_set,
)
from lsh.mixing import DEFAULT_SEED
from lsh.nearest_index import NearestIndex, Neighbour
from lsh.parameters import PRESETS, SCHEME_VERSION, Parameters
from lsh.repeated_lines import (
    Learnt,
    RepeatedLine,
    format_lines,
    parse_lines,
    repeated_lines,
)
from lsh.shingles import Shingler, Shingles
from lsh.sketch import (
    SKETCH_BITS,
    agreement,
    band_keys,
    compact,
    pairwise_similarity,
    signatures,
    similarity,
    text_keys,
)
from lsh.text import SWITCHES
from lsh.text_index import Index
from lsh.tokens import fingerprint_counts, fingerprint_tokens, fingerprint_weights
from lsh.tuning import (
    Choice,
    candidate_chance,
    candidate_load,
    choose,
    detection,
    s_curve,
    standard_error,
    steepest,
    steepest_approximately,
    sufficient_slots,
)

__all__ = [
    "DEFAULT_SEED",
    "NORMALISER_VERSION",
    "PRESETS",
    "SCHEME_VERSION",
    "SKETCH_BITS",
    "SWITCHES",
    "Choice",
    "Contained",
    "ContainmentIndex",
    "Fingerprinter",
    "Fingerprints",
    "Forest",
    "Group",
    "Hit",
    "Index",
    "Learnt",
    "NearestIndex",
    "Neighbour",
    "Pair",
    "Parameters",
    "RepeatedLine",
    "Shingler",
    "Shingles",
    "SimilarPair",
    "Sized",
    "agreement",
    "band_keys",
    "candidate_chance",
    "candidate_load",
    "choose",
    "compact",
    "compare",
    "containment",
    "containment_error",
    "dedupe",
    "detection",
    "exact_containment",
    "exact_jaccard",
    "fingerprint_counts",
    "fingerprint_tokens",
    "fingerprint_weights",
    "format_lines",
    "is_candidate",
    "normalise",
    "pairwise_similarity",
    "parse_lines",
    "repeated_lines",
    "s_curve",
    "shared_bands",
    "shingle_set",
    "signatures",
    "similarity",
    "sized",
    "standard_error",
    "steepest",
    "steepest_approximately",
    "sufficient_slots",
    "text_keys",
]
