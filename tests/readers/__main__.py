"""Shows readers hostile bytes for as long as is wanted: ``python -m tests.readers --help``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from random import Random
from time import monotonic, time_ns

from tests.readers.hostile import hostile
from tests.readers.reader import Reader
from tests.readers.readers import READERS

BROKEN = Path("build/hostile")


def main() -> None:
    """Run until the time is over, or a reader breaks the rule."""
    parser = argparse.ArgumentParser("python -m tests.readers", description=__doc__)
    parser.add_argument("names", nargs="*", help="the readers, by the beginnings of their names")
    parser.add_argument("--minutes", type=float, default=1.0, help="for each reader")
    parser.add_argument("--seed", help="one seed of a failure that was printed")
    asked = parser.parse_args()
    chosen = [one for one in READERS if not asked.names or one.name.startswith(tuple(asked.names))]
    if not chosen:
        parser.error(
            "no reader has such a name; there are " + ", ".join(one.name for one in READERS)
        )
    for reader in chosen:
        count = run(reader, 60 * asked.minutes, asked.seed)
        sys.stdout.write(f"{reader.name}: {count:,} inputs hold\n")


def run(reader: Reader, seconds: float, seed: str | None) -> int:
    """Show a reader some bytes; return how many."""
    until, began, count = monotonic() + seconds, time_ns(), 0
    while monotonic() < until:
        name = seed or f"{began}-{count}"
        data = hostile(Random(name), reader.seeds, reader.form)
        try:
            reader.show(data, name)
        except AssertionError:
            BROKEN.parent.mkdir(exist_ok=True)
            BROKEN.write_bytes(data)
            sys.stderr.write(f"the bytes are in {BROKEN}\n")
            raise
        count += 1
        if seed:
            break
    return count


if __name__ == "__main__":
    main()
