"""Nothing aborted is ever visible, and nothing that was visible changes."""

from __future__ import annotations

from collections.abc import Iterator

from tests.support.checker.history import KINDS, History, sightings


def visibility(history: History) -> Iterator[str]:
    """What a reader met while the run went on is what is read at its end, record by record."""
    if history.seen is None:
        return
    for kind in KINDS:
        final = {(p, offset): digest for p, offset, digest in sightings(getattr(history, kind))}
        last: dict[int, int] = {}
        met = set()
        for partition, offset, digest in history.seen.get(kind, ()):
            at = f"{kind}[{partition}] offset {offset}"
            if offset <= last.get(partition, -1):
                yield f"{at} was seen after offset {last[partition]}"
            last[partition] = offset
            met.add((partition, offset))
            if (partition, offset) not in final:
                yield f"{at} was seen, and is gone"
            elif final[partition, offset] != digest:
                yield f"{at} was seen, and reads otherwise now"
        for partition, offset in sorted(final.keys() - met):
            yield f"{kind}[{partition}] offset {offset} was never seen while the run went on"
