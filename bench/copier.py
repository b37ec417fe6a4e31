"""The plain exactly-once copier: the least that any filter on this broker has to do.

python -m bench.copier BOOTSTRAP GROUP SOURCE TARGET
"""

from __future__ import annotations

import sys

from bench.pump import Output, pump


def main() -> None:
    """Copy key, value, headers and timestamp."""
    bootstrap, group, source, target = sys.argv[1:]
    same = Output(target, [])
    pump(bootstrap, group, source, lambda messages: [same] * len(messages))


if __name__ == "__main__":
    main()
