"""A plain exactly-once copier: the minimum work of any filter on this broker.

python -m bench.copier BOOTSTRAP GROUP SOURCE TARGET
"""

from __future__ import annotations

import sys

from bench.exactly_once import Output, copy


def main() -> None:
    """Copy key, value, headers and timestamp."""
    bootstrap, group, source, target = sys.argv[1:]
    same = Output(target, [])
    copy(bootstrap, group, source, lambda messages: [same] * len(messages))


if __name__ == "__main__":
    main()
