"""Two texts side by side in a terminal, and why they are near duplicates or not."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec
import typer
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from lsh import Fingerprinter, Pair, Parameters, compare
from worker.cli.errors import EXIT_FAILED, CommandError
from worker.cli.screen import shown
from worker.differences import Differences, Normalise, differences
from worker.documents.pair import Side
from worker.visible import counted, excerpt, json_escaped, visible

_CONTEXT = 48
"""How many characters to keep on each side of a difference."""
_ELLIPSIS = " … "
_LEFT, _RIGHT, _ASIDE = "bold red", "bold green", "dim"
_SHOWN_BANDS = 24
_SHOWN_LINES = 4
_LINE = 60
"""The most lines that are shown of those that were left out, and of the characters of each."""
_NARROW = 100
"""Terminals below this many columns get shorter texts."""


def explained(
    parameters: Parameters,
    left: Side,
    right: Side,
    *,
    recorded: float | None = None,
    rules: str | None = None,
    others: Sequence[str] = (),
    normal: bool = False,
    as_json: bool,
) -> None:
    """Print the comparison.

    ``recorded`` is the similarity in the header of a duplicate. ``rules`` says whose the parameters
    are, if they are not those of the settings. ``others`` say in what else the workers'
    settings differ. With ``normal``, the normal forms are compared.

    Raises:
        CommandError: nothing is left of a text once it is normalised.
    """
    fingerprinter = Fingerprinter(parameters)
    for side in (left, right):
        if fingerprinter.fingerprint([side.text]).blank[0]:
            raise CommandError(
                f"{side.id!r} can't be judged: empty-text: nothing is left of the text once it is"
                " normalised",
                EXIT_FAILED,
            )
    pair = compare(fingerprinter, left.text, right.text)
    if as_json:
        found = _found(parameters, left, right, pair)
        found |= {"recorded": recorded, "rules": rules}
        found["differing_settings"] = others
        if normal:
            found["normal_forms"] = [fingerprinter.normalise(side.text) for side in (left, right)]
        typer.echo(json_escaped(msgspec.json.encode(found).decode()))
        return
    console = Console(highlight=False, markup=False, emoji=False)
    console.print(_sentence(left, right, pair))
    plain = console.color_system is None
    budget = 420 if console.width < _NARROW else 900
    form = fingerprinter.normalise
    one, other = (
        (visible(side.id), form(side.text) if normal else side.text) for side in (left, right)
    )
    # All that is left counts.
    same = (lambda text: text) if normal else form
    console.print(compared(one, other, same, marked=plain, budget=budget))
    facts = _facts(parameters, left, right, pair, rules)
    if recorded is not None:
        facts.add_row("recorded", _recorded(recorded, pair.estimate))
    for difference in others:
        facts.add_row("settings differ", difference)
    console.print(facts)


def _sentence(left: Side, right: Side, pair: Pair) -> Text:
    said = " are near duplicates" if pair.duplicates else " are not near duplicates"
    least = f"threshold {pair.threshold:g}"
    if pair.containment is not None:
        least += f" or containment {pair.containment:g}"
    return Text.assemble(
        (visible(left.id), "bold"), " and ", (visible(right.id), "bold"), said, f" at {least}.",
    )  # fmt: skip


def _facts(
    parameters: Parameters,
    left: Side,
    right: Side,
    pair: Pair,
    rules: str | None,
) -> Table:
    table = Table(box=box.SIMPLE, show_header=False, pad_edge=False, padding=(0, 1))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    union = sum(pair.distinct) - pair.common
    slots, error = parameters.slots, pair.error
    table.add_row(
        "exact similarity",
        f"{pair.similarity:.4f}: {pair.common:,} of {union:,} distinct shingles are in both",
    )
    table.add_row("estimate", f"{pair.estimate:.4f}, from {slots} slots; error ±{error:.4f}")
    for name, at in (("first in second", 0), ("second in first", 1)):
        if pair.containment is not None:
            table.add_row(name, _contained(pair, at))
    if rules is not None:
        table.add_row("rules", rules)
    kind = f"{parameters.shingle_size} " + (
        "characters" if parameters.shingle == "char" else "words"
    )
    table.add_row(
        "shingles",
        " and ".join(
            f"{count:,} ({distinct:,} distinct)"
            for count, distinct in zip(pair.shingles, pair.distinct, strict=True)
        )
        + f", each of {kind}",
    )
    if parameters.boilerplate:
        for name, lines in zip(("first", "second"), pair.left_out, strict=True):
            table.add_row(f"left out of {name}", _left_out(lines))
    table.add_row("same text", _same_text(left, right, pair))
    table.add_row("shared bands", _bands(parameters, pair))
    table.add_row("chance of that", f"{pair.chance:.2%} for one or more, at the exact similarity")
    table.add_row("candidates", _candidates(pair))
    table.add_row("verdict", _reason(pair))
    return table


def _left_out(lines: Sequence[str]) -> str:
    """Return how many lines were left out of a text, and the first of them."""
    if not lines:
        return "no line"
    different = list(dict.fromkeys(lines))
    said = [f"{counted(len(lines), 'line')} of the list:"]
    said += [f'"{excerpt(line, _LINE)}"' for line in different[:_SHOWN_LINES]]
    return "\n".join([*said, "…"] if len(different) > _SHOWN_LINES else said)


def _contained(pair: Pair, at: int) -> str:
    """Return how much of one text is in the other."""
    return (
        f"{pair.contained[at]:.4f}: {pair.common:,} of {pair.distinct[at]:,} distinct shingles;"
        f" estimate {pair.contained_estimates[at]:.4f}, error ±{pair.contained_errors[at]:.4f}"
    )


def _reason(pair: Pair) -> str:
    """Return the verdict, and what decides it."""
    similar = pair.estimate >= pair.threshold
    relation = "≥" if similar else "<"
    said = f"estimate {pair.estimate:.4f} {relation} threshold {pair.threshold:g}"
    if not pair.candidates:
        return f"{_verdict(pair)}: {said}, and not candidates"
    if similar or pair.containment is None:
        return f"{_verdict(pair)}: {said}"
    share = max(pair.contained_estimates)
    if not pair.duplicates:
        if share >= pair.containment:
            return (
                f"{_verdict(pair)}: {said}, and the error of containment {share:.4f} is too large"
            )
        return f"{_verdict(pair)}: {said}, containment {share:.4f} < {pair.containment:g}"
    said += f", but containment {share:.4f} ≥ {pair.containment:g}"
    first, second = pair.duplicate_of_the_other
    if not first or not second:
        said += f", if the {'first' if first else 'second'} one comes later"
    return f"{_verdict(pair)}: {said}"


def _recorded(recorded: float, estimate: float) -> str:
    said = f"{recorded:.4f}, in the duplicate's header"
    if round(estimate, 4) == recorded:
        return said
    return f"{said}; it differs from the estimate, so the worker had other settings"


def _same_text(left: Side, right: Side, pair: Pair) -> str:
    if left.text == right.text:
        return "yes, exactly"
    return "yes, once normalised" if pair.same_text else "no"


def _bands(parameters: Parameters, pair: Pair) -> str:
    said = f"{len(pair.bands)} of {parameters.bands} (of {parameters.rows} slots each)"
    if not pair.bands:
        return said
    numbers = ", ".join(map(str, pair.bands[:_SHOWN_BANDS]))
    more = "" if len(pair.bands) <= _SHOWN_BANDS else ", …"
    return f"{said}: {numbers}{more}"


def _candidates(pair: Pair) -> str:
    if pair.candidates:
        return "yes: the index compares them"
    return "no: without a band in common, the index never compares them"


def _verdict(pair: Pair) -> str:
    return "duplicate" if pair.duplicates else "unique"


def _found(
    parameters: Parameters,
    left: Side,
    right: Side,
    pair: Pair,
) -> dict[str, object]:
    sides: list[dict[str, object]] = [
        {
            "id": side.id,
            "characters": len(side.text),
            "shingles": pair.shingles[at],
            "distinct_shingles": pair.distinct[at],
        }
        for at, side in enumerate((left, right))
    ]
    found: dict[str, object] = {
        "documents": sides,
        "verdict": _verdict(pair),
        "threshold": pair.threshold,
        "similarity": pair.similarity,
        "common_shingles": pair.common,
        "estimate": pair.estimate,
        "standard_error": pair.error,
        "candidates": pair.candidates,
        "shared_bands": pair.bands,
        "bands": parameters.bands,
        "rows": parameters.rows,
        "chance_of_candidates": pair.chance,
        "same_text": left.text == right.text,
        "same_normalised_text": pair.same_text,
    }
    if parameters.boilerplate:
        for side, lines in zip(sides, pair.left_out, strict=True):
            side["lines_left_out"] = len(lines)
            side["left_out"] = list(dict.fromkeys(lines))[:_SHOWN_LINES]
    if pair.containment is not None:
        found["containment"] = pair.containment
        found["contained"] = pair.contained
        found["contained_estimates"] = pair.contained_estimates
        found["contained_errors"] = pair.contained_errors
        found["duplicate_of_the_other"] = pair.duplicate_of_the_other
    return found


def compared(
    left: tuple[str, str],
    right: tuple[str, str],
    normalise: Normalise,
    *,
    marked: bool,
    budget: int = 420,
) -> Table:
    """Return a table of two documents, each an id and a text, trimmed around their differences.

    Differences that count are marked; those that don't are dim.

    ``marked``: use brackets, for terminals without colours. Each side has at most about
    ``budget`` characters.
    """
    table = Table(box=box.ROUNDED if not marked else box.ASCII2, expand=True, padding=(0, 1))
    for name, style in ((left[0], _LEFT), (right[0], _RIGHT)):
        table.add_column(shown(name, style), ratio=1, overflow="fold")
    table.add_row(*_sides(differences(left[1], right[1], normalise), budget, marked=marked))
    return table


def _sides(found: Differences, budget: int, *, marked: bool) -> tuple[Text, Text]:
    one, other = Text(), Text()
    if found.begins_later:
        one.append("…")
        other.append("…")
    for number, span in enumerate(found.spans):
        last = number == len(found.spans) - 1
        if span.kind == "counts":
            _add(one, span.left, _LEFT, "[-{}-]" if marked else "{}")
            _add(other, span.right, _RIGHT, "{{+{}+}}" if marked else "{}")
        else:
            style = _ASIDE if span.kind == "aside" else ""
            for side, text in ((one, span.left), (other, span.right)):
                side.append(_trimmed(text, at_start=number == 0, at_end=last), style)
        if (not last and max(len(one), len(other)) > budget) or (last and found.ends_earlier):
            one.append("…")
            other.append("…")
            break
    for side in (one, other):
        side.truncate(budget * 3 // 2, overflow="ellipsis")
    return one, other


def _add(side: Text, text: str, style: str, form: str) -> None:
    if text:
        side.append(form.format(_spaced(text)), style=style)


def _spaced(text: str) -> str:
    """Return a text in one line, in which each run of white space is one space."""
    return visible(re.sub(r"\s+", " ", text))


def _trimmed(text: str, *, at_start: bool, at_end: bool) -> str:
    """Keep what is next to a difference; the ends of a text have one on one side only."""
    shown_text = _spaced(text)
    before = 0 if at_start else _CONTEXT
    after = 0 if at_end else _CONTEXT
    if len(shown_text) <= before + after + _CONTEXT // 2:
        return shown_text
    head = shown_text[:before].rpartition(" ")[0] or shown_text[:before]
    tail = shown_text[len(shown_text) - after :] if after else ""
    tail = tail.partition(" ")[2] or tail
    return head + (_ELLIPSIS if head else _ELLIPSIS.lstrip()) + tail
