"""Records as neardup publishes them, made by hand."""

import json

from worker.bus import Record


def document(offset: int, ident: str, text: str = "t") -> Record:
    value = json.dumps({"id": ident, "text": text}).encode()
    return Record("documents", 0, offset, 5, ident.encode(), value, (("own", b"\xff"),))


def published(
    given: Record, offset: int, sequence: int, *matches: str, first: tuple[str, int] | None = None
) -> Record:
    """Give what is published of a document; unless told, its first match has number 10."""
    kind = "duplicate" if matches else "unique"
    own: list[tuple[str, bytes | None]] = [
        ("neardup-verdict", kind.encode()),
        ("neardup-sequence", b"%d" % sequence),
        ("neardup-source", b"documents-0-%d" % given.offset),
    ]
    value = given.value
    if matches:
        listed = json.dumps(
            [{"id": ident, "similarity": 0.9} for ident in matches], separators=(",", ":")
        ).encode()
        ident, place = first or (matches[0], 10)
        earliest = b'{"id":"%s","sequence":%d}' % (ident.encode(), place)
        own += [("neardup-matches", listed), ("neardup-first", earliest)]
        assert value is not None
        value = value[:-1] + b',"duplicate_of":%s,"duplicate_first":%s}' % (listed, earliest)
    return given._replace(topic=kind, offset=offset, value=value, headers=(*given.headers, *own))


def rejected(given: Record) -> Record:
    why = (("neardup-error-partition", b"0"), ("neardup-error-offset", b"%d" % given.offset))
    return given._replace(topic="rejected", headers=(*given.headers, *why))
