"""Shows the answer to a query."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.table import Table
from rich.text import Text

from worker.cli.screen import line, screen, shown
from worker.queries.answers import Answer, Found, Met, Reply

__all__ = ["print_answer"]

_SHOWN_BANDS = 8
_SHOWN_MATCHES = 20
_SHOWN_BUCKETS = 3


def print_answer(reply: Reply, answer: Answer) -> None:
    """Print the verdict, the matches, and why they are matches."""
    console = screen()
    console.print(_sentence(reply, answer))
    if answer.matches:
        console.print(_matches(answer.matches, contained=reply.containment is not None))
    console.print(_facts(reply, answer))


def _sentence(reply: Reply, answer: Answer) -> Text:
    count = len(answer.matches)
    least = f"threshold {reply.threshold:g}"
    if reply.containment is not None:
        least += f" or containment {reply.containment:g}"
    if not count:
        return line(("unique", "bold green"), f": nothing matches at {least}")
    said = "1 document matches" if count == 1 else f"{count} documents match"
    return line(("duplicate", "bold red"), f": {said} at {least}")


def _matches(matches: Sequence[Found], *, contained: bool) -> Table:
    more = ["containment"] if contained else []
    columns = ["match", "similarity", *more, "sequence", "found in"]
    table = Table(*columns, box=box.SIMPLE, pad_edge=False)
    for one in matches[:_SHOWN_MATCHES]:
        table.add_row(
            shown(one.id, "bold"),
            f"{one.similarity:.4f} ±{one.error:.4f}",
            *([_share(one)] if contained else []),
            str(one.sequence),
            _places(one),
        )
    if len(matches) > _SHOWN_MATCHES:
        table.add_row(f"and {len(matches) - _SHOWN_MATCHES} more")
    return table


def _share(one: Found) -> str:
    return "" if one.containment is None else f"{one.containment:.4f}"


def _places(one: Found) -> str:
    """Return where a match was found."""
    listed = ", ".join(map(str, one.bands[:_SHOWN_BANDS]))
    more = ", …" if len(one.bands) > _SHOWN_BANDS else ""
    bands = [f"{len(one.bands)} bands: {listed}{more}"] if one.bands else []
    return "; ".join([*(["the same text"] if one.same_text else []), *bands])


def _facts(reply: Reply, answer: Answer) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 1))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    if answer.first is not None:
        first = answer.first
        table.add_row("earliest match", shown(f"{first.id}, sequence {first.sequence}"))
    table.add_row("comparisons", f"{answer.compared:,}")
    table.add_row("buckets", _buckets(answer.buckets))
    table.add_row("index", _position(reply))
    return table


def _buckets(met: Sequence[Met]) -> str:
    """Return how large the buckets are that were met, the largest first."""
    if not met:
        return "none of its keys has one"
    largest = sorted(met, key=lambda one: -sum(one.sizes))[:_SHOWN_BUCKETS]
    sizes = ", ".join(f"{' + '.join(map(str, one.sizes))} ({_name(one)})" for one in largest)
    more = ", …" if len(met) > _SHOWN_BUCKETS else ""
    return f"{len(met)} of its keys have one; the largest have so many entries: {sizes}{more}"


def _name(one: Met) -> str:
    return "text" if one.band is None else f"band {one.band}"


def _position(reply: Reply) -> str:
    said = f"at offset {reply.position} of its log"
    if reply.behind is None:
        return said
    records = "1 record" if reply.behind == 1 else f"{reply.behind:,} records"
    checked = "" if reply.checked_seconds is None else f", as of {reply.checked_seconds:.1f} s ago"
    return f"{said}, {records} behind{checked}"
