"""``python -m chaos [matrix|soak]``: break a cluster, and see that nothing breaks."""

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from chaos.cell import Outcome
from chaos.matrix import CELLS, PROTOCOLS, matrix
from chaos.nemesis import parse
from chaos.report import Teller, markdown, show, write_json
from chaos.soak import soak
from chaos.strike import Strike

INTERRUPTED: Final = 130
BOTH: Final = "both"


def main() -> int:
    """Run what the command line asks for; 0 if everything holds."""
    parser = argparse.ArgumentParser(prog="python -m chaos", description=__doc__)
    parser.add_argument("what", nargs="?", choices=("matrix", "soak"), default="matrix")
    parser.add_argument(
        "--cells", default=",".join(CELLS), help=f"some of {', '.join(CELLS)}", metavar="NAME,…"
    )
    parser.add_argument(
        "--protocol", choices=(*PROTOCOLS, BOTH), default=BOTH, help="default: %(default)s"
    )
    parser.add_argument(
        "--documents", type=int, default=100_000, help="a cell; default %(default)s"
    )
    parser.add_argument("--rate", type=float, help="documents a second; default: the cell's")
    parser.add_argument("--seed", type=int, default=1, help="default %(default)s")
    parser.add_argument(
        "--minutes", type=float, default=60.0, help="of each soak; default %(default)s"
    )
    parser.add_argument(
        "--reindexes", action="store_true", help="of a soak: replace the index every few minutes"
    )
    parser.add_argument("--schedule", type=Path, help="replay this one (JSON lines, as printed)")
    parser.add_argument("--json", type=Path, help="write all figures here")
    parser.add_argument("--markdown", type=Path, help="write the table here, as docs/ has it")
    given = parser.parse_args()
    names = given.cells.split(",")
    if unknown := [name for name in names if name not in CELLS]:
        parser.error(f"no cell {unknown[0]!r}")
    given.protocols = PROTOCOLS if given.protocol == BOTH else (given.protocol,)
    single = len(names) == 1 and len(given.protocols) == 1
    if given.schedule and given.what == "matrix" and not single:
        parser.error("--schedule replays one run: name its cell and its protocol")
    schedule = parse(given.schedule.read_text()) if given.schedule else None
    say = Teller()
    outcomes: list[Outcome] = []
    try:
        running = (
            _soaks(given, schedule, say)
            if given.what == "soak"
            else _matrix(given, names, schedule, say)
        )
        for outcome in running:
            outcomes.append(outcome)
            _write(given, outcomes)
            verdict = "broken" if outcome.problems else outcome.left_out or "holds"
            say(f"{outcome.cell}, {outcome.protocol}: {verdict}, {outcome.seconds:.0f} s\n")
    except KeyboardInterrupt:
        say("interrupted; what was finished:")
        show(outcomes)
        return INTERRUPTED
    show(outcomes)
    return int(any(outcome.problems for outcome in outcomes))


def _soaks(
    given: argparse.Namespace, schedule: Sequence[Strike] | None, say: Teller
) -> Iterator[Outcome]:
    for protocol in given.protocols:
        yield soak(
            given.minutes,
            given.seed,
            say,
            protocol=protocol,
            reindexes=given.reindexes,
            rate=given.rate,
            schedule=schedule,
        )


def _matrix(
    given: argparse.Namespace,
    names: Sequence[str],
    schedule: Sequence[Strike] | None,
    say: Teller,
) -> Iterator[Outcome]:
    yield from matrix(
        names, given.protocols, given.documents, given.seed, say, rate=given.rate, schedule=schedule
    )


def _write(given: argparse.Namespace, outcomes: Sequence[Outcome]) -> None:
    if given.json:
        write_json(outcomes, given.json)
    if given.markdown:
        given.markdown.write_text(markdown(outcomes))


if __name__ == "__main__":
    sys.exit(main())
