"""``neardup reindex``: replace the index of a running application by one with other rules."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from itertools import count
from time import monotonic, sleep

from worker.admin import Cluster
from worker.admin.reindex.run import Progress, Reindex, changed_rules
from worker.cli.errors import EXIT_FAILED, CommandError
from worker.cli.screen import print_json, tell
from worker.generations import Generation, Plan
from worker.settings import Settings

__all__ = ["abort", "clean", "reindex", "status"]

_PAUSE_SECONDS = 1.0
_TOLD_EVERY = 10
"""Pauses between two lines that say how far it is."""
_RECENT_SECONDS = 5.0
"""A shard that has read all that was in the log so long ago is up to date."""


def _begun(settings: Settings) -> Reindex:
    logging.getLogger("librdkafka").addHandler(logging.NullHandler())
    return Reindex(Cluster(settings.kafka_options()), settings)


def reindex(settings: Settings, rules: dict[str, object]) -> None:
    """Build an index with these rules, hand over to it, and leave the earlier one.

    If that is under way, go on with it.

    Raises:
        ConfigurationError: it can't be built.
        CommandError: the user doesn't want to wait.
        BusError: Kafka failed.
    """
    run = _begun(settings)
    plan = run.plan()
    wanted = changed_rules(plan.current, **rules)
    if plan.following is None:
        run.check(plan, wanted)
        run.prepare(plan, wanted)
    elif not rules:
        wanted = plan.following
    run.begin(wanted)
    try:
        _wait(run)
    except KeyboardInterrupt:
        raise CommandError(
            "interrupted: the workers go on with what was begun; run `neardup reindex` again to go"
            " on, or `neardup reindex --abort`",
            130,
        ) from None


def _wait(run: Reindex) -> None:
    progress = run.progress()
    if not progress.plan.handed_over:
        tell(f"building {_described(progress.plan.following)}")
        _until(run, _up_to_date(), "building")
        run.hand_over()
    tell("handed over; waiting until all that came before is published")
    _until(run, lambda _progress: run.through(), "handing over")
    run.finish()
    progress = run.progress()
    tell(
        f"done: {_described(progress.plan.current)} is in use. Put its rules into the settings, and"
        " run `neardup reindex --clean` to delete what is left of the earlier one"
    )


def _up_to_date() -> Callable[[Progress], bool]:
    """Return what tells whether all shards have read what was in the log some seconds ago."""
    ends: list[tuple[float, int]] = []

    def near(progress: Progress) -> bool:
        now = monotonic()
        ends.append((now, progress.end))
        before = [end for seen, end in ends if now - seen >= _RECENT_SECONDS]
        del ends[: max(0, len(before) - 1)]
        # The last offsets are markers, which no shard commits.
        return bool(before) and all(
            at is not None and at >= before[-1] - 1 for at in progress.reached.values()
        )

    return near


def _until(run: Reindex, holds: Callable[[Progress], bool], doing: str) -> None:
    for number in count(1):
        progress = run.progress()
        if progress.plan.following is None:
            raise CommandError("another command has ended this reindex", EXIT_FAILED)
        if holds(progress):
            return
        if number % _TOLD_EVERY == 0:
            tell(f"{doing}: {_left(progress)}")
        sleep(_PAUSE_SECONDS)


def _left(progress: Progress) -> str:
    waiting = [shard for shard, at in progress.reached.items() if at is None]
    if waiting:
        return f"no worker has begun shard {waiting[0]} yet"
    return f"{progress.left:,} of {progress.end:,} offsets are left for the slowest shard"


def _described(generation: Generation | None) -> str:
    if generation is None:
        return "nothing"
    share = generation.containment
    containment = "" if share is None else f", containment {share:g}"
    return (
        f"generation {generation.number} ({generation.shards} shards, threshold"
        f" {generation.threshold:g}{containment}, absorb {generation.absorb:g}, capacity"
        f" {generation.bucket_capacity}, window {generation.window})"
    )


def status(settings: Settings, *, as_json: bool) -> None:
    """Print which generation is in use, and how far the next one is."""
    progress = _begun(settings).progress()
    if as_json:
        print_json(_facts(progress))
        return
    for line in _lines(progress):
        print(line)  # noqa: T201 -- what was asked for


def _lines(progress: Progress) -> Iterator[str]:
    plan = progress.plan
    yield f"in use: {_described(plan.current)}"
    if plan.following is not None:
        state = "takes over" if plan.handed_over else f"is being built: {_left(progress)}"
        yield f"{_described(plan.following)} {state}"
    for generation in plan.left:
        yield f"left: {_described(generation)}"


def _facts(progress: Progress) -> dict[str, object]:
    plan = progress.plan
    return {
        "state": _state(plan),
        "generation": plan.current.number,
        "following": None if plan.following is None else plan.following.number,
        "left": [one.number for one in plan.left],
        "end": progress.end,
        "reached": {str(shard): at for shard, at in progress.reached.items()},
    }


def _state(plan: Plan) -> str:
    if plan.following is None:
        return "idle"
    return "taking over" if plan.handed_over else "building"


def abort(settings: Settings) -> None:
    """Give up the generation that is being built.

    Raises:
        CommandError: it has taken over.
    """
    if not _begun(settings).abort():
        raise CommandError(
            "the next generation has taken over already; `neardup reindex` goes on with it",
            EXIT_FAILED,
        )
    tell("nothing is being built")


def clean(settings: Settings) -> None:
    """Delete the topics and groups of generations that nobody runs.

    Raises:
        BusError: Kafka refuses.
    """
    for name in _begun(settings).clean():
        tell(f"deleted {name}")
