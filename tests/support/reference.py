"""The fingerprint by its definition: one text, plain integers, no numpy, no haste.

Read this to see how the vectors in `vectors.json` come about, or to write the
scheme in another language. Numbers are unsigned 64-bit; all else follows.
"""

from __future__ import annotations

from functools import cache
from hashlib import blake2b, scrypt
from unicodedata import combining, normalize

from lsh import Parameters

MOST = 2**64 - 1


def splitmix64(state: int, count: int) -> list[int]:
    drawn = []
    for step in range(1, count + 1):
        word = (state + step * 0x9E3779B97F4A7C15) & MOST
        word = ((word ^ word >> 30) * 0xBF58476D1CE4E5B9) & MOST
        word = ((word ^ word >> 27) * 0x94D049BB133111EB) & MOST
        drawn.append(word ^ word >> 31)
    return drawn


def fmix64(word: int) -> int:
    word = ((word ^ word >> 33) * 0xFF51AFD7ED558CCD) & MOST
    word = ((word ^ word >> 33) * 0xC4CEB9FE1A85EC53) & MOST
    return word ^ word >> 33


@cache
def site_key(seed: bytes) -> bytes:
    return scrypt(seed, salt=b"neardup", n=2**14, r=8, p=1, dklen=32)


def derived(seed: bytes, purpose: bytes, size: int) -> bytes:
    origin = seed if seed == b"neardup" else site_key(seed)
    return blake2b(origin, person=purpose, digest_size=size).digest()


def keyed(text: str, key: bytes) -> int:
    encoded = text.encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(encoded, key=key, digest_size=8).digest(), "little")


def stream_safe(text: str) -> str:
    """Return the text by UAX15-D4, step by step."""
    safe, non_starters = "", 0
    for char in text:
        classes = [combining(part) for part in normalize("NFKD", char)]
        starters = [place for place, number in enumerate(classes) if number == 0]
        if non_starters + (starters[0] if starters else len(classes)) > 30:
            safe += "\u034f"
            non_starters = 0
        safe += char
        if starters:
            non_starters = len(classes) - 1 - starters[-1]
        else:
            non_starters += len(classes)
    return safe


def nfkc(text: str) -> str:
    for long in "\ufdfa\ufdfb":
        text = text.replace(long, normalize("NFKC", long)[:6])
    return normalize("NFKC", stream_safe(text))


def normalise(text: str, parameters: Parameters) -> str:
    if parameters.nfkc:
        text = nfkc(text)
    if parameters.casefold:
        text = text.casefold()
        if parameters.nfkc:
            text = nfkc(text)
    return " ".join(text.split()) if parameters.collapse_whitespace else text


def shingle_hashes(text: str, parameters: Parameters) -> list[int]:
    size = parameters.shingle_size
    state = int.from_bytes(derived(parameters.seed, b"neardup shingle", 8), "little")
    base, factor, _, *addends = splitmix64(state, 3 + size)
    if parameters.shingle == "char":
        units = [ord(char) for char in text]
    else:
        key = derived(parameters.seed, b"neardup word", 32)
        units = [keyed(word, key) for word in text.split()]
    hashes = []
    for begin in range(max(len(units) - size + 1, min(len(units), 1))):
        window = units[begin : begin + size]
        word = addends[len(window) - 1]
        for place, unit in enumerate(reversed(window), start=1):
            word += unit * pow(base | 1, place, 2**64)
        word &= MOST
        word = ((word ^ word >> 32) * (factor | 1)) & MOST
        hashes.append(word ^ word >> 32)
    return hashes


def signature(hashes: list[int], slots: int) -> list[int]:
    factors = [number | 1 for number in splitmix64(0x736C6F74, slots)]
    offsets = splitmix64(0x66696C6C, slots)
    signed = []
    for slot in range(slots):
        # The range of h, by its upper half, is cut into equal parts, one for each slot.
        members = [h for h in hashes if (h >> 32) * slots >> 32 == slot]
        own = min(h * factors[slot] & MOST for h in hashes)
        signed.append(min(members) if members else fmix64(own ^ offsets[slot]))
    return signed


def band_keys(signed: list[int], bands: int, rows: int) -> list[int]:
    starts = splitmix64(0x62616E64, bands)
    factors = [number | 1 for number in splitmix64(0x726F77, bands * rows)]
    keys = []
    for band in range(bands):
        key = starts[band]
        for row in range(rows):
            key += signed[band * rows + row] * factors[row * bands + band]
        keys.append(fmix64(key & MOST))
    return keys


def text_key(text: str, seed: bytes) -> int:
    return keyed(text, derived(seed, b"neardup text", 32))


def fingerprint(text: str, parameters: Parameters) -> tuple[list[int], bytes, int]:
    """Return (keys, sketch, number of shingles) of a text that isn't blank."""
    text = normalise(text, parameters)
    hashes = shingle_hashes(text, parameters)
    signed = signature(hashes, parameters.slots)
    keys = band_keys(signed, parameters.bands, parameters.rows)
    keys.append(text_key(text, parameters.seed))
    return keys, bytes(slot & 0xFF for slot in signed), len(hashes)
