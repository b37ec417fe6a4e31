"""The fingerprint by its definition: one text, plain integers, no haste.

Read this to see how the vectors in `tests/lsh/vectors.json` come about, or to write the scheme in
another language. Numbers are unsigned, of 64 bits; all else follows.
"""

from typing import NamedTuple

from lsh import Parameters
from tests.oracle.hashing import MOST, derived, fmix64, keyed, splitmix64
from tests.oracle.normal_form import normalise


class Fingerprint(NamedTuple):
    """Of a text: a key for each band and one for the exact text, the sketch, and its size."""

    keys: list[int]
    sketch: bytes
    shingles: int


def fingerprint(text: str, parameters: Parameters) -> Fingerprint | None:
    """Return the fingerprint of a text; None if it is blank."""
    form = normalise(text, parameters)
    hashes = shingle_hashes(form, parameters)
    if not hashes:
        return None
    sketch = bytes(slot & 0xFF for slot in signature(hashes, parameters.slots))
    keys = band_keys(sketch, parameters.bands, parameters.rows)
    keys.append(keyed(form, derived(parameters.seed, b"neardup text", 32)))
    size = len(hashes if parameters.containment is None else set(hashes))
    return Fingerprint(keys, sketch, min(size, 2**32 - 1))


def shingle_hashes(form: str, parameters: Parameters) -> list[int]:
    """Return a hash of each shingle of a normal form. A shorter form is one shingle."""
    size = parameters.shingle_size
    state = int.from_bytes(derived(parameters.seed, b"neardup shingle", 8), "little")
    base, factor, packing = (number | 1 for number in splitmix64(state, 3))
    if parameters.shingle == "char":
        units = [ord(char) + 1 for char in form]  # so that none is 0
    else:
        units = [keyed(one, derived(parameters.seed, b"neardup word", 32)) for one in form.split()]
    hashes = []
    for begin in range(max(len(units) - size + 1, min(len(units), 1))):
        word = 0
        for place, unit in enumerate(units[begin : begin + size]):
            if parameters.shingle == "char" and size <= 6 and unit <= 128:  # ASCII
                word += unit * 256**place * packing
            else:
                word += unit * pow(base, size - place, 2**64)
        word &= MOST
        hashes.append(((word ^ word >> 32) * factor) & MOST)
    return hashes


def signature(hashes: list[int], slots: int) -> list[int]:
    """Return the MinHash signature by one permutation: see `lsh.sketch` for why it is one."""
    factors, offsets = splitmix64(0x736C6F74, slots), splitmix64(0x66696C6C, slots)
    # The range of a hash, by its upper half, is cut into equal parts, one for each slot.
    least: dict[int, int] = {}
    for number in sorted(hashes):
        least.setdefault((number >> 32) * slots >> 32, number)
    mixed = {number ^ number >> 32 for number in hashes}
    words = [{max(number >> 16 * part & 0xFFFF, 1) for number in mixed} for part in range(3)]
    signed = []
    for slot in range(slots):
        if slot in least:
            signed.append(least[slot] ^ least[slot] >> 32)
        else:
            own = min(word * (factors[slot] | 1) % 2**16 for word in words[slot % 3])
            signed.append(fmix64(own ^ offsets[slot]))
    return signed


def band_keys(sketch: bytes, bands: int, rows: int) -> list[int]:
    """Return a key for each band of a sketch: the first rows are the first band's, and so on."""
    starts, words = splitmix64(0x62616E64, bands), (rows + 7) // 8
    factors = splitmix64(0x776F7264, words * bands)
    keys = []
    for band in range(bands):
        own, key = sketch[band * rows : (band + 1) * rows], starts[band]
        for word in range(words):
            slots = int.from_bytes(own[word * 8 : word * 8 + 8], "little")
            key += slots * (factors[word * bands + band] | 1)
        keys.append(fmix64(key & MOST))
    return keys
